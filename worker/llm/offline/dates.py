"""Dates that a sentence gives, absolute or relative to the message's own local day.

A small grammar of its own instead of a date library: libraries that search dates in free text read ports, flat
numbers and model names as years. Here a number is a year only next to a word that says so ("in 2019", "em 2019",
"since", "desde", a month). Future stays future; nothing is dated where the sentence dates nothing.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta

from worker.llm.offline.english import is_past
from worker.llm.offline.portuguese import is_verb, past
from worker.llm.offline.text import fold, words

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan janeiro", "february feb fevereiro fev", "march mar marco", "april apr abril abr",
            "may maio", "june jun junho", "july jul julho", "august aug agosto ago",
            "september sep sept setembro set", "october oct outubro out", "november nov novembro",
            "december dec dezembro dez",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday segunda segunda-feira", "tuesday terca terca-feira", "wednesday quarta quarta-feira",
            "thursday quinta quinta-feira", "friday sexta sexta-feira", "saturday sabado", "sunday domingo",
        )
    )
    for name in names.split()
}  # fmt: skip
_NUMBERS = {
    word: value
    for value, forms in enumerate(
        (
            "a an one um uma", "two dois duas couple", "three tres", "four quatro", "five cinco", "six seis",
            "seven sete", "eight oito", "nine nove", "ten dez", "eleven onze", "twelve doze",
        ),
        start=1,
    )
    for word in forms.split()
}  # fmt: skip

_MONTH = "(?:" + "|".join(sorted((m for m in _MONTHS if len(m) > 3), key=len, reverse=True)) + ")"
_SHORT_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + ")"
_DAY = "(?:" + "|".join(sorted(_WEEKDAYS, key=len, reverse=True)) + ")"
_COUNT = r"(?:\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_UNIT = r"(?:days?|dias?|weeks?|semanas?|months?|mes(?:es)?|years?|anos?)"
_YEAR = r"(?:1[89]\d\d|20\d\d)"
_PAST_ENDING = re.compile(r"\b(?:\w+(?:ed|ou|iu|eu|ei|amos|aram|eram|iram)|was|were|had|foi|fui|foram|teve|fez)\b")


@dataclass(frozen=True, slots=True)
class Dated:
    """An ISO date whose length follows its precision, and where the sentence said it."""

    iso: str
    precision: str
    start: int
    end: int


def local_day(message_date: object) -> date | None:
    """The local calendar day of ``message_date`` (ISO first, whatever follows), None where the time is unknown."""
    if not isinstance(message_date, str):
        return None
    found = re.search(r"(\d{4})-(\d{2})-(\d{2})", message_date)
    if not found:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None


def find_date(sentence: str, today: date | None) -> Dated | None:
    """The first date that ``sentence`` gives to what it tells, or None."""
    text = fold(sentence)
    for reader in (
        _absolute,
        _month_of_year,
        _relative_count,
        _named_day,
        _relative_period,
        _weekday,
        _bare_month,
        _day_of_month,
        _year,
    ):
        try:
            found = reader(text, today)
        except (ValueError, OverflowError):  # 31 February, or an offset that leaves the calendar
            return None
        if found is not None:
            return found
    return None


def _dated(day: date, precision: str, match: re.Match[str]) -> Dated:
    # The contract wants an ISO date with its precision apart: month and year stand at their first day.
    if precision == "month":
        day = day.replace(day=1)
    elif precision == "year":
        day = day.replace(month=1, day=1)
    return Dated(day.isoformat(), precision, match.start(), match.end())


def _absolute(text: str, today: date | None) -> Dated | None:
    """2023-08-27, 27/08/2023, "27 de agosto de 2023", "August 27, 2023", and both without the year."""
    if m := re.search(r"(?<![\d.-])(\d{4})-(\d{2})-(\d{2})(?![\d-])", text):
        return _dated(date(int(m[1]), int(m[2]), int(m[3])), "day", m)
    if m := re.search(rf"(?<![\d/])(\d{{1,2}})/(\d{{1,2}})/({_YEAR})(?![\d/])", text):
        first, second, year = int(m[1]), int(m[2]), int(m[3])
        day, month = (second, first) if second > 12 else (first, second)
        return _dated(date(year, month, day), "day", m)
    patterns = (
        rf"\b(?:dia )?(?P<d>\d{{1,2}})(?:st|nd|rd|th|o|º)?(?: de| of)? (?P<m>{_SHORT_MONTH})\b\.?(?:(?: de"
        rf"|,)? (?P<y>{_YEAR}))?",
        rf"\b(?P<m>{_SHORT_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y>{_YEAR}))?",
    )
    for pattern in patterns:
        if m := re.search(pattern, text):
            month, day = _MONTHS[m["m"]], int(m["d"])
            if m["y"]:
                return _dated(date(int(m["y"]), month, day), "day", m)
            if today is not None:
                return _dated(_nearest_year(text, today, month, day), "day", m)
    return None


# "moved to 3 August" looks ahead, whatever its tense.
_PUT_OFF = re.compile(
    r"\b(?:moved|brought forward) to\b|\b(?:postponed|rescheduled|scheduled|booked|set|due|adiad\w+|adiou|adiaram"
    r"|remarc\w+|marcad\w+"
    r"|marcaram|marquei|marcamos|agend\w+) (?:to|for|para|pra|pro|em|in|on)\b"
)


def _looks_back(text: str) -> bool:
    if re.search(r"\b(?:will|going to|is \w+ing|are \w+ing|vai|vou|vamos|vao)\b", text):
        return False
    if _PUT_OFF.search(text):
        return False
    return bool(_PAST_ENDING.search(text)) or any(is_past(word) or past(word) for word in words(text))


def _nearest_year(text: str, today: date, month: int, day: int) -> date:
    """The year of a date given without one: the last such day if the sentence looks back, else the next."""
    this = date(today.year, month, min(day, calendar.monthrange(today.year, month)[1]))
    if _looks_back(text):
        return this if this <= today else this.replace(year=today.year - 1)
    return this if this >= today else this.replace(year=today.year + 1)


def _month_of_year(text: str, today: date | None) -> Dated | None:
    """ "August 2023", "agosto de 2023", "julho do ano passado"."""
    if m := re.search(rf"\b({_MONTH})(?: de| of|,)? ({_YEAR})\b", text):
        return _dated(date(int(m[2]), _MONTHS[m[1]], 1), "month", m)
    if today and (
        m := re.search(rf"\b({_MONTH})(?: of| do| de)? (last year|ano passado|next year|ano que vem)\b", text)
    ):
        shift = -1 if m[2] in ("last year", "ano passado") else 1
        return _dated(date(today.year + shift, _MONTHS[m[1]], 1), "month", m)
    return None


def _relative_count(text: str, today: date | None) -> Dated | None:
    """ "3 days ago", "há dois anos", "two weeks from now", "daqui a um mês"."""
    patterns = (
        (rf"\b({_COUNT})(?: of)? ({_UNIT}) (?:ago|atras)\b", -1),
        (rf"\b(?:ha|faz)(?: uns| umas| quase| cerca de)? ({_COUNT}) ({_UNIT})(?! mil)\b", -1),
        (rf"\b(?:in|daqui a|em|within) ({_COUNT}) ({_UNIT})(?= from now|\W*$| time)", 1),
        (rf"\b({_COUNT}) ({_UNIT}) from now\b", 1),
    )
    for pattern, sign in patterns:
        m = re.search(pattern, text)
        if m and m.group().startswith("faz") and not any(is_verb(w) for w in words(text[: m.start()])):
            continue  # "Davi faz 50 anos" is an age, "mora aqui faz três anos" a time
        if (
            m
            and today
            and not re.search(r"\b(?:mil|million|milh\w+|thousand|bilh\w+)\b", text[m.start() : m.end() + 4])
        ):
            count = int(m[1]) if m[1].isdigit() else _NUMBERS[m[1]]
            return _shifted(today, sign * count, m[2], m)
    return None


def _shifted(today: date, count: int, unit: str, match: re.Match[str]) -> Dated:
    if unit.startswith(("day", "dia")):
        return _dated(today + timedelta(days=count), "day", match)
    if unit.startswith(("week", "semana")):
        return _dated(today + timedelta(weeks=count), "day", match)
    if unit.startswith("m"):
        return _dated(_add_months(today, count), "month", match)
    return _dated(date(today.year + count, 1, 1), "year", match)


def _add_months(day: date, count: int) -> date:
    month = day.year * 12 + day.month - 1 + count
    return date(month // 12, month % 12 + 1, 1)


_DAYS = {
    "the day before yesterday": -2, "anteontem": -2, "yesterday": -1, "last night": -1, "ontem": -1,
    "this morning": 0, "tonight": 0, "today": 0, "hoje": 0, "esta noite": 0,
    "the day after tomorrow": 2, "depois de amanha": 2, "tomorrow": 1, "amanha": 1,
}  # fmt: skip


def _named_day(text: str, today: date | None) -> Dated | None:
    for phrase, shift in _DAYS.items():
        # "hoje em dia" and "from today on" do not date an event.
        if today and (m := re.search(rf"\b{phrase}\b(?! em dia)", text)):
            return _dated(today + timedelta(days=shift), "day", m)
    return None


_PERIODS = [
    (re.compile(r"\b(?:last|past) week\b|\b(?:na )?semana passada\b"), -7, "week"),
    (re.compile(r"\bnext week\b|\b(?:na )?(?:semana que vem|proxima semana)\b"), 7, "week"),
    (re.compile(r"\blast month\b|\b(?:no )?mes passado\b"), -1, "month"),
    (re.compile(r"\bnext month\b|\b(?:no )?(?:mes que vem|proximo mes)\b"), 1, "month"),
    (re.compile(r"\bthis month\b|\b(?:neste|nesse|este|esse) mes\b"), 0, "month"),
    (re.compile(r"\blast year\b|\b(?:no )?ano passado\b"), -1, "year"),
    (re.compile(r"\bnext year\b|\b(?:no )?(?:ano que vem|proximo ano)\b"), 1, "year"),
    (re.compile(r"\bthis year\b|\b(?:neste|nesse|este|esse) ano\b"), 0, "year"),
]


def _relative_period(text: str, today: date | None) -> Dated | None:
    if today is None:
        return None
    for pattern, shift, unit in _PERIODS:
        if m := pattern.search(text):
            if unit == "week":
                # A week has no precision of its own in the contract; its month is what is sure enough.
                return _dated(today + timedelta(days=shift), "month", m)
            if unit == "month":
                return _dated(_add_months(today, shift), "month", m)
            return _dated(date(today.year + shift, 1, 1), "year", m)
    return None


def _weekday(text: str, today: date | None) -> Dated | None:
    """ "on Saturday", "last Friday", "no domingo", "sexta que vem": forward only if the sentence looks forward."""
    m = re.search(
        rf"\b(?P<lead>on|last|next|this|no|na|neste|nesta|nesse|nessa|no ultimo|na ultima|proximo"
        rf"|proxima) (?P<d>{_DAY})\b"
        rf"(?P<tail> passad[ao]| que vem)?",
        text,
    )
    if m is None:
        m = re.search(rf"\b(?P<lead>)(?P<d>{_DAY})(?P<tail> passad[ao]| que vem)\b", text)
    if today is None or m is None:
        return None
    number = _WEEKDAYS[m["d"]]
    back = (today.weekday() - number) % 7 or 7
    ahead = (number - today.weekday()) % 7 or 7
    if m["lead"] in ("next", "proximo", "proxima", "this") or (m["tail"] or "").endswith("vem"):
        return _dated(today + timedelta(days=ahead), "day", m)
    if m["lead"] == "last" or "ultim" in m["lead"] or (m["tail"] or "").startswith(" passad") or _looks_back(text):
        return _dated(today - timedelta(days=back), "day", m)
    return _dated(today + timedelta(days=ahead), "day", m)


def _bare_month(text: str, today: date | None) -> Dated | None:
    """ "in February", "em julho": the last such month if the sentence looks back, else the next."""
    m = re.search(
        rf"\b(?:in|em|last|next|this|since|desde|until|by|ate|(?:in )?(?:early|late|mid)|(?:no )?(?:inicio|comeco"
        rf"|meio|fim|final) de)"
        rf"[ -]({_MONTH}|may)\b(?! \d)",
        text,
    )
    if today is None or m is None:
        return None
    month = _MONTHS[m[1]]
    if m.group().startswith(("until", "by", "ate")):
        year = today.year if month >= today.month else today.year + 1
    elif m.group().startswith(("since", "desde")) or _looks_back(text):
        year = today.year if month <= today.month else today.year - 1
    else:
        year = today.year if month >= today.month else today.year + 1
    return _dated(date(year, month, 1), "month", m)


def _day_of_month(text: str, today: date | None) -> Dated | None:
    """ "on the 5th", "dia 5": the last or the next such day."""
    m = re.search(
        r"\b(?:on the (\d{1,2})(?:st|nd|rd|th)(?! (?!at\b|in the\b|of (?:this|next) )\w)"
        r"|(?:no )?dia (\d{1,2})(?![\d/:h%]| (?:de|mil|anos)))\b",
        text,
    )
    if today is None or m is None:
        return None
    day = int(m[1] or m[2])
    month = today.replace(day=1)
    for shift in (0, -1, 1):
        there = _add_months(month, shift)
        if 1 <= day <= calendar.monthrange(there.year, there.month)[1]:
            found = there.replace(day=day)
            back = _looks_back(text)
            if (back and found <= today) or (not back and found >= today):
                return _dated(found, "day", m)
    return None


def _year(text: str, _today: date | None) -> Dated | None:
    lead = r"(?:in|since|from|until|around|during|em|desde|ate|de|no ano de|ano de|by)"
    if m := re.search(
        rf"(?<!\bporta )(?<!\bport )\b{lead} ({_YEAR})\b(?![.,]?\d|\s*(?:%|reais|dollars|euros|km|kg|people|pessoas))",
        text,
    ):
        return _dated(date(int(m[1]), 1, 1), "year", m)
    return None
