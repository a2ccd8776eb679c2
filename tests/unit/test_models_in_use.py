"""What a worker imports ahead of its first message."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# In a process of its own: in this one the library may be there already, and setting it up anew drops its connections.
WARM_UP = "import sys; from worker.models_in_use import warm_up; warm_up(); print('litellm' in sys.modules)"


@pytest.mark.parametrize(("model", "imported"), [("openai/scripted", "True"), ("", "False")])
def test_a_hosted_models_library_is_imported_ahead_and_only_that(model: str, imported: str) -> None:
    environment = {**os.environ, "MANDUA_LLM_MODEL": model}
    ended = subprocess.run(
        [sys.executable, "-c", WARM_UP], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == imported
