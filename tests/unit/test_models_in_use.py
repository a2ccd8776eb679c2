"""What a worker imports ahead of its first message."""

from __future__ import annotations

import os

import pytest

from worker.llm import litellm_client
from worker.models_in_use import warm_up


@pytest.mark.parametrize(("model", "imported"), [("openai/scripted", True), ("", False)])
def test_a_hosted_models_library_is_set_up_ahead_and_only_that(
    monkeypatch: pytest.MonkeyPatch, model: str, imported: bool
) -> None:
    monkeypatch.setenv("MANDUA_LLM_MODEL", model)
    monkeypatch.setattr(litellm_client, "_owner_pid", 0)
    warm_up()
    assert (litellm_client._owner_pid == os.getpid()) is imported
