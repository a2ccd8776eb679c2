"""The command line. ``main`` is the console script; everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command of ``arguments`` (those of the process if None) and exit: 0 done, 1 failed, 2 wrong use."""
    from worker.cli.app import run

    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))
