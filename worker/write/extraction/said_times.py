"""What a text says of time: years, days and weekdays that stand in it, and whether it dates anything at all.

By tables and patterns for English, Portuguese, Spanish, French, German, Italian, Russian and for the day words of
Chinese, Japanese, Korean. Numbers are times only where they stand like times: a port is no year.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date, timedelta
from functools import cached_property

from worker.write.negators import DAYS, MONTHS, NUMBER_WORDS, WEEKDAYS
from worker.write.polarity import languages_of


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
_DAY_AND_MONTH = re.compile(
    rf"(?<!\d)\d{{1,2}}(?:st|nd|rd|th|º|o)?\.?\s{{1,3}}(?:de |of )?(?:{_MONTH_NAMES}|may)\b"
    rf"|\b(?:{_MONTH_NAMES}|may)\s{{1,3}}(?:the )?\d{{1,2}}(?!\d)"
)
_NUMBER_WORDS = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b")
_OTHER_SCRIPT = re.compile(r"[\u0400-\u1fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN_MARKS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
_FAR_DAYS = (
    (-2, r"\b(?:the day before yesterday|anteontem|antes de ayer|anteayer|antier|avant-hier|vorgestern|"
         r"l'altro ieri|altroieri|позавчера)\b|前天|一昨日|おととい|그저께|그제"),
    (2, r"\b(?:the day after tomorrow|depois de amanha|pasado manana|apres-demain|ubermorgen|dopodomani|"
        r"послезавтра)\b|后天|後天|明後日|あさって|모레"),
    (-1, r"\b(?:last night|anoche|ontem a noite)\b|昨晚|昨夜|ゆうべ|어젯밤"),
    (0, r"\b(?:tonight|this (?:morning|afternoon|evening)|esta noche|esta (?:manha|tarde|noite)|ce (?:matin|soir)|"
        r"heute (?:morgen|abend|fruh)|stamattina|stasera|сегодня утром)\b|今晚|今早|今朝|今夜|오늘 밤"),
)  # fmt: skip
_N = rf"(\d{{1,3}}|{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})"
_HAN_N = r"(\d{1,3}|[一二两兩三四五六七八九十])"
_DAYS_AGO = re.compile(
    rf"\b{_N} days? ago\b|\b(?:ha|faz|hace)(?: uns| unos)? {_N} dias\b|\b{_N} dias atras\b|\bil y a {_N} jours\b|"
    rf"\bvor {_N} tagen\b|\b{_N} giorni fa\b|\b{_N} (?:дня|дней) назад|{_HAN_N}天(?:之)?前|{_HAN_N}日前|{_HAN_N}일 ?전"
)
_IN_DAYS = re.compile(
    rf"\bin {_N} days\b|\b{_N} days from now\b|\bdaqui a {_N} dias\b|\bdentro de {_N} dias\b|\bdans {_N} jours\b|"
    rf"\bin {_N} tagen\b|\b(?:tra|fra) {_N} giorni\b|через {_N} (?:дня|дней)|"
    rf"{_HAN_N}天(?:之)?[后後]|{_HAN_N}日後|{_HAN_N}일 ?후"
)
_HAN_DIGITS = dict(zip("一二两兩三四五六七八九十", (1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10), strict=True))
# Portuguese drops "-feira", and then its weekdays are ordinals ("segunda filha") but for what stands around them.
_BARE_WEEKDAY = re.compile(
    r"\b(?:na|nesta|nessa|esta|essa|ultima|proxima|ate) (segunda|terca|quarta|quinta|sexta)\b(?! (?:vez|feira))"
    r"|\b(segunda|terca|quarta|quinta|sexta) (?:passada|que vem|a noite|de manha|a tarde)\b"
)
_BARE_WEEKDAYS = {"segunda": 0, "terca": 1, "quarta": 2, "quinta": 3, "sexta": 4}
_CJK_WEEKDAY = re.compile(r"(?:星期|周|週|礼拜|禮拜)([一二三四五六日天])|([月火水木金土日])曜|([월화수목금토일])요일")
_CJK_WEEKDAYS = {sign: place % 7 for place, sign in enumerate("一二三四五六日月火水木金土日월화수목금토일")} | {"天": 6}
_NUMERIC_DAY = re.compile(r"(?<!\d)(?:(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}))(?!\d)")
_NUMERIC = re.compile(r"(?<!\d)\d{1,4}[-/.]\d{1,2}(?!\d)|\d\s?[月월]")
_CJK_DAY = re.compile(r"(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号號일]")
# What may stand beside a day's word without dating anything else.
_VAGUE = _words("just now morning manha tarde noite dia day agora matin soir abend morgen noon acabei acabou")


class SaidTimes:
    """One text's times, each worked out when it is first asked for."""

    def __init__(self, said: str) -> None:
        self.plain = plain_of(said)
        self._no_french = "fr" not in languages_of(said)  # "hier" is "here" in German

    @cached_property
    def years(self) -> frozenset[int]:
        """Years that stand in the text as years."""
        return _years_written(self.plain)

    @cached_property
    def dates(self) -> frozenset[tuple[int, int, int]]:
        """Year, month and day of every date that is written out in full."""
        return _days_written(self.plain)

    @cached_property
    def dates_anything(self) -> bool:
        """Whether anything in the text can be a time at all; not so where it speaks of ages long past."""
        return not _AGES.search(self.plain) and (_gives_time(self.plain) or bool(self.years or _weekdays(self.plain)))

    @cached_property
    def dates_from_its_day(self) -> bool:
        """Whether the text gives a time that is counted from the day it was said on, and not only written years."""
        if not self.years:
            return self.dates_anything
        if _AGES.search(self.plain):
            return False
        tokens = {match.group() for match in _TOKEN.finditer(self.plain)}
        elsewhere = _RELATIVE.search(self.plain) or tokens & DAYS.keys() or _weekdays(self.plain)
        return bool(elsewhere or self.only_shift is not None or _OTHER_SCRIPT.search(self.plain))

    @cached_property
    def only_shift(self) -> int | None:
        """Days from the message's own day where one day's word or count ("yesterday", "3 days ago") is all that the
        text says of time; else None."""
        rest, shifts = self.plain, set[int]()
        for value, words in _FAR_DAYS:
            rest, found = re.subn(words, " ", rest)
            shifts |= {value} if found else set()
        for pattern, sign in ((_DAYS_AGO, -1), (_IN_DAYS, 1)):
            shifts |= {sign * _value(match) for match in pattern.finditer(rest)}
            rest = pattern.sub(" ", rest)
        tokens = [match.group() for match in _TOKEN.finditer(rest)]
        shifts |= {DAYS[token] for token in tokens if token in DAYS and not (token == "hier" and self._no_french)}
        shifts |= {value for word, value in DAYS.items() if word[0] >= "\u3040" and word in rest}
        if len(shifts) != 1 or self.years or _NUMERIC.search(rest) or _weekdays(rest) or set(tokens) & MONTHS.keys():
            return None
        others = {match.group() for match in _RELATIVE.finditer(rest)} - DAYS.keys()
        return next(iter(shifts)) if others <= _VAGUE else None

    @cached_property
    def only_weekday(self) -> int | None:
        """The weekday (Monday is 0) where the text has exactly one; else None."""
        found = _weekdays(self.plain)
        return next(iter(found)) if len(found) == 1 else None

    @cached_property
    def precision(self) -> str:
        """The finest precision that the text can give to a written year: "year" where it stands alone, "month" with a
        month's name and no day, else "day"."""
        if _NUMERIC.search(self.plain) or _RELATIVE.search(self.plain) or _weekdays(self.plain):
            return "day"
        tokens = {match.group() for match in _TOKEN.finditer(self.plain)}
        if not tokens & (MONTHS.keys() | {"may"}):
            return "year" if not tokens & DAYS.keys() and not _OTHER_SCRIPT.search(self.plain) else "day"
        return "day" if _DAY_AND_MONTH.search(self.plain) else "month"

    def years_from(self, sent: date) -> frozenset[int]:
        """Years that the text leads to from the day it was said on."""
        return _years_derived(self.plain, sent)


def _value(match: re.Match[str]) -> int:
    said = next(group for group in match.groups() if group)
    if said.isdigit():
        return int(said)
    return NUMBER_WORDS[said] if said in NUMBER_WORDS else _HAN_DIGITS[said]


def _weekdays(plain: str) -> frozenset[int]:
    found = {WEEKDAYS[match.group()] for match in _TOKEN.finditer(plain) if match.group() in WEEKDAYS}
    found |= {_BARE_WEEKDAYS[match.group(1) or match.group(2)] for match in _BARE_WEEKDAY.finditer(plain)}
    found |= {_CJK_WEEKDAYS[next(filter(None, match.groups()))] for match in _CJK_WEEKDAY.finditer(plain)}
    return frozenset(found)


def plain_of(text: str) -> str:
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


def shifted(day: date, by: int) -> date | None:
    """``day`` and ``by`` days; None outside of the calendar."""
    try:
        return day + timedelta(days=by)
    except OverflowError:
        return None


def _days_written(plain: str) -> frozenset[tuple[int, int, int]]:
    written = set()
    for match in _DAY_FIRST.finditer(plain):
        written.add((int(match.group(3)), MONTHS[match.group(2)], int(match.group(1))))
    for match in _MONTH_FIRST.finditer(plain):
        written.add((int(match.group(3)), MONTHS[match.group(1)], int(match.group(2))))
    for match in _CJK_DAY.finditer(plain):
        written.add((int(match.group(1)), int(match.group(2)), int(match.group(3))))
    for match in _NUMERIC_DAY.finditer(plain):
        if match.group(1):
            written.add((int(match.group(1)), int(match.group(2)), int(match.group(3))))
            continue
        first, second, year = int(match.group(4)), int(match.group(5)), int(match.group(6))
        if first > 12 >= second:
            written.add((year, second, first))
        elif second > 12 >= first:
            written.add((year, first, second))
    return frozenset(written)
