"""Times of exports: zones, and the order of day, month and year where a file writes numbers only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from itertools import groupby, pairwise
from typing import Literal
from zoneinfo import ZoneInfo

from producer.contract import RequestError
from producer.importing.rows import Notes, UnreadableExport

DateOrder = Literal["DMY", "MDY", "YMD"]
ORDERS: tuple[DateOrder, ...] = ("DMY", "MDY", "YMD")

_BUDDHIST_FROM, _BUDDHIST = 2400, 543  # Thai phones write the year 2567 for 2024
# The offset of a zone is never more than this from UTC.
_MAX_OFFSET = timedelta(hours=15)
_MAX_MISFITS = 0.05


def zone_named(name: str) -> tzinfo:
    """The zone of a name like ``America/Recife``, or of an offset like ``-03:00``. Raises RequestError."""
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", name.strip())
    if offset:
        parsed = datetime.fromisoformat(f"2000-01-01T00:00:00{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}")
        return parsed.tzinfo or UTC
    try:
        return ZoneInfo(name.strip())
    except (KeyError, ValueError, OSError):
        raise RequestError(
            f"{name!r} is no time zone known here; write one like America/Sao_Paulo, Europe/Berlin or -03:00"
        ) from None


@dataclass
class Clock:
    """Makes local times of an export times with zone, and gives instants the local date of the export's owner.

    The zone is the one asked for, else MANDUA_TIMEZONE, else UTC (with a warning once a time needed it).
    """

    zone: tzinfo
    asked: bool  # whether anybody named a zone
    notes: Notes = field(default_factory=Notes)

    @classmethod
    def of(cls, zone: str | None, notes: Notes) -> Clock:
        """The clock for ``--timezone``. Raises RequestError for a name that is no zone."""
        name = zone or os.environ.get("MANDUA_TIMEZONE") or ""
        return cls(zone_named(name) if name else UTC, bool(name), notes)

    def settle(self, at: datetime, after: datetime | None = None) -> datetime:
        """``at`` with a zone. A local time that happens twice is the first, unless that lies before ``after``."""
        return _plain(self._settled(at, after))

    def _settled(self, at: datetime, after: datetime | None) -> datetime:
        if at.utcoffset() is not None:
            # An export in UTC says nothing about the date on the owner's wall; a zone that was asked for does.
            return at.astimezone(self.zone) if self.asked and at.utcoffset() == timedelta(0) else at
        if not self.asked:
            self.notes.warn("the times have no zone, so they count as UTC; say --timezone, or set MANDUA_TIMEZONE")
        first = at.replace(tzinfo=self.zone, fold=0)
        there_and_back = first.astimezone(UTC).astimezone(self.zone)
        if there_and_back.replace(tzinfo=None) != at:  # in the gap of a clock put forward
            self.notes.shifted += 1
            return there_and_back
        second = at.replace(tzinfo=self.zone, fold=1)
        if after is not None and _plain(first) < after <= _plain(second):
            return second
        return first


def _plain(at: datetime) -> datetime:
    """``at`` with its offset alone: times of one zone compare by their clocks, not by what they are."""
    offset = at.utcoffset()
    return at.replace(tzinfo=timezone(offset) if offset else UTC, fold=0) if offset is not None else at


def instant(seconds: object) -> datetime | None:
    """The time of a number of seconds since 1970 (UTC), as number or text; None for what is none or no real time."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, str)):
        return None
    try:
        value = float(seconds)
        return datetime.fromtimestamp(value, UTC) if value > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


def iso(text: object) -> datetime | None:
    """The time of an ISO 8601 text, with or without zone; None for what is none."""
    if not isinstance(text, str):
        return None
    text = text.strip().removesuffix(" UTC")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def with_offset_of(moment: datetime, local: datetime | None) -> datetime:
    """``moment`` in the zone in which its clock showed ``local``; as it is where the two do not fit together."""
    if local is None or local.tzinfo is not None:
        return moment
    offset = local - moment.replace(tzinfo=None, microsecond=0)
    if abs(offset) > _MAX_OFFSET or offset % timedelta(minutes=15):
        return moment
    return moment.astimezone(timezone(offset) if offset else UTC)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A date as three numbers, in the order in which they stand."""

    a: int
    b: int
    c: int

    def as_date(self, order: DateOrder, earliest: int) -> date | None:
        """The date in that order; None where there is no such day, or it is before the year ``earliest``."""
        year, month, day = {
            "DMY": (self.c, self.b, self.a), "MDY": (self.c, self.a, self.b), "YMD": (self.a, self.b, self.c),
        }[order]  # fmt: skip
        if year < 100:
            year += 2000
        elif year >= _BUDDHIST_FROM:
            year -= _BUDDHIST
        if year < earliest:
            return None
        try:
            return date(year, month, day)
        except ValueError:
            return None


def infer_order(seen: Iterable[Numbers], *, name: str, earliest: int = 1970) -> DateOrder:
    """The one order in which the dates of a file are dates, none before the year ``earliest``, none in the future.

    Where two are left, the one that keeps the file in the order of time. Raises UnreadableExport where none fits, or
    where the file could mean two things.
    """
    dates = _runs(seen)
    latest = (datetime.now(UTC) + timedelta(days=2)).date()
    read: dict[DateOrder, list[date | None]] = {}
    for order in ORDERS:
        found = [numbers.as_date(order, earliest) for numbers in dates]
        read[order] = [day if day is not None and day <= latest else None for day in found]
    misfits = {order: days.count(None) for order, days in read.items()}
    fewest = min(misfits.values())
    # A chat may quote another one, in another country's dates: some lines that fit nowhere are the quote's.
    if fewest > len(dates) * _MAX_MISFITS:
        raise UnreadableExport(
            f"{name}: no one order of day, month and year fits its dates; say --date-order DMY, MDY or YMD, and what "
            "does not fit is rejected line by line"
        )
    fitting = [order for order in ORDERS if misfits[order] == fewest]
    # Two-digit years first are rare: believed only where nothing else fits.
    if len(fitting) > 1 and all(numbers.a < 100 for numbers in dates):
        fitting = [order for order in fitting if order != "YMD"]
    if all(read[order] == read[fitting[0]] for order in fitting):
        return fitting[0]
    forward = [order for order in fitting if _is_forward(read[order])]
    if len(forward) == 1:
        return forward[0]
    raise _ambiguous(name, dates, {order: read[order] for order in fitting})


def _is_forward(days: Iterable[date | None]) -> bool:
    """Whether no day lies before the one that stands before it."""
    return all(earlier <= later for earlier, later in pairwise(day for day in days if day is not None))


def _ambiguous(
    name: str, dates: Sequence[Numbers], read: Mapping[DateOrder, Sequence[date | None]]
) -> UnreadableExport:
    """The question to ask, with a date of the file and what it could mean."""
    place = next(i for i in range(len(dates)) if len({days[i] for days in read.values()}) > 1)
    example = dates[place]
    readings = " or ".join(f"{days[place]} ({order})" for order, days in read.items())
    return UnreadableExport(
        f"{name}: its dates can be read in two ways: {example.a}/{example.b}/{example.c} is {readings}; say which with "
        f"--date-order {' or '.join(read)}"
    )


def _runs(seen: Iterable[Numbers]) -> list[Numbers]:
    """Each date once a run of equal ones: a chat has few days, however many messages."""
    return [numbers for numbers, _ in groupby(seen)]


def bound(text: str, clock: Clock, *, end: bool) -> datetime:
    """The time that ``--since`` or ``--until`` (``end``) names; a bare date is the whole day. Raises RequestError."""
    at = iso(text)
    if at is None:
        raise RequestError(f"{text!r} is neither a date nor a time; write it like 2024-05-01 or 2024-05-01T10:00:00Z")
    if end and re.fullmatch(r"\d{4}-?\d{2}-?\d{2}", text.strip()):
        at = datetime.combine(at.date() + timedelta(days=1), time()) - timedelta(microseconds=1)
    return at.replace(tzinfo=clock.zone) if at.utcoffset() is None else at
