"""What is installed is what was looked at: every package pinned, with hashes, and from no host in particular."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-uv.lock"])
def test_every_package_is_pinned_and_hashed(file: str) -> None:
    text = (TOP / file).read_text()
    entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n", "", text))
    assert entries
    for entry in entries:
        assert re.match(r"[\w.\-\[\]]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-uv.lock", "pyproject.toml"])
def test_no_host_is_named(file: str) -> None:
    assert "://" not in (TOP / file).read_text()
