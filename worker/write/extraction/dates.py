"""Which event dates can stand: the message must give them (issue 3.7; cases DAT-01 to DAT-10).

A date is kept where the words of the message lead to it from the message's own day. Anything else is dropped, the fact
stays: a wrong date is worse than none.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime, timedelta
from functools import cached_property

from worker.llm.items import ExtractedFact
from worker.write.negators import DAYS, MONTHS, NUMBER_WORDS, WEEKDAYS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TOKEN = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*|[#$€£]")
_NUMBER = re.compile(r"\d+")
# A number with four digits is a year only where it stands like one.
_YEAR_BEFORE = _words(
    "in since until till by from before after during of year early late mid around circa ca em desde ate de do "
    "ano anos entre antes depois no_ano en hasta del ano_ desde hacia an annee depuis jusqu avant apres vers "
    "annee im jahr seit bis ab von nel nell dal del fino anno and e y et und a to class turma classe safra spring "
    "summer autumn fall winter verao inverno outono primavera verano invierno otono ete hiver automne sommer "
    "herbst fruhling estate autunno inverno natal christmas navidad noel weihnachten natale"
)
_NO_YEAR_BEFORE = _words(
    "port porta puerto room sala quarto apt apartment apartamento ap ape apto flat number numero no n nr model "
    "modelo version versao code codigo pin line linha bus onibus flight voo gate extension ramal route rota "
    "channel canal page pagina # $ € £ r rs usd eur house casa suite chapter error erro build ticket id box unit "
    "unidade bloco"
)
_UNITS_AFTER = _words(
    "km kg g m cm mm l ml kcal cal reais real dollars dollar euros euro pounds people pessoas personas rooms "
    "steps passos points pontos words palavras pages paginas users hours horas minutes minutos watts w mah gb mb "
    "tb mil meters metros members membros seguidores followers"
)
_RELATIVE = re.compile(
    r"\b(?:ago|last|next|this (?:morning|afternoon|evening|week|month|year|weekend|summer|winter|spring|fall)|tonight|"
    r"tomorrow|"
    r"yesterday|today|now|just|weekend|week|month|year|day|days|weeks|months|years|morning|noon|christmas|easter|"
    r"new year|birthday|"
    r"ha|faz|atras|passad[oa]|proxim[oa]|que vem|semana|mes|meses|ano|anos|dia|dias|hoje|ontem|anteontem|amanha|agora|"
    r"manha|tarde|"
    r"noite|natal|pascoa|aniversario|acab\w+|desde|hace|pasad[oa]|viene|semanas|ayer|anteayer|hoy|manana|anoche|navidad|"
    r"il y a|dernier|derniere|prochain|prochaine|semaine|mois|an|ans|jour|jours|hier|demain|aujourd|matin|soir|noel|"
    r"vor|letzte\w*|nachste\w*|woche|wochen|monat|monate|jahr|jahre|tag|tage|gestern|heute|morgen|vorgestern|abend|"
    r"fa|scors[oa]|prossim[oa]|settimana|mese|mesi|anno|anni|giorno|giorni|ieri|oggi|domani|stamattina|stasera)\b"
)
_AGES = re.compile(
    r"\b(?:mil(?:hoes|hao|lions?|es)?|mille|thousands?|bilhoes|billions?|tausend|mila|seculos?|centur\w+)\b"
    r"[^.!?]{0,12}\b(?:anos?|years?|ans|anni|jahren?|ago)\b|万年|億年"
)
_MONTH_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY_FIRST = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|º)?\.?\s{{1,3}}(?:de |of )?({_MONTH_NAMES}),?"
    r"\s{1,3}(?:de |del )?(\d{4})(?!\d)"
)
_MONTH_FIRST = re.compile(rf"\b({_MONTH_NAMES})\s{{1,3}}(\d{{1,2}})(?:st|nd|rd|th)?,?\s{{1,3}}(\d{{4}})(?!\d)")
_NUMBER_WORDS = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b")
_OTHER_SCRIPT = re.compile(r"[\u0400-\u1fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN_MARKS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")


class Times:
    """What a message says of time, worked out once for all of its facts. ``sent`` is its own local time, if known."""

    def __init__(self, said: str, sent: datetime | None) -> None:
        self._plain = _plain(said)
        self._sent = sent

    def dated(self, fact: ExtractedFact) -> tuple[ExtractedFact, str | None]:
        """``fact`` with an event date that the message gives, and why it was changed, if it was.

        The reasons: date_not_in_message, year_not_in_message, date_of_unknown_time (all: dropped), date_resolved (put
        right). A fact without a date comes back as it is.
        """
        if fact.event_date is None:
            return fact, None
        if fact.event_date.year in self._written:
            return _finer(fact, self._days_written), None
        if self._sent is None:
            return _without_date(fact), "date_of_unknown_time"
        if not self._any:
            return _without_date(fact), "date_not_in_message"
        if (day := self._only_day) is not None and fact.event_date_precision in (None, "day"):
            expected = _shifted(self._sent.date(), day)
            if expected is not None and expected != fact.event_date:
                return fact.model_copy(update={"event_date": expected, "event_date_precision": "day"}), "date_resolved"
            return fact, None
        if fact.event_date.year not in self._derived:
            return _without_date(fact), "year_not_in_message"
        return fact, None

    @cached_property
    def _written(self) -> frozenset[int]:
        return _years_written(self._plain)

    @cached_property
    def _days_written(self) -> frozenset[tuple[int, int, int]]:
        return _days_written(self._plain)

    @cached_property
    def _any(self) -> bool:
        return not _AGES.search(self._plain) and _gives_time(self._plain)

    @cached_property
    def _only_day(self) -> int | None:
        return _only_day_word(self._plain)

    @cached_property
    def _derived(self) -> frozenset[int]:
        return _years_derived(self._plain, self._sent.date()) if self._sent else frozenset()


def _without_date(fact: ExtractedFact) -> ExtractedFact:
    return fact.model_copy(update={"event_date": None, "event_date_precision": None})


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _LATIN_MARKS.sub("", folded))


def _years_written(plain: str) -> frozenset[int]:
    """Years that stand in the text as years: "in 2008", "27 de agosto de 2023", "2023-08-27", "2008年"."""
    found: set[int] = set()
    for match in re.finditer(
        r"(?<!\d)(?:(\d{4})[-/.](\d{1,2})(?:[-/.]\d{1,2})?|\d{1,2}[-/.](?:\d{1,2}[-/.])?(\d{4}))(?!\d)", plain
    ):
        found.add(int(match.group(1) or match.group(3)))
    for match in re.finditer(r"(?<!\d)(\d{4})\s*(?:年|년)", plain):
        found.add(int(match.group(1)))
    tokens = [(match.group(), match.start()) for match in _TOKEN.finditer(plain)]
    for place, (token, start) in enumerate(tokens):
        if not re.fullmatch(r"\d{4}", token) or not 1000 <= int(token) <= 2999:
            continue
        before = tokens[place - 1][0] if place else ""
        earlier = tokens[place - 2][0] if place > 1 else ""
        after = tokens[place + 1][0] if place + 1 < len(tokens) else ""
        if before in _NO_YEAR_BEFORE or (earlier in _NO_YEAR_BEFORE and before not in MONTHS) or after in _UNITS_AFTER:
            continue
        dated_before = before in MONTHS or before in _YEAR_BEFORE or (not before and after)
        american = re.fullmatch(r"\d{1,2}(?:st|nd|rd|th)?", before) and earlier in {*MONTHS, "may"}
        if dated_before or american or after in MONTHS or plain[max(0, start - 1) : start] == "(":
            found.add(int(token))
    return frozenset(found)


def _years_derived(plain: str, sent: date) -> frozenset[int]:
    """Years that the text leads to from the day it was said on: this one and its neighbours, and "n years ago"."""
    found = {sent.year - 1, sent.year, sent.year + 1}
    numbers = {int(number) for number in _NUMBER.findall(plain) if len(number) <= 3}
    numbers |= {NUMBER_WORDS[word] for word in _NUMBER_WORDS.findall(plain)}
    for number in numbers:
        found |= {sent.year - number - 1, sent.year - number, sent.year + number}
        if number < 100:  # "'98"
            found |= {1900 + number, 2000 + number} if re.search(rf"['’]{number:02d}\b", plain) else set()
    return frozenset(found)


def _gives_time(plain: str) -> bool:
    """Whether anything in the text can be a time at all; in scripts that are not listed, that is taken for granted."""
    if _OTHER_SCRIPT.search(plain) or _RELATIVE.search(plain):
        return True
    tokens = {match.group() for match in _TOKEN.finditer(plain)}
    if tokens & (MONTHS.keys() | WEEKDAYS.keys() | DAYS.keys()):
        return True
    return bool(
        re.search(r"(?<!\d)\d{1,2}\s*[-/.]\s*\d{1,2}(?!\d)|\b(?:on the|dia|el|am|le) \d{1,2}\b|['’]\d\d\b", plain)
    )


def _only_day_word(plain: str) -> int | None:
    """-1, 0 or 1 where "yesterday", "today" or "tomorrow" is all that the text says of time."""
    tokens = [match.group() for match in _TOKEN.finditer(plain)]
    days = {DAYS[token] for token in tokens if token in DAYS}
    if len(days) != 1 or any(token in MONTHS or token in WEEKDAYS for token in tokens) or _NUMBER.search(plain):
        return None
    others = [match.group() for match in _RELATIVE.finditer(plain) if match.group() not in DAYS]
    vague = {
        "just",
        "now",
        "morning",
        "manha",
        "tarde",
        "noite",
        "dia",
        "day",
        "agora",
        "matin",
        "soir",
        "abend",
        "morgen",
    }
    return next(iter(days)) if all(word in vague for word in others) else None


def _shifted(day: date, by: int) -> date | None:
    try:
        return day + timedelta(days=by)
    except OverflowError:
        return None


def _days_written(plain: str) -> frozenset[tuple[int, int, int]]:
    """Year, month and day of every date that is written out: "27 de agosto de 2023", "August 27, 2023"."""
    written = set()
    for match in _DAY_FIRST.finditer(plain):
        written.add((int(match.group(3)), MONTHS[match.group(2)], int(match.group(1))))
    for match in _MONTH_FIRST.finditer(plain):
        written.add((int(match.group(3)), MONTHS[match.group(1)], int(match.group(2))))
    return frozenset(written)


def _finer(fact: ExtractedFact, written: frozenset[tuple[int, int, int]]) -> ExtractedFact:
    """``fact`` with the day, where one date is written out and the model kept only its month or year (DAT-10)."""
    known = fact.event_date
    if known is None or fact.event_date_precision == "day" or len(written) != 1:
        return fact
    (year, month, day) = next(iter(written))
    if year != known.year or (fact.event_date_precision == "month" and month != known.month):
        return fact
    try:
        return fact.model_copy(update={"event_date": date(year, month, day), "event_date_precision": "day"})
    except ValueError:
        return fact
