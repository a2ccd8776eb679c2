"""Which sentences of a message claim something, and which ask, suppose, quote or give orders (behaviour: 14).

By plain rules, as a second pair of eyes on the model: what stands only in a sentence that claims nothing is no more
than speculation, whatever confidence the model gave it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from worker.write.names import fold


class Kind(StrEnum):
    """What a sentence does. Anything but a claim is worth 0.40 at most and carries no edge."""

    CLAIM = "claim"
    QUESTION = "question"
    HYPOTHETICAL = "hypothetical"
    QUOTED = "quoted"
    SPEECH = "quoted_speech"  # somebody else's words: no fact about the speaker
    INSTRUCTION = "instruction"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A stretch of the message and what it does; ``stems`` are its words, cut so that inflections meet."""

    text: str
    kind: Kind
    stems: frozenset[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_JSON_KEY = re.compile(r"[\"'](?:facts?|entities|subject|relations|action|fact_text)[\"']\s{0,5}:")
_TAGS = re.compile(
    r"</?\s*(?:message|system|user|assistant|instructions?|prompt|data|im_start|im_end)\b[^<>\n]*>|<\|(?:im_start|im_end|system|user)\|>",
    re.I,
)
_ROLE_LINE = re.compile(r"(?:^|(?<=[\s>.]))(?:SYSTEM|SISTEMA|ASSISTANT|INSTRUCTIONS?)\s*:[^\n]*")
_QUOTE_LINE = re.compile(r"^[ \t]*>[^\n]*", re.M)
# In German a day ends in a full stop ("am 27. August") and no sentence with it.
_DAY_STOP = r"\.(?=\s(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez))"
_SENTENCE = re.compile(
    rf"[^.!?…。！？؟\n]*(?:(?:\d[.,]\d|{_DAY_STOP}|\.(?=\S))[^.!?…。！？؟\n]*)*(?:[.!?…。！？؟]+[\"'”’»)\]]*|\n|$)"
)
_START = r"(?:^|[,:;>—–]\s*|\b(?:please|now|por favor|agora|then|então)\b,?\s*)\W{0,3}"
_ORDERS = re.compile(
    rf"{_START}(?:ignore|disregard|forget|override|bypass)\b.{{0,40}}"
    r"\b(?:instruct\w*|prompts?|rules?|above|previous|everything|asked|told)\b"
    rf"|{_START}(?:ignor[ea]|ignorem|esque[cç]a|desconsidere|olvida|ignoriere|ignorez|oublie[zr]?|dimentica)\b.{{0,40}}"
    r"\b(?:instru\w*|pedid\w*|regras?|reglas?|anterior\w*|acima|arriba|prompt\w*|"
    r"règles?|regeln|anweisung\w*|istruzion\w*|precedent\w*)\b"
    rf"|{_START}(?:delete|erase|remove|apague|apaga|remova|borra|elimina|exclua|lösche|supprime)\b.{{0,30}}"
    r"\b(?:facts?|fatos?|hechos?|memor\w+|fakten|faits?)\b"
    rf"|{_START}(?:return|reply with|respond with|output|devolva|responda|retorne|devuelve)\b.{{0,20}}"
    r"\b(?:only|just|json|só|apenas|somente|solo)\b"
    r"|\b(?:ignor\w+|disregard|forget|bypass|override|esque\w+|desconsider\w+|olvid\w+)\s+(?:\w+\s+){0,3}"
    r"(?:(?:previous|prior|above|earlier|system)\s+(?:instruct\w*|prompts?|rules?)"
    r"|(?:instru[cç]\w*|regras|reglas|prompts?)\s+(?:anterior\w*|acima|d[oe] sistema|precedent\w*))"
    r"|(?:忽略|无视|無視).{0,12}(?:指令|指示|提示|规则|要求)",
    re.I,
)
_FIRST_PERSON_START = re.compile(
    r"^\W*(?:i|i'm|i’m|i've|i’ve|my|we|eu|meu|minha|nós|a gente|yo|mi|je|j'ai|mon|ma|ich|mein|meine|io|mio|mia)\b"
    r"|^\W*我",
    re.I,
)
# Somebody's words in quotation marks, announced as such. Quoted titles and nicknames are shorter, or not announced.
_SAYING = (
    r"(?:\b(?:said|says|say|told \w+|wrote|writes|asked|replied|texted|quote[ds]?|disse|diz|falou|fala|escreveu|"
    r"perguntou|respondeu|contou|dijo|dice|escribi[oó]|pregunt[oó]|a dit|dit|écrit|sagte|sagt|schrieb|ha detto|"
    r"dice|scrive|let(?:ra|ras)|lyrics?|сказал[аи]?|говорит|написал[аи]?)\b|说|說|写道|問|问|言った|言って|と書い|말했|قال)"
)
_OPEN, _CLOSE = '"“«„「『《', '"”»“」』》'
# A quotation is at least this long; in scripts that put a word into a character or two it is shorter.
_INNER = rf"[^{_OPEN}{_CLOSE}\n]"
_QUOTED = rf"({_INNER}{{12,400}}|(?={_INNER}{{0,200}}[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]){_INNER}{{4,400}})"
_SPEECH = re.compile(
    rf"(?:{_SAYING}[^{_OPEN}\n]{{0,30}}|[:：]\s*)[{_OPEN}]{_QUOTED}[{_CLOSE}]"
    rf"|[{_OPEN}]{_QUOTED}[{_CLOSE}](?=[\s,.!?—–-]{{0,4}}(?:\w+ ){{0,2}}{_SAYING}|[\s,]{{0,2}}と(?:言|書|話))",
    re.I,
)
_SUPPOSES = re.compile(
    r"^\W*(?:if|what if|suppose|supposing|imagine|let's say|hypothetically|in theory|i wish|if only"
    r"|se|e se|imagina|imagine|suponha|supondo|hipoteticamente|caso|quem me dera|tomara|oxal[aá]|queria que"
    r"|si|y si|supongamos|imag[ií]nate|ojal[aá]|et si|supposons|wenn|falls|was wäre|angenommen|magari"
    r"|如果|假如|要是|もし|만약|если|لو)\b",
    re.I,
)
_UNREAL = re.compile(
    r"\b(?:would|could|might|were to|'d|i wish|if only|had i|hypothetically|suppose|imagine|what if|in theory)\b"
    r"|\w(?:aria|eria|iria|ariam|eriam|iriam|aríamos|asse|esse|isse|assem|essem|issem|osse|ossem)\b|\bfosse\b"
    r"|\bseria\b"
    r"|\w(?:aría|ería|iría|arían|erían|iera|iese|uviera|uviese)\b|\b(?:fuera|fuese)\b|\bojal[aá]\b"
    r"|\btomara\b|quem me dera"
    r"|\w(?:erais|erait|irais|irait|rions)\b|\b(?:würde|würden|hätte|wäre|könnte)\b|\w(?:erei|erebbe|irebbe|assi|essi)\b"
    r"|如果|假如|要是|もし|만약|\bбы\b",
    re.I,
)
_ASKS = re.compile(
    r"^\W*(?:who|what|when|where|why|how|which|whose|is|are|am|was|were|do|does|did|can|could|will|would|should|shall|may|"
    r"has|have|"
    r"quem|o que|que|quando|onde|por ?qu[eê]|como|qual|quais|quanto|ser[aá] que|voc[eê]|vc"
    r"|me (?:mostra|diz|fala|conta)|sabe|"
    r"qui[eé]n|qu[eé]|cu[aá]ndo|d[oó]nde|c[oó]mo|cu[aá]l|cu[aá]nto|sabes|puedes|qui|quoi|quand|où|pourquoi|comment|quel|est-ce|"
    r"wer|was|wann|wo|warum|wie|welche|kannst|chi|cosa|dove|perch[eé]|quale|se|if|si|wenn)\b",
    re.I,
)
_QUESTION_END = re.compile(r"[?？؟][\"'”’»)\]]*\s*$")
_CJK_QUESTION_END = re.compile(r"(?:吗|嗎|呢|ですか|ますか|でしょうか|까요?|나요|니\?)\s*[。.？?]?\s*$")
_CLAUSE = re.compile(r"[,;:，、；]\s*|\s[—–-]\s")
_STOPWORDS = _words(
    "the a an and or but of to in on at for with from by is are was were be been has have had do does did not no "
    "that this it its as he she they his her their him them who which will would can o os as um uma de do da dos "
    "das em na nas nos e com para pra por que se seu sua ao foi vai tem ter ser esta estao sao era ele ela nao "
    "mais ja muito el la los las un del en y su al es no le lo les der die das ein eine und mit fur von zu im ist "
    "sind hat nicht il gli di che per con una sono et est dans sur pour i my me we our you your eu meu minha yo "
    "mi je mon ma ich mein io mio mia s t"
)


def sentences(text: str) -> list[Sentence]:
    """The sentences of ``text`` in order, each with its kind. A question's leading statement stands apart from it."""
    found: list[Sentence] = []
    if pasted := _pasted_json(text):
        found.append(_sentence(pasted, Kind.INSTRUCTION))
        text = text.replace(pasted, "\n")
    for pattern, kind in ((_ROLE_LINE, Kind.INSTRUCTION), (_QUOTE_LINE, Kind.QUOTED)):
        found += [_sentence(match.group(), kind) for match in pattern.finditer(text)]
        text = pattern.sub("\n", text)
    for match in _SPEECH.finditer(text):
        found.append(_sentence(_words_of_others(match), Kind.SPEECH))
    text = _SPEECH.sub(lambda match: match.group().replace(_words_of_others(match), " "), text)
    tags = bool(_TAGS.search(text))
    text = _TAGS.sub("\n", text)
    for match in _SENTENCE.finditer(text):
        said = match.group().strip()
        if said and any(char.isalnum() for char in said):
            found += _parts(said)
    if tags:
        found.append(Sentence("", Kind.INSTRUCTION, frozenset()))
    return found


def _words_of_others(match: re.Match[str]) -> str:
    return match.group(1) or match.group(2)


def has_instructions(claims: list[Sentence]) -> bool:
    """Whether the message talks to the reader of it ("ignore the above …"), or carries mark-up that pretends to."""
    return any(sentence.kind is Kind.INSTRUCTION for sentence in claims)


def kind_behind(text: str, claims: list[Sentence], ignoring: frozenset[str] = frozenset()) -> Kind:
    """The kind of the sentence that says what ``text`` says: the one that shares most words with it.

    A claim wins a tie. ``ignoring`` are stems that tell nothing (the subject's own name, the speaker's). Where no
    sentence shares a word: a claim if there is any claim in the message.
    """
    said = [sentence for sentence in claims if sentence.text]
    if not said:
        return Kind.CLAIM
    wanted = stems(text) - ignoring
    scored = [(len(overlap(wanted, sentence.stems)), sentence.kind is Kind.CLAIM, sentence.kind) for sentence in said]
    best = max(scored, key=lambda item: item[:2])
    if best[0] == 0:
        return Kind.CLAIM if any(sentence.kind is Kind.CLAIM for sentence in said) else said[0].kind
    return best[2]


def stems(text: str) -> frozenset[str]:
    """The content words of ``text``, folded; in scripts without word gaps, every two neighbouring characters."""
    found: set[str] = set()
    for word in fold(text).split():
        if word in _STOPWORDS:
            continue
        if word.isascii() or word[0] < "\u0e00":
            found.add(word)
        else:
            found.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    return frozenset(found)


def overlap(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """The words of ``one`` that ``other`` has too, up to their endings ("casei" and "casou", "lives" and "living")."""
    if not one or not other:
        return frozenset()
    heads = _heads(other)
    if heads.isdisjoint(_sought(one)):  # nearly always, and a long message has thousands of sentences
        return frozenset()
    return frozenset(word for word in one if not heads.isdisjoint(_heads_of(word, "<", ">")))


@lru_cache(maxsize=1024)
def _heads(words: frozenset[str]) -> frozenset[str]:
    return frozenset(head for word in words for head in _heads_of(word, ">", "<"))


@lru_cache(maxsize=1024)
def _sought(words: frozenset[str]) -> frozenset[str]:
    return frozenset(head for word in words for head in _heads_of(word, "<", ">"))


def _heads_of(word: str, long: str, short: str) -> tuple[str, ...]:
    """What two inflections of a word have in common: four letters of two long ones, three where one of them is short.

    The marks see to that: what a long word of one text offers with ``long``, only a short one of the other asks for.
    """
    if len(word) <= 3 or not word.isalpha():
        return (word,)
    return (word[:3], word[:3] + short) if len(word) <= 5 else (word[:4], word[:3] + long)


def _pasted_json(text: str) -> str:
    """From the first bracket to the last one, where between them stands a key of our own replies; else ""."""
    if not (key := _JSON_KEY.search(text)):
        return ""
    opens = [place for place in (text.find("{"), text.find("[")) if 0 <= place < key.start()]
    end = max(text.rfind("}"), text.rfind("]"))
    return text[min(opens) : end + 1] if opens and end > key.end() else ""


def _sentence(text: str, kind: Kind) -> Sentence:
    return Sentence(text.strip(), kind, stems(text))


def _parts(said: str) -> list[Sentence]:
    if _ORDERS.search(said):
        # "Forget what I told you: I live in Leeds now" is an order and a claim.
        own = [clause for clause in _CLAUSE.split(said) if _FIRST_PERSON_START.search(clause)]
        rest = " ".join(clause for clause in _CLAUSE.split(said) if clause not in own)
        return [_sentence(rest, Kind.INSTRUCTION), *(_sentence(clause, Kind.CLAIM) for clause in own)]
    if _SUPPOSES.search(said) and (_UNREAL.search(said) or said[0] in "如假要"):
        return [_sentence(said, Kind.HYPOTHETICAL)]
    if not (_QUESTION_END.search(said) or _CJK_QUESTION_END.search(said)):
        return [_sentence(said, Kind.CLAIM)]
    clauses = [clause for clause in _CLAUSE.split(said) if clause.strip()]
    # "I just moved to Recife, do you know a gym?" says one thing and asks another.
    told = 0
    for clause in clauses[:-1]:
        if len(clause.split()) < 3 or _ASKS.search(clause):
            break
        told += 1
    if not told:
        return [_sentence(said, Kind.QUESTION)]
    at = said.find(clauses[told - 1]) + len(clauses[told - 1])
    return [_sentence(said[:at], Kind.CLAIM), _sentence(said[at:], Kind.QUESTION)]
