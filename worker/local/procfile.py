"""The Procfile: which processes make up the product, one `name: command` a line.

A parser of our own rather than honcho's: that one silently passes over a line it does not understand, so that a typo
loses a worker, and its runner ends everything when one process ends, which is the opposite of what is wanted here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from worker.local.errors import LocalStackError

_LINE = re.compile(r"(?P<name>[A-Za-z0-9_-]+):\s*(?P<command>\S.*)")


@dataclass(frozen=True)
class ProcessLine:
    """One process: its name and its command, one simple shell command (variables are expanded, no pipes or `&&`)."""

    name: str
    command: str


def parse_procfile(text: str) -> list[ProcessLine]:
    """The processes in the order of the file; blank lines and lines that start with `#` are comments.

    Raises LocalStackError, with the line's number, for any other line and for a name that comes twice.
    """
    lines: list[ProcessLine] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise LocalStackError(f"Procfile, line {number}: expected `name: command`, found {line!r}")
        if match["name"] in [known.name for known in lines]:
            raise LocalStackError(f"Procfile, line {number}: the name {match['name']!r} comes twice")
        lines.append(ProcessLine(match["name"], match["command"]))
    return lines


def read_procfile(path: Path | None = None) -> list[ProcessLine]:
    """The processes of a Procfile, by default the project's own. Raises LocalStackError.

    The project's own lies in this package, so that an installed one has it as well; the one at the top links to it.
    """
    path = path or Path(__file__).with_name("Procfile")
    try:
        return parse_procfile(path.read_text())
    except OSError as error:
        raise LocalStackError(f"cannot read {path}: {error.strerror}") from None


def select(lines: Sequence[ProcessLine], names: Sequence[str]) -> list[ProcessLine]:
    """The lines with these names, in the order of the names. Raises LocalStackError for a name that is not there."""
    by_name = {line.name: line for line in lines}
    for name in names:
        if name not in by_name:
            raise LocalStackError(f"the Procfile has no process {name!r}; it has {', '.join(by_name)}")
    return [by_name[name] for name in names]
