"""Points in time as an operator writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from worker.cli.errors import WRONG_USE, CommandError

_AGO = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(written: str, option: str) -> datetime:
    """``90s``, ``30m``, ``2h``, ``7d`` (so long ago), or an ISO 8601 time with zone. Raises CommandError."""
    ago = _AGO.fullmatch(written.strip())
    if ago:
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        found = datetime.fromisoformat(written.strip())
    except ValueError:
        found = None
    if found is None or found.utcoffset() is None:
        raise CommandError(
            f"{option} is no time; write it like 2h, 7d or 2025-06-15T23:30:00-03:00 (with a zone)", WRONG_USE
        )
    return found
