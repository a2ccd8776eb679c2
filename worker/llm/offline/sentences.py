"""From a message to its sentences and clauses, and which of them state something at all."""

from __future__ import annotations

import re

from worker.llm.offline import english, ordering, portuguese
from worker.llm.offline.text import UPPER, fold, plain, word_set, words

_ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Dra|Sr|Sra|Prof|Profa|St|Av|etc|vs|No|n|R|e\.g|i\.e|p\.ex|Jr|a\.m|p\.m|approx)\.$|\b[A-Z]\.$"
)
_END = re.compile(r"(?:[.!…]+|\?+[!?]*|[。！？])(?=\s|$|[)\]\"'])|[。！？]|\n+|;\s+|(?<=\s)[—–](?=\s)|\s[-•*]\s")

_PT_WORDS = word_set(
    "o a os as um uma de do da dos das no na nos nas em e é eu que não nao meu minha meus minhas se com por para "
    "pra pro está estou tenho sou foi fui ele ela você voce mas já ja há ha mais muito também tambem são ao à "
    "pelo pela isso este esta esse essa seu sua mora moro trabalho trabalha gosto gosta adoro tem temos ontem "
    "hoje nunca sempre como desde anos faz mal bem vou vai num numa dos pelos toda todo todos todas fui era tinha nem "
    "quando porque onde dele dela nosso nossa nossos nossas mesmo minhas ter dia mes"
)
_EN_WORDS = word_set(
    "the a an of in on at to and is am are was were i i'm my he she it they we you that this with for from not "
    "don't have has had his her their our but or as who live lives work works like likes love loves been be "
    "him by about now just also never some than then when where which will would can could there an two"
)

_QUESTION = re.compile(
    r"^(?:\W*(?:and|so|but|hey|oi|e|mas|entao)\b\W*)?(?:what|where|when|who|whom|whose|which|why|how|do|does"
    r"|did|is|are|am|was|were|can|could|would|"
    r"will|should|have you|has anyone|any (?:idea|chance)|qual|quais|onde|aonde|quem|por ?que|sera que|"
    r"voce (?:sabe|pode|tem|ja|conhece|acha|lembra)|sabe (?:se|qual|onde)|alguem|cade|quanto custa|quantos|quantas)\b"
)
_QUESTION_SUBJECT = re.compile(r"^(?:who|what|which|where|when|how|why|is|are|do|did|can|could|would|will)\b")
_HYPOTHESIS = re.compile(
    r"\b(?:if|unless|suppose|supposing|imagine|what if|even if|as if|otherwise|se eu|se a gente|se nos|caso eu"
    r"|imagina|imagine|suponha|"
    r"supondo|digamos|hypothetically|hipoteticamente|talvez se)\b|^(?:se|caso)\b(?! (?:chama|mudou|formou"
    r"|casou))|\bse (?:ele|ela|o|a|meu|minha|um dia)\b|"
    r"\bwould(?:n't)?\b|\bi'd\b(?! (?:been|never|already|just|lived|worked))|\bwe'd\b|\bmight have\b"
    r"|\bcould have\b|\bshould(?:n't)?\b"
)
_WISH = re.compile(
    r"^(?:i wish|i hope(?! to\b)|i'd|i would|hopefully|let's|let us|if only|queria|eu queria|gostaria|eu gostaria"
    r"|adoraria|tomara|quem me dera|espero(?! \w+(?:ar|er|ir)\b)|"
    r"eu espero(?! \w+(?:ar|er|ir)\b)|oxala|deus queira|bem que|vamos(?! (?:pra|pro|para|no|na|ao|nos|viajar|morar"
    r"|ter|casar"
    r"|comprar|passar|mudar|reformar|fazer)\b.* (?:em|n[oa]|dia|ano|mes|semana|amanha|que vem|daqui)\b)|bora"
    r"|pretendia|wish me|i want you|quero que|i need you"
    r"|preciso que|may (?:he|she|you|we|god))\b"
)
_CHATTER = re.compile(
    r"^(?:hi|hey|hello|yo|good (?:morning|afternoon|evening|night)|thanks?|thank you|thx|ok|okay|sure|yes|yeah"
    r"|yep|no|nope|lol|haha\w*|bye|"
    r"see you|talk to you|great|cool|nice|wow|oh|ah|hmm+|sorry|please|welcome|cheers|got it|makes sense|right"
    r"|exactly|of course|no problem|"
    r"oi|ola|bom dia|boa (?:tarde|noite)|e ai|eai|obrigad[ao]|valeu|vlw|blz|beleza|sim|nao|tchau|ate (?:mais"
    r"|logo|amanha)|abracos?|beijos?|"
    r"k{3,}|rs+|claro|certo|perfeito|combinado|otimo|legal|show|tudo (?:bem|bom|certo)|de nada|por favor"
    r"|com certeza|isso(?: mesmo| ai)?|verdade|"
    r"entendi|opa|fala|salve|parabens|nossa|que \w+)(?:[\s,!.]+(?:there|all|everyone|guys|gente|pessoal|you|too"
    r"|so much|a lot|mesmo|tudo|bem|bom|"
    r"voces?|dia|tarde|noite|amigos?|turma|galera|k{3,}|rs+|verdade|mais|later|obrigad[ao]|thanks?|very much"
    r"|muito|demais|again|de novo))*\W*$"
)
_SMALL_TALK = re.compile(
    r"^(?:i (?:see|know|agree|guess so|think so|don't know(?! how to)|do not know(?! how to)|understand|mean it"
    r"|don't mind|don't care"
    r"|have (?:a|one|some|another) "
    r"(?:question|doubt|idea)|need (?:some |your )?(?:help|advice)|can't believe|was (?:just )?(?:wondering"
    r"|kidding|joking)|forgot|got it|hear)\b"
    r"|i'?m (?:fine|ok|okay|good|great|back|here|done|in|on my way|coming|ready)(?=\W*$|,| (?:now|thanks|with that)\b)"
    r"|i'?m (?:sorry|kidding|joking|sure|not sure|glad|happy to|so happy|just (?:kidding|joking))\b"
    r"|(?:it|that|this|there)(?:'s| is| was| will| has| are| were)?\b|let me\b|"
    r"(?:agora |ja |ah |now )*(?:entendi|saquei|i get it|it makes sense)\b|(?:eu )?(?:nao sei(?! \w+(?:ar|er|ir)\b)"
    r"|sei la|sei|entendi|concordo|acho que sim|acho que nao|imagino"
    r"|to brincando"
    r"|estou brincando|ja volto|vou ver|vou pensar|"
    r"to (?:bem|aqui|chegando|indo)|estou (?:bem|otim[ao]|aqui|chegando|indo)|tenho (?:uma|outra) (?:duvida"
    r"|pergunta)|preciso de (?:ajuda|uma ajuda|um conselho)|"
    r"fico feliz|agradeco|desculpa|juro|vi (?:num|em um|no) (?:documentario|filme|video))\b|(?:isso|isto|aquilo)\b)"
)
_IMPERATIVE_EN = word_set(
    "remind show tell give send please help let find write make do don't stop keep remember forget check look "
    "open close call try add remove delete update translate explain summarize summarise list create ignore note "
    "take say use put go come wait start read book buy play set turn save imagine guess listen call"
)
_IMPERATIVE_PT = re.compile(
    r"^(?:me (?:mostra|diz|diga|fala|fale|conta|conte|ajuda|ajude|manda|mande|da|de|passa|lembra|lembre|explica"
    r"|explique|avisa|avise|envia|envie|chama|"
    r"faz|faca|liga|ligue|espera)\b|(?:olha|olhe|veja|guarda|guarde|lembra|lembre|anota|anote|escreve|escreva"
    r"|traduza|traduz|explica|explique|"
    r"lista|liste|mostra|mostre|espera|espere|deixa|deixe|faz favor|faca|cria|crie|manda|mande|resume|resuma"
    r"|apaga|apague|marca|marque|agenda|agende|corrige|corrija|procura|procure|pesquisa|pesquise|compara|compare"
    r"|calcula|calcule"
    r"|gera|gere|sugere|sugira|recomenda|recomende|indica|indique|monta|monte|abre|abra|coloca|coloque|adiciona"
    r"|adicione"
    r"|remove|remova|troca|troque|muda|mude|reescreve|reescreva"
    r"|vem|venha|vai la|para de|"
    r"pare|cuida|imagina|pensa|esquece|esqueca|toma|tome|nao (?:esquece|esqueca|deixa|deixe|se preocupe|fala"
    r"|fale))\b(?! [oa] (?!que)\w+ \w+ou\b))"
)
_SECOND_PERSON = re.compile(
    r"\b(?:you|your|yours|you're|you've|you'll|yourself|ya|u|voce|voces|vc|vcs|tu|te|ti|contigo|teu|tua|teus|tuas)\b"
)
_FILLER = re.compile(r"\b(?:(?:as )?you know|you see|como (?:eu )?(?:te |lhe )?disse(?: antes)?|as i (?:told you"
                     r"|said|mentioned)(?: before| earlier)?|viu|sabe|ne|"
                     r"like i said|did you know(?: that)?|guess what|adivinha|believe me|trust me|te juro"
                     r"|i(?:'m| am) telling you|let me tell you(?: that)?|"
                     r"olha (?:so|isso)(?: e)?|i (?:have|need|wanted|want) to tell you(?: that)?"
                     r"|(?:just )?so you know)\b[,:]?\s*")  # fmt: skip


def language(text: str, default: str = "en") -> str:
    """``pt`` or ``en``, by function words, spelling and verb forms; ``default`` where nothing tells."""
    tokens = [w.lower() for w in words(text)]
    portuguese_hits = sum(w in _PT_WORDS for w in tokens) + sum(bool(re.search(r"[ãõçáéíóúâêô]", w)) for w in tokens)
    english_hits = sum(w in _EN_WORDS for w in tokens) + len(re.findall(r"\b\w+'(?:s|m|re|ve|t|ll|d)\b", text))
    # A verb that only one of the two languages has tells as much as a function word.
    portuguese_hits += sum(len(w) > 3 and portuguese.is_verb(w) and english.base(w) is None for w in tokens)
    if (
        tokens
        and portuguese.first_person(tokens[0], guess=True)
        and not english.base(tokens[0])
        and tokens[0] not in _EN_WORDS
    ):
        portuguese_hits += 1
    if len(tokens) > 1 and english.is_finite(tokens[1]) and tokens[1] not in _PT_WORDS:
        english_hits += 1
    if portuguese_hits == english_hits:
        return default
    return "pt" if portuguese_hits > english_hits else "en"


def split_sentences(text: str) -> list[str]:
    """Sentences with their closing mark; abbreviations, initials and decimals do not end one."""
    out: list[str] = []
    start = 0
    for match in _END.finditer(text):
        piece = text[start : match.end()]
        if match.group().startswith(".") and _ABBREVIATION.search(text[start : match.start() + 1]):
            continue
        out.append(piece.strip())
        start = match.end()
    out.append(text[start:].strip())
    return [s for s in out if re.search(r"[^\W_]", s)]


def without_fillers(sentence: str) -> str:
    """The sentence without the small words that only hold the listener ("you know", "como eu disse,")."""
    out = sentence
    while True:
        filled = plain(out)
        match = _FILLER.search(filled)
        # A filler in mid-sentence ("she sabe nadar") is a verb; only at the head, or set off by a comma, does it fill.
        if not match or (match.start() > 0 and filled[: match.start()].rstrip()[-1:] != ","):
            return out
        out = (out[: match.start()].rstrip(" ,") + " " + out[match.end() :]).strip()


def states(sentence: str, *, continues: bool = False) -> bool:
    """Whether a sentence tells something: no question, wish, hypothesis, order, greeting or small talk.

    A clause that continues a sentence may lack its subject: "is a chef" is no question there, "take insulin" no order.
    """
    folded = fold(sentence).strip().lstrip("¿¡-–—•*… ").replace("’", "'")
    if re.search(r"[?？]\W*$", folded) or not re.search(r"[^\W_]", folded):
        return False
    opened = re.sub(r"^(?:and|so|but|well|oh|e|mas|entao|bom|ah|hey|oi|ola|hi|hello|ok)\b[,!]*\s+", "", folded)
    patterns = (
        (_HYPOTHESIS, _WISH, _CHATTER, _SMALL_TALK)
        if continues
        else (_QUESTION, _HYPOTHESIS, _WISH, _CHATTER, _SMALL_TALK)
    )
    if any(p.search(folded) or p.search(opened) for p in patterns) and not _tells_anyway(opened):
        return False
    # With accents: "bancária" is a job, "bancaria" a conditional.
    if any(portuguese.is_unreal(word.lower()) for word in words(sentence)):
        return False
    return continues or not _is_imperative(opened)


def _tells_anyway(folded: str) -> bool:
    """ "When I was a child I had asthma", "where I live it rains": a question word opens a clause of time or place."""
    return (
        bool(re.match(r"(?:when|quando|como|ha)\b.*\b(?:i|eu|we|he|she|ele|ela)\b", folded))
        and not _HYPOTHESIS.search(folded)
        and not (_QUESTION_SUBJECT.match(folded) and not folded.startswith("when"))
    )


def _is_imperative(folded: str) -> bool:
    first = words(folded)[:1]
    if _IMPERATIVE_PT.match(folded):
        return True
    if len(words(folded)) > 1 and first == ["me"]:  # "me traduz isso"; "me mudei" is in the first person
        verb = words(folded)[1]
        return (
            portuguese.first_person(verb, guess=True) is None and not portuguese.past(verb) and not verb.endswith("m")
        )
    return bool(first) and first[0] in _IMPERATIVE_EN and not re.match(r"\w+ (?:is|was|has|and i)\b", folded)


def addresses_reader(clause: str) -> bool:
    """A clause with "you" in it is about the conversation, not about the world."""
    return bool(_SECOND_PERSON.search(fold(clause)))


_NOT_AND_LIKE = rf"(?:[{UPPER}][^\W_]*|o|a)"
_JOINTS = re.compile(
    r"(?P<comma>,)?\s+(?P<word>and then|then(?= (?:i|we|he|she|my)\b)|por isso|and|but|so|because|although|though"
    r"|while|whereas|since(?= (?:i|he|she"
    r"|we|they)\b(?! (?:was|were|moved|got|left|met|had|came|started|joined|became|turned)\b))|yet|or|"
    r"mas|e|porém|porem|porque|pois|embora|enquanto|então|entao|só que|e depois)\s+|,\s+(?:(?:and|e)\s+)?",
    re.I,
)


def split_clauses(sentence: str, lang: str) -> list[str]:
    """Cut a sentence where a new subject or a new finite verb begins, and only if what stands before has a verb."""
    pieces: list[str] = []
    start = 0
    for match in _JOINTS.finditer(sentence):
        left, right = sentence[start : match.start()], sentence[match.end() :]
        if re.search(r"\bborn$", left):
            continue  # "born and raised in Cardiff" is one statement
        if has_verb(left, lang) and opens_clause(right, lang, comma_only=match["word"] is None):
            pieces.append(left)
            start = match.end()
    pieces.append(sentence[start:])
    return [p.strip(" ,") for p in pieces if p.strip(" ,")]


def has_verb(text: str, lang: str) -> bool:
    """Whether a finite verb stands in ``text``."""
    tokens = words(text)
    if lang == "pt":
        if re.search(r"\b(?:não|nunca|só|eu|também) como\b|^como\b| [a-zà-ú]{2,}ou\b", text, re.I):
            return True
        return any(
            portuguese.is_verb(t) or portuguese.first_person(t)
            for t in tokens
            if t.lower() not in ("como", "a", "para", "era")
        ) or bool(len(tokens) > 1 and portuguese.first_person(tokens[0], guess=True))
    lowered = [t.lower() for t in tokens]
    if any(t in english.MODALS or t in english.AUX or re.search(r"'(?:m|s|re|ve|ll|d)$", t) for t in lowered):
        return True
    if len(lowered) > 1 and lowered[0] in ("i", "we"):
        return True
    return any(english.is_finite(t) for t in lowered[1:]) or bool(lowered and english.is_past(lowered[0]))


_SUBJECT_EN = re.compile(
    rf"^(?:i|i'\w+|we|we'\w+|he|he'\w+|she|she'\w+|they|they'\w+|you|it|it's|my|our|his|her|their)\b|^(?:the "
    rf"|both )?[{UPPER}]",
    re.I,
)


def opens_clause(right: str, lang: str, *, comma_only: bool) -> bool:
    """Whether what follows a joint is a clause of its own rather than one more item of a list."""
    tokens = words(right)
    if not tokens:
        return False
    head = tokens[0].lower()
    if not comma_only and ordering.lead_last(right, lang) != right:
        return True
    if lang == "en" and re.match(r"^[A-Z][\w-]+'s (?:\d|an?\b|the\b|in\b|from\b|\w{2,}ing\b|\w{3,}ed\b)", right):
        return True
    if lang == "pt":
        return _opens_pt(tokens, comma_only=comma_only)
    if re.match(r"^(?:i|we|he|she|they|you|it)(?:'\w+)?$", head):
        return len(tokens) > 1
    if head in ("my", "our", "his", "her", "their") or tokens[0][0].isupper() or head in ("the",):
        return _subject_then_verb_en(tokens)
    return not comma_only and english.starts_predicate(tokens)


def _subject_then_verb_en(tokens: list[str]) -> bool:
    """ "my father died", "Max goes to school": a noun phrase of a few words, then a finite verb."""
    for index, token in enumerate(tokens[1:7], start=1):
        lowered = token.lower()
        if lowered in ("who", "which", "that", "and", "of", "in", "at", "with", "to", "for", "from"):
            return False
        if (
            lowered in english.MODALS
            or lowered in english.AUX
            or english.is_third(lowered)
            or re.search(r"'s$", lowered)
        ):
            return index > 1 or tokens[0][0].isupper() or lowered != "s"
    return False


def _opens_pt(tokens: list[str], *, comma_only: bool) -> bool:
    rest = list(tokens)
    pronoun = rest[0].lower() in ("eu", "nós", "ele", "ela", "eles", "elas", "você")
    if len(rest) > 1 and (pronoun or [w.lower() for w in rest[:2]] == ["a", "gente"]):
        return True
    adverbs = 0
    while rest and (rest[0].lower() in portuguese.ADVERBS or rest[0].lower() in ("me", "se")):
        rest, adverbs = rest[1:], adverbs + 1
    if not rest:
        return False
    head = rest[0].lower()
    if adverbs and fold(tokens[0]) in ("nao", "nunca", "ja", "so", "me") and portuguese.first_person(head):
        return True  # "então não como pão": what follows "não" is a verb
    if portuguese.first_person(head) and head not in _AMBIGUOUS | _NOUN_FORMS:
        return not comma_only or adverbs > 0 or len(rest) > 1
    if head in _AMBIGUOUS and len(rest) > 1 and fold(rest[1]) in _AFTER_VERB_PT:
        return True
    if portuguese.third_person(head) and head not in ("a", "para", "era") and (adverbs > 0 or not comma_only):
        return head not in _NOUN_FORMS or (len(rest) > 1 and fold(rest[1]) in _AFTER_VERB_PT)
    if head in ("o", "a", "os", "as", "meu", "minha", "meus", "minhas", "nosso", "nossa") or rest[0][0].isupper():
        return any(
            portuguese.third_person(t) and t.lower() not in _NOUN_FORMS and t.lower() not in ("era", "a", "para")
            for t in rest[1:6]
        )
    return False


_AMBIGUOUS = word_set(
    "trabalho uso gasto custo conto gosto canto passo almoço jogo visto consigo amo era como ponto fora via"
)
# Nouns that are spelt like third person verbs.
_NOUN_FORMS = word_set(
    "casa marca compra conta planta dança luta pesca janta cozinha viagem festa fala volta troca ajuda busca "
    "prova moda bebida comida cria estuda conversa corte parte sorte toque vive leva pesquisa cura cama para "
    "sobre veste salta rema escola cola come cuida sala pinta vela ora velas vem vê pede mede"
) - word_set("estuda vive leva vem vê pede mede come pinta cuida veste cria")
_AFTER_VERB_PT = word_set(
    "a o as os um uma de do da em no na nos nas com por para pra pelo pela que muito mais bem mal meu minha seu "
    "sua como todo toda todos sempre desde ha dois tres quatro cinco uns umas ate so nao ingles espanhol"
)
