"""Whether two sentences can say the same thing: negation, numbers, dates. String rules, because no embedding sees them.

These rules may only ever hold a merge back. A sentence kept twice is put right by the dedup job; "can eat peanuts"
merged into "cannot eat peanuts" never is. behaviour: 5 and 7.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from worker.write import negators as words
from worker.write.negators import LANGUAGES

_LATIN_MARKS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
# Vowel signs of Indic scripts and Thai are no letters to ``\w``, but they are part of the word.
_LETTERS = r"(?:[^\W_]|[\u0900-\u0963\u0981-\u0dff\u0e30-\u0e4e])+"
_TOKEN = re.compile(rf"{_LETTERS}(?:['\-]{_LETTERS})*")
_NO_BEHIND_LOWER_CASE = re.compile(r"(?<=\s)([a-z\u00df-\u00ff]\S*) no (?=\w)")
_NO = re.compile(r"(?<=\s)no (?=\w)")
_CLAUSE_END = re.compile(
    r"[.;:!?,()\u2014\u3001\u3002\uff0c\uff1b\uff1a\uff01\uff1f\u060c]+(?=\s|$|[^\x00-\x7f])"
    r"|\b(?:e|y)\b(?= (?:nao|no|nunca|jamais|jamas|nem|non|ni)\b)"
    r"|\b(?:and|but|because|although|mas|porque|pero|sino|mais|et|und|aber|weil|ma|perche|но|и|потому)\b"
)
_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_HANGUL = re.compile(r"[\uac00-\ud7a3]")
_NUMBER = re.compile(r"(?<![^\W_])\d+(?:[.,:/\-]\d+)*|\d+(?:[.,]\d+)*")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_HAN_NUMBER = re.compile(r"[一二两兩三四五六七八九十百千万萬〇零]+")
_TAG_QUESTION = re.compile(r",?\s*(?:nao e|ne|isn't (?:it|he|she)|n'est-ce pas|nicht wahr|verdad)\s*\?\s*$")
_SENTENCE_CHARS = 500
_TURNING_PREFIXES = ("un", "in", "im", "dis", "des", "non", "non-", "ir")


def polarity(text: str) -> bool:
    """Whether ``text`` is negated on balance: "no longer", "já não" and "dislikes" are; a double negation is not."""
    return negations(text) > 0


def cancelled(text: str) -> bool:
    """Whether ``text`` negates a negation ("not that I don't like it"), so that it claims neither side."""
    if negations(text) > 0:
        return False
    folded = _fold(_without_portuguese_no(text))
    if _HAN.search(folded) and not _KANA.search(folded):
        return any(
            _substrings(clause, words.CHINESE_HARMLESS, words.CHINESE_NEGATORS) >= 2 for clause in _clauses(folded)
        )
    for clause in _clauses(folded):
        tokens = _split_contractions(_TOKEN.findall(clause))
        turning = frozenset().union(*(LANGUAGES[code].negators for code in _languages(tokens)))
        if sum(token in turning for token in tokens) >= 2:
            return True
    return False


def same_claim_possible(a: str, b: str) -> bool:
    """Whether nothing in the words forbids that ``a`` and ``b`` say the same thing.

    False where their polarity differs, where their numbers or dates are not equal, or where one has a word and the
    other its opposite. True says nothing about what they mean otherwise: that is for embeddings and the model.
    """
    if negations(a) != negations(b) or numbers_and_dates(a) != numbers_and_dates(b):
        return False
    if _is_past(a) != _is_past(b):
        return False
    return not opposed(a, b)


def one_dated_closer(a: str, b: str) -> bool:
    """Whether ``a`` and ``b`` may say the same, but for a date that one of them gives and the other gives less of, or
    not at all: "in 2020" and "on 5 March 2020". As with ``same_claim_possible``, True only lets others decide."""
    if negations(a) != negations(b) or _is_past(a) != _is_past(b) or opposed(a, b):
        return False
    less, more = sorted((numbers_and_dates(a), numbers_and_dates(b)), key=len)
    months = any(word.startswith("month:") for word in more)
    return less < more and all(
        word.startswith("month:") or _YEAR.fullmatch(word) or (months and word.isdigit() and 1 <= int(word) <= 31)
        for word in more - less
    )


def negations(text: str) -> int:
    """How many clauses of ``text`` are negated, double negations cancelled and negative concord counted once."""
    return _negations_of_sentence(text) if len(text) <= _SENTENCE_CHARS else _negations(text)


def _negations(text: str) -> int:
    folded = _TAG_QUESTION.sub("", _fold(_without_portuguese_no(text)))
    total = sum(_negated_clause(clause) for clause in _clauses(folded))
    if _KANA.search(folded):
        return total + _substrings(folded, words.JAPANESE_HARMLESS, words.JAPANESE_NEGATORS) % 2
    if _HAN.search(folded):
        return total + _each_clause_substrings(folded, words.CHINESE_HARMLESS, words.CHINESE_NEGATORS)
    if _HANGUL.search(folded):
        korean = _each_clause_substrings(folded, words.KOREAN_HARMLESS, words.KOREAN_NEGATORS)
        return total + korean + sum(token in words.KOREAN_WORDS for token in _TOKEN.findall(folded))
    return total


def numbers_and_dates(text: str) -> frozenset[str]:
    """Every number and date word of ``text`` in one spelling: "9.000" is 9000, "março" is March, "três" is 3."""
    return _numbers_of_sentence(text) if len(text) <= _SENTENCE_CHARS else _numbers(text)


def _numbers(text: str) -> frozenset[str]:
    folded = _fold(text)
    found: set[str] = set()
    for year, month, day in _ISO_DATE.findall(folded):
        found |= {year, f"month:{int(month)}", str(int(day))}
    for number in _NUMBER.findall(_ISO_DATE.sub(" ", folded)):
        found.update(_plain_numbers(number))
    tokens = _TOKEN.findall(folded)
    languages = _languages(tokens)
    for token in tokens:
        found.update(_date_word(token))
        if (value := words.NUMBER_WORDS.get(token)) is not None and _is_number_here(token, languages):
            found.add(str(value))
    if _HAN.search(folded):
        found |= {run for run in _HAN_NUMBER.findall(folded) if run != "一"}
        found |= {f"day:{day}" for word, day in words.DAYS.items() if _HAN.search(word) and word in folded}
    if "may" in tokens and _is_month_of_may(folded):
        found.add("month:5")
    return frozenset(found)


def opposed(a: str, b: str) -> bool:
    """Whether one text has a word and the other its opposite ("bought"/"sold", "happy"/"unhappy")."""
    one, other = _content(a), _content(b)
    for left, right in words.OPPOSITES:
        a_left, a_right = _has(one, a, left), _has(one, a, right)
        b_left, b_right = _has(other, b, left), _has(other, b, right)
        if (a_left and not a_right and b_right and not b_left) or (a_right and not a_left and b_left and not b_right):
            # "hates" and "does not like" are one claim: the negation is counted already.
            if _counted(left, right) and _turned(a) == _turned(b):
                continue
            return True
    return _turned_by_prefix(one - other, other - one) or _turned_by_prefix(other - one, one - other)


def languages_of(text: str) -> frozenset[str]:
    """The languages (codes of ``negators.LANGUAGES``) that ``text`` looks most like; all where nothing tells."""
    return _languages(_TOKEN.findall(_fold(text)))


# Facts are compared pair by pair; whole messages come once, and would only fill the memory.
_negations_of_sentence = lru_cache(maxsize=1024)(_negations)
_numbers_of_sentence = lru_cache(maxsize=1024)(_numbers)


# -- words ---------------------------------------------------------------------------------------------------------


def _fold(text: str) -> str:
    """Lower case without Latin accents; apostrophes are kept, for "don't" and "n'aime"."""
    text = (
        " ".join(unicodedata.normalize("NFKC", text).casefold().split()).replace("\u2019", "'").replace("\u02bc", "'")
    )
    return unicodedata.normalize("NFC", _LATIN_MARKS.sub("", unicodedata.normalize("NFD", text)))


def _clauses(folded: str) -> list[str]:
    return [clause for clause in _CLAUSE_END.split(folded) if clause and clause.strip()]


def _content(text: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(_fold(text)))


def _has(tokens: frozenset[str], text: str, side: frozenset[str]) -> bool:
    if not tokens.isdisjoint(side):
        return True
    # Scripts without word gaps never make a token of one word.
    return any(_HAN.match(word) is not None and word in text for word in side)


def _languages(tokens: Iterable[str]) -> frozenset[str]:
    """The languages that ``tokens`` look most like; all of them where nothing tells."""
    scores = _language_scores(tokens)
    best = max(scores.values(), default=0)
    if best == 0:
        return frozenset(LANGUAGES)
    return frozenset(code for code, score in scores.items() if score == best) | {"ru", "ar", "hi"}


def _language_scores(tokens: Iterable[str]) -> dict[str, int]:
    telling = [token for token in tokens if token != "no"]
    return {
        code: sum(token in entry.common or token in entry.negators or token in entry.concord for token in telling)
        for code, entry in LANGUAGES.items()
        if entry.common
    }


def _without_portuguese_no(text: str) -> str:
    """``text`` with the Portuguese "no" (in the) taken apart into "em o", so that it is not read as a negation.

    It is taken for Portuguese where no language that negates with "no" is likelier, and stands behind a verb (a word
    in lower case) or the rest is Portuguese; Spanish has it behind the subject.
    """
    if " no " not in text:
        return text
    scores = _language_scores(_TOKEN.findall(_fold(text)))
    others = max(scores["en"], scores["es"], scores["it"])
    if scores["pt"] > others:
        return _NO.sub("em o ", text)
    if scores["pt"] == others:
        return _NO_BEHIND_LOWER_CASE.sub(r"\1 em o ", text)
    return text


def _negated_clause(clause: str) -> int:
    """1 where the clause is negated, 0 where it is not or where its negations cancel each other."""
    tokens = _split_contractions(_TOKEN.findall(clause))
    if len(tokens) < 2 and not any(_HAN.search(token) or _HANGUL.search(token) for token in tokens):
        return 0  # "No, …": an answer, not a negation of what follows
    languages = _languages(tokens)
    counted: set[int] = set()
    primary = concord = 0
    ended = False
    line = " ".join(tokens)
    for code in sorted(languages):
        entry = LANGUAGES[code]
        harmless = _positions(tokens, entry.harmless)
        for index, token in enumerate(tokens):
            if index in counted or index in harmless:
                continue
            if token in entry.negators:
                primary += 1
                counted.add(index)
            elif token in entry.concord:
                concord += 1
                counted.add(index)
        ended = ended or any(re.search(rf"\b{re.escape(phrase)}\b", line) for phrase in entry.endings)
    if "fr" in languages and {"ne", "n"} & set(tokens) and primary > 1:
        primary -= 1  # "ne … pas" is one negation in two words
    if primary == 0 and concord:
        primary = 1
    return (primary + ended) % 2


def _split_contractions(tokens: list[str]) -> list[str]:
    """Take words apart at their apostrophe: "don't" is do and not, "n'aime" is n and aime."""
    result: list[str] = []
    for token in tokens:
        if token.endswith("n't"):
            result += [token[:-3] or "do", "not"]
        elif "'" in token:
            result += [part for part in token.split("'") if part]
        elif token in ("cannot", "dont", "cant", "doesnt", "didnt", "wont", "isnt", "wasnt"):
            result += ["do", "not"]
        else:
            result.append(token)
    return result


def _positions(tokens: list[str], phrases: Iterable[str]) -> frozenset[int]:
    found: set[int] = set()
    for phrase in phrases:
        parts = phrase.split()
        for start in range(len(tokens) - len(parts) + 1):
            if tokens[start : start + len(parts)] == parts:
                found.update(range(start, start + len(parts)))
    return frozenset(found)


def _substrings(text: str, harmless: Iterable[str], found: Iterable[str]) -> int:
    for phrase in harmless:
        text = text.replace(phrase, " ")
    count = 0
    for word in sorted(found, key=len, reverse=True):
        count += text.count(word)
        text = text.replace(word, " ")
    return count


def _each_clause_substrings(folded: str, harmless: Iterable[str], found: Iterable[str]) -> int:
    harmless, found = list(harmless), list(found)
    return sum(_substrings(clause, harmless, found) % 2 for clause in _clauses(folded))


def _turned(text: str) -> bool:
    return negations(text) > 0


def _counted(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether one side of a pair of opposites is a negator itself."""
    return any(side & entry.negators for side in (left, right) for entry in LANGUAGES.values())


def _turned_by_prefix(plain: frozenset[str], prefixed: frozenset[str]) -> bool:
    negating = frozenset().union(*(entry.negators for entry in LANGUAGES.values()))
    return any(
        word.startswith(prefix) and len(word) - len(prefix) >= 4 and word[len(prefix) :] in plain
        for word in prefixed - negating
        for prefix in _TURNING_PREFIXES
    )


def _is_past(text: str) -> bool:
    folded = f" {_fold(text)} "
    return any(f" {marker} " in folded for marker in words.PAST_MARKERS)


# -- numbers -------------------------------------------------------------------------------------------------------


def _plain_numbers(number: str) -> set[str]:
    """One number, or the parts of a date or time, without leading zeros; "9.000" and "9,000" are 9000."""
    if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", number):
        return {_digits(re.sub(r"[.,]", "", number))}
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:,\d{3})+\.\d+", number):
        number = re.sub(r"[.,](?=.*[.,])", "", number)
    if re.fullmatch(r"\d+[.,]\d+", number):
        whole, fraction = re.split(r"[.,]", number)
        fraction = fraction.rstrip("0")
        return {_digits(whole) + ("." + _digits(fraction, keep=True) if fraction else "")}
    return {_digits(part) for part in re.split(r"[.,:/\-]", number) if part}


def _digits(text: str, *, keep: bool = False) -> str:
    plain = "".join(str(unicodedata.digit(character)) for character in text)
    return plain if keep else (plain.lstrip("0") or "0")


def _date_word(token: str) -> set[str]:
    found: set[str] = set()
    if (month := words.MONTHS.get(token)) is not None:
        found.add(f"month:{month}")
    if (weekday := words.WEEKDAYS.get(token)) is not None:
        found.add(f"weekday:{weekday}")
    if (day := words.DAYS.get(token)) is not None:
        found.add(f"day:{day}")
    return found


def _is_number_here(token: str, languages: frozenset[str]) -> bool:
    needed = words.NUMBER_WORDS_OF.get(token)
    return needed is None or languages & set(words.LANGUAGES) == {needed, "ru", "ar", "hi"}


def _is_month_of_may(folded: str) -> bool:
    return re.search(r"\b(?:in|last|next|since|until|by|of|early|late) may\b|\bmay (?:\d|of)", folded) is not None
