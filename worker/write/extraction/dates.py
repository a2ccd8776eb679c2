"""Which event dates can stand: the message must give them (issue 3.7; cases DAT-01 to DAT-10).

A date is kept where the words of the fact's own sentence lead to it from the message's own day, or those of the whole
message where that sentence says nothing of time. Where they lead to another one, that one is taken. Anything else is
dropped, the fact stays: a wrong date is worse than none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from functools import cached_property
from typing import get_args

from worker.llm.items import ExtractedFact, Precision
from worker.write.extraction.claims import Sentence, overlap, stems
from worker.write.extraction.said_times import SaidTimes, shifted

_PRECISIONS = get_args(Precision)  # from fine to coarse


class Times:
    """What a message says of time, worked out once for all of its facts. ``sent`` is its own local time, if known."""

    def __init__(self, said: str, sent: datetime | None, sentences: Sequence[Sentence] = ()) -> None:
        self._said = said
        self._sent = sent.date() if sent is not None else None
        self._sentences = [sentence for sentence in sentences if sentence.text]
        self._times: dict[str, SaidTimes] = {}

    def dated(self, fact: ExtractedFact) -> tuple[ExtractedFact, str | None]:
        """``fact`` with an event date that the message gives, and why it was changed, if it was.

        The reasons: date_not_in_message, year_not_in_message, date_of_unknown_time (all: dropped), date_resolved (put
        right), date_coarsened (to what is said). A fact without a date comes back as it is.
        """
        if fact.event_date is None:
            return fact, None
        times = self._times_of(fact)
        if fact.event_date.year in times.years:
            return _as_written(fact, times)
        if self._sent is None:
            return _without_date(fact), "date_of_unknown_time"
        if not times.dates_from_its_day:
            return _without_date(fact), "date_not_in_message"
        daily = fact.event_date_precision in (None, "day")
        if (shift := times.only_shift) is not None and daily:
            return _moved(fact, shifted(self._sent, shift))
        if fact.event_date.year not in times.years_from(self._sent):
            return _without_date(fact), "year_not_in_message"
        if (weekday := times.only_weekday) is not None and daily:
            # A model that counts one day wrong still means the Saturday.
            off = (weekday - fact.event_date.weekday() + 3) % 7 - 3
            return _moved(fact, shifted(fact.event_date, off))
        return fact, None

    def _times_of(self, fact: ExtractedFact) -> SaidTimes:
        """Of the sentence that says what the fact says, if that says anything of time; else of the whole message."""
        wanted = stems(fact.text) - stems(fact.subject)
        scored = [(len(overlap(wanted, sentence.stems)), -place) for place, sentence in enumerate(self._sentences)]
        best, place = max(scored, default=(0, 0))
        if best:
            own = self._of(self._sentences[-place].text)
            if own.dates_anything:
                return own
        return self._whole

    @cached_property
    def _whole(self) -> SaidTimes:
        return SaidTimes(self._said)

    def _of(self, text: str) -> SaidTimes:
        if text not in self._times:
            self._times[text] = SaidTimes(text)
        return self._times[text]


def _without_date(fact: ExtractedFact) -> ExtractedFact:
    return fact.model_copy(update={"event_date": None, "event_date_precision": None})


def _moved(fact: ExtractedFact, expected: date | None) -> tuple[ExtractedFact, str | None]:
    if expected is None or expected == fact.event_date:
        return fact, None
    return fact.model_copy(update={"event_date": expected, "event_date_precision": "day"}), "date_resolved"


def _as_written(fact: ExtractedFact, times: SaidTimes) -> tuple[ExtractedFact, str | None]:
    """``fact`` with the day that is written out, where the model kept less of it or took another (DAT-10), and with no
    finer date than is written: "in 1990" is a year."""
    known, precision = fact.event_date, fact.event_date_precision or "day"
    if known is None:
        return fact, None
    days = [day for day in (_day(parts) for parts in times.dates) if day is not None and day.year == known.year]
    if len(days) == 1 and (precision != "month" or days[0].month == known.month):
        if days[0] == known and precision == "day":
            return fact, None
        return fact.model_copy(update={"event_date": days[0], "event_date_precision": "day"}), "date_resolved"
    said = times.precision
    if _PRECISIONS.index(said) <= _PRECISIONS.index(precision):
        return fact, None
    start = known.replace(day=1) if said == "month" else known.replace(month=1, day=1)
    return fact.model_copy(update={"event_date": start, "event_date_precision": said}), "date_coarsened"


def _day(parts: tuple[int, int, int]) -> date | None:
    try:
        return date(*parts)
    except ValueError:
        return None
