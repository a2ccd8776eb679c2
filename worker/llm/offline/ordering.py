"""Puts a sentence into the order that is read: subject, verb, and whatever opened it at the end.

"These days I'm freelancing" is "I'm freelancing these days"; "Not a huge fan of horror films" lacks its "I'm"; "We
split up, me and Gareth" says its subject at the end. Questions, orders and what is not recognised stay as they are.
"""

from __future__ import annotations

import re

from worker.llm.offline import english, portuguese
from worker.llm.offline.names import NAME
from worker.llm.offline.text import plain, word_set, words

_UNIT = r"(?:days?|weeks?|months?|years?|decades?|mornings?|evenings?|nights?|weekends?|summers?|winters?|hours?)"
_NUMBER = r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|a few|a couple of|some|\d+)"
_LEAD_EN = re.compile(
    rf"^(?P<lead>(?i:(?:in|on|at|for|during|since|after|before|until|by|over|around|throughout|as|besides|apart from"
    rf"|outside|thanks to|due to|instead of|with|every|each|last|next|this|these|most|some|back in|back when|to"
    rf"|once an?|twice an?|(?:{_NUMBER}) times an?|more than|almost|about|ever since|when i was|when we were"
    rf"|the (?:day|week|month|year|other day|first time|last time|summer|winter|following))\b[^,;:.!?]{{1,60}}?"
    rf"|(?:about |around |almost |nearly |over |just )?{_NUMBER} {_UNIT} (?:ago|later|back)"
    rf"|(?:nowadays|lately|recently|presently|sometimes|usually|normally|often|occasionally|eventually|originally"
    rf"|previously|formerly|yesterday|tomorrow|tonight|today|at present|at the moment|right now|for now|until recently"
    rf"|growing up|back home|over here|as a rule|whenever possible)))(?P<comma>,)? "
    rf"(?P<r>(?:I|[Ww]e|[Mm]y|[Oo]ur|i)\b.+|(?<=, )(?:[Hh]e|[Ss]he|{NAME}(?! I\b)) .+)$"
)
_CLAUSE_EN = re.compile(
    r"^(?P<lead>(?:when|while|before|after|since|until|once|as soon as|whenever|the (?:day|year|summer|month) (?:i|we))"
    r" [^,;:.!?]{3,60}), (?P<r>(?:I|we|my|our|he|she|i)\b.+)$",
    re.I,
)
_DOUBLED_EN = re.compile(
    r"^[Ww]e (?P<r>.+?), (?:(?:me|myself) and (?P<x>(?:my )?[\w '-]+?)|(?P<y>(?:my )?[\w '-]+?) and (?:me|I))"
    r"(?P<t>,? .*)?$"
)
_ME_FIRST = re.compile(
    rf"^(?:Me|me|Myself|myself) (?:and|&) (?P<x>(?:[Mm]y|[Oo]ur) (?:[\w-]+ ){{0,2}}?[\w-]+(?: {NAME})?"
    rf"|{NAME}) (?P<r>.+)$"
)
_ME_LAST = re.compile(
    rf"^(?P<x>(?:[Mm]y|[Oo]ur) (?:[\w-]+ ){{0,2}}?[\w-]+(?: {NAME})?|{NAME}) and (?:me|myself) (?P<r>.+)$"
)

_STATE = (
    r"(?:allergic|intolerant|scared|terrified|afraid|petrified|addicted|obsessed|married|engaged|divorced|widowed"
    r"|separated|pregnant|single|unemployed|self-employed|retired|based|vegan|vegetarian|pescatarian|hooked|keen|fond"
    r"|(?:really |so |super |totally |very )?into|proud|fluent|lactose|diabetic|coeliac|celiac|left-handed"
    r"|right-handed|deaf|colou?r-?blind|homesick|sober|stuck"
    r"|used to|crazy about|bad at|good at|terrible at|great at|originally from|half|from|off to|on (?:holiday"
    r"|vacation|an? |maternity|paternity|parental|sick|leave|medication|antibiotics|sabbatical|insulin)|in (?:my|love"
    r"|hospital|therapy|recovery)|between jobs|about to|due to|expecting|halfway)"
)
_NOT_STATE = re.compile(
    r"^not (?:really |very |too |that |so |much |exactly |particularly |overly )*(?:an? |much of an? |(?:big|keen"
    r"|hot) on"
    r"|into\b|fond of|good at|great at|crazy about|allergic|\w+ing\b|married|single|from\b)",
    re.I,
)
_KIN = (
    r"(?:mother|father|mum|mom|dad|grandmother|grandfather|owner|member|parent|fan|supporter|veteran|survivor"
    r"|native|graduate|resident|follower|lover)"
)
_NOUN_STATE = re.compile(
    rf"^(?:(?:big|huge|massive|lifelong|proud|former|new|single|working|long-time|longtime|keen|avid|recent) )*{_KIN}"
    rf" (?:of|to)\b|^(?:big|huge|massive|lifelong|avid|keen) [\w ]{{2,25}}(?:fan|supporter|reader|runner|cyclist"
    rf"|gardener|cook|baker|gamer|collector|swimmer|hiker)\b",
    re.I,
)
_STATIVE = re.compile(
    r"^(?:(?:also|still|really|absolutely|just|usually|mostly|sometimes|often) )*(?:(?:love|hate|prefer|enjoy|adore"
    r"|dislike|miss|own) (?!it\b|that\b|this\b|you\b|these\b|your\b|to (?:hear|see))"
    r"|live (?:in|with|near|on|alone|by|with)\b|work (?:in|at|for|as|nights|from home|part-time|full-time|freelance)\b"
    r"|speak (?=[A-Z])|used to\b|play (?:the )?[\w ]+ (?:in|for|every|on)\b)"
)
_NO_GERUND = re.compile(
    r"^(?:looking forward|just checking|checking|wondering|asking|hoping|speaking of|talking|thanking|following up"
    r"|sending"
    r"|sharing|wishing|kidding|joking|nothing|something|anything|everything|morning|evening|according|regarding"
    r"|including|during|being|having said)\b",
    re.I,
)
_AUX_HEAD = re.compile(
    r"^(?:can't|cannot|couldn't|didn't|haven't|won't|don't (?:drink|eat|like|own|have|smoke|speak|drive|live|need|watch"
    r"|use|play|enjoy|do|sleep|cook|really|even|usually))\b(?! (?:you|we|i)\b)",
    re.I,
)
_SOFT = word_set("currently recently newly happily just finally always also still now already actually originally so")


_TODAY_EN = re.compile(
    r"^(?:it's|it is|today is|today's) (?P<w>(?:my|our) [\w' -]+?)(?P<t> (?:today|tomorrow|on .+|next \w+|this \w+))?$",
    re.I,
)
_TODAY_PT = re.compile(
    r"^(?P<t>hoje|amanhã|amanha|segunda|terça|quarta|quinta|sexta|sábado|domingo)(?:-feira)? (?:é|faz"
    r"|completa) (?P<w>(?:o |a )?(?:(?:meu|minha|nosso|nossa)|(?:aniversário|casamento|formatura|prova"
    r"|festa) d[aeo]) [\w ]+)$",
    re.I,
)


def plain_order(sentence: str, lang: str) -> str:
    """``sentence`` with its subject first, as far as a rule knows how; else unchanged."""
    if "?" in sentence[-3:]:
        return sentence
    mark = re.search(r"[.!…\s]*$", sentence)
    body = sentence[: mark.start()] if mark else sentence
    body = _said_otherwise(body, lang) or (_english(body) if lang == "en" else _portuguese(body))
    return body + (mark.group().strip() if mark else "")


_PRESENTS = re.compile(
    rf"^(?:(?:[Tt]his|[Tt]hat|[Hh]ere)(?:'s| is)|[Mm]eet|[Ee]ss[ea] é|[Ee]st[ea] é|[Aa]quel[ea] é|[Ee]is) (?:[oa] )?"
    rf"(?P<w>(?:my|our|meu|minha|nosso|nossa) (?:[^\W\d_]+ ){{0,2}}?[^\W\d_]+),? (?:[oa] )?(?P<n>{NAME})$"
)
_HERE_IS = re.compile(r"^[Hh]ere(?:'s| is) (?P<w>(?:my|our) [^:]{3,40}): (?P<v>.+)$")
_NAME_NOT = re.compile(
    rf"^(?P<w>[Mm]y (?:\w+ )?name|[Mm]eu (?:sobre)?nome) (?:isn't|is not|não é) {NAME},? (?:but |mas )?(?:it's|it is"
    rf"|é) (?P<n>{NAME})$"
)


def _said_otherwise(body: str, lang: str) -> str | None:
    """ "This is my wife, Anneke", "my name isn't Carl, it's Karl": the plain sentence that is meant."""
    if m := _PRESENTS.match(body):
        return f"{m['w'][0].upper()}{m['w'][1:]} {'se chama' if lang == 'pt' else 'is called'} {m['n']}"
    if m := _HERE_IS.match(body):
        return f"{m['w'][0].upper()}{m['w'][1:]} is {m['v']}"
    if m := _NAME_NOT.match(body):
        return f"{m['w']} {'é' if lang == 'pt' else 'is'} {m['n']}"
    return None


def lead_last(clause: str, lang: str) -> str:
    """A clause inside a sentence ("so every January I fly to Madeira") with its lead behind it."""
    if lang == "pt":
        return _lead_last_pt(clause)
    if m := _CLAUSE_EN.match(clause):
        return _turned(m["lead"], m["r"])
    if (m := _LEAD_EN.match(clause)) and _is_lead(m["lead"], comma=bool(m["comma"])):
        return _turned(m["lead"], m["r"])
    return clause


def _english(body: str) -> str:
    if m := _TODAY_EN.match(body):
        return f"{m['w'][0].upper()}{m['w'][1:]} is{m['t'] or ' today'}"
    if m := _ME_FIRST.match(body) or _ME_LAST.match(body):
        body = f"{m['x'][0].upper()}{m['x'][1:]} and I {m['r']}"
    if m := _DOUBLED_EN.match(body):
        other = m["x"] or m["y"]
        return f"{other[0].upper()}{other[1:]} and I {m['r']}{m['t'] or ''}"
    turned = lead_last(body, "en")
    return turned if turned != body else _with_i(body)


def _is_lead(lead: str, *, comma: bool) -> bool:
    tokens = words(lead)
    if tokens[0].lower() == "to":  # "To stay fit I swim"
        return len(tokens) > 1 and english.base(tokens[1]) == tokens[1].lower()
    if re.search(r"\b(?:who|which|that|and|but|if)$", lead, re.I):
        return False
    if re.match(r"when (?:i was|we were)\b", lead, re.I):
        return True
    return comma or not any(english.is_third(t) or t.lower() in english.AUX for t in tokens[1:] if t != "s")


def _turned(lead: str, rest: str) -> str:
    """The lead behind the rest; a name keeps its capital."""
    word = lead.split()[0]
    low = lead if re.match(rf"{NAME}", lead) and word.isupper() and len(word) > 1 else lead[0].lower() + lead[1:]
    cut = re.search(
        r",? (?:(?:and|but|so|mas|e|então) (?=(?:I|we|my|then|eu|depois)\b)|then (?=I\b|we\b))"
        r"|, (?=depois )",
        rest,
    )
    first, after = (rest[: cut.start()], rest[cut.start() :]) if cut else (rest, "")
    return f"{first[0].upper()}{first[1:]} {low}{after}"


def _with_i(body: str) -> str:
    """Diary style: the subject "I" (and a form of "be" or "have") is left out."""
    tokens = words(body)
    if len(tokens) < 3:
        return body
    low = body[0].lower() + body[1:]
    bare = low
    while bare.split()[0].lower() in _SOFT and len(bare.split()) > 2:
        bare = bare.split(" ", 1)[1]
    if re.match(r"^(?:always|never) (?:been|seen|done|gone|eaten|flown|driven|known|written|taken|ridden|had)\b", low):
        return f"I've {low}"
    if re.match(r"^never \w+(?:ed|t)\b|^never (?:got|had|learned|went|met|saw)\b", low):
        return f"I {low}"
    if re.match(r"^been \w+", bare):
        return f"I've {low}"
    if re.match(r"^born (?:and \w+ )?(?:in|on|to)\b", low):
        return f"I was {low}"
    if _NOT_STATE.match(low) or re.match(rf"^{_STATE}\b ?\w", bare, re.I):
        return f"I'm {low}"
    if _NOUN_STATE.match(low):
        return f"I'm a {low}"
    if _AUX_HEAD.match(low) or _STATIVE.match(low):
        return f"I {low}"
    return f"I'm {low}" if _is_progressive(bare, low) else body


def _is_progressive(bare: str, low: str) -> bool:
    """ "Learning the cello", not "Learning Polish is hard"."""
    head, *rest = words(bare)
    if not head.endswith("ing") or english.base(head) is None or _NO_GERUND.match(bare):
        return False
    finite = [t for t in rest if t.lower() in english.AUX | english.MODALS or english.is_third(t)]
    return not finite and (bare == low or head.endswith("ing")) and bool(rest)


_LEAD_PT = re.compile(
    r"^(?:hoje em dia|ultimamente|atualmente|recentemente|no momento|por enquanto|n[oa]s?|em|de|à|às|ao|aos"
    r"|tod[oa]s?|durante|desde|antes|depois|ate|até|por|pra|para|com|sem|aqui|la|lá|as vezes|geralmente|normalmente"
    r"|antigamente|ano|mes|mês|semana|sabado|sábado|domingo|segunda|terca|terça|quarta|quinta|sexta|ontem|hoje|amanha"
    r"|amanhã|anteontem|há|ha|faz|tem|um|uma|dois|duas|tres|três|uns|umas|nest[ea]|ness[ea]|daqui|logo|além|alem"
    r"|apesar|graças|quase|mais|duas|raramente|frequentemente|uma|vez)$"
)
_NOUNISH_PT = word_set("trabalho uso gasto custo conto gosto canto passo almoço jogo visto amo como ponto via caso "
                       "curso "
                       "estudo treino parto conserto pinto peso sinto era fora fui são vendo leio")  # fmt: skip
_BEFORE_NOUN = word_set("o a os as um uma do da dos das no na nos nas de em ao à por pelo pela meu minha seu sua este "
                        "esse todo toda cada pra para pro com sem segundo")  # fmt: skip
_CLAUSE_PT = re.compile(
    r"^(?P<lead>(?:quando|antes de|depois de|depois que|desde que|enquanto|assim que|sempre que|toda vez que|logo que"
    r"|na época que|no ano que) [^,;:.!?]{3,60}), (?P<r>.+)$",
    re.I,
)
_SINCE_PT = re.compile(
    r"^(?:faz|há|ha|tem) (?P<t>(?:uns |umas |mais de |quase |cerca de )?[\w ]{2,24}?) que (?P<r>.+)$", re.I
)
_GAPPED_PT = re.compile(
    rf"(?P<v>se chama|é) (?P<n>{NAME}) e (?:[oa] )?(?P<who>(?:meu|minha) [^\W\d_]+),? (?P<n2>{NAME})$"
)
_DOUBLED_PT = re.compile(
    r"^(?:(?:[Aa] gente|[Nn]ós) )?(?P<r>.+?), (?:eu (?:e|mais) (?P<x>(?:[oa] )?(?:minha|meu|nossa|nosso)? ?[\w -]+?)"
    r"|(?P<y>(?:[oa] )?(?:minha|meu)? ?[\w -]+?) e eu)$"
)
_STATE_PT = re.compile(
    r"^(?P<estar>(?:gravida|desempregad[ao]|noiv[ao]|apaixonad[ao]|morrendo|afastad[ao]|internad[ao]|de (?:dieta|ferias"
    r"|licenca|repouso|castigo)|sem (?:carro|emprego|trabalho|dinheiro|celular)|em (?:tratamento|recuperacao"
    r"|home office)|com (?:febre|gripe|dor|saudade|covid|dengue|medo))\b)"
    r"|^(?P<ser>(?:alergic[ao] |viciad[ao] |casad[ao] |solteir[ao] |divorciad[ao] |separad[ao] |viuv[ao] "
    r"|aposentad[ao] "
    r"|doid[ao] por |louc[ao] por |apaixonad[ao] por |fa |formad[ao] |nascid[ao] |vegetarian[ao] |vegan[ao] "
    r"|torcedora? "
    r"|moradora? |natural d|dono d|dona d|mae d|pai d|filh[ao] d|viciad[ao] |corintian|flamenguista|palmeirense"
    r"|sao-paulino|gremista|colorad[ao] ))"
)


def _portuguese(body: str) -> str:
    if m := _TODAY_PT.match(body):
        return f"{m['w'][0].upper()}{m['w'][1:]} é {m['t'].lower()}"
    if m := _DOUBLED_PT.match(body):
        other = (m["x"] or m["y"]).strip()
        return f"Eu e {other} {m['r']}"
    body = _GAPPED_PT.sub(r"\g<v> \g<n> e \g<who> \g<v> \g<n2>", body)
    if m := _SINCE_PT.match(body):
        return f"{m['r'][0].upper()}{m['r'][1:]} há {m['t']}"
    if (m := _CLAUSE_PT.match(body)) and _first_at(words(m["r"])) == 0:
        return f"{m['r'][0].upper()}{m['r'][1:]} {m['lead'][0].lower()}{m['lead'][1:]}"
    turned = _lead_last_pt(body)
    return turned if turned != body else _with_eu(body)


def _lead_last_pt(body: str) -> str:
    tokens = body.split()
    if len(tokens) > 2 and (_LEAD_PT.match(tokens[0].lower()) or body.lower().startswith("a partir ")):
        at = _first_at(tokens)
        if at and at <= 8:
            return _turned(" ".join(tokens[:at]).rstrip(","), " ".join(tokens[at:]))
    return body


def _first_at(tokens: list[str]) -> int | None:
    """Where a first person clause begins: at "eu", "a gente", "meu", or at its verb with what leans on it."""
    for index, raw in enumerate(tokens[:10]):
        token = raw.strip(",").lower()
        if index and raw[:1].isupper() and token not in ("eu", "nós"):
            continue  # "a mãe do Caio": a name, not "eu caio"
        before = tokens[index - 1].strip(",").lower() if index else ""
        after = tokens[index + 1].strip(",").lower() if index + 1 < len(tokens) else ""
        if token in ("eu", "nós") or (token == "a" and after == "gente"):
            return index
        if token in ("meu", "minha", "meus", "minhas") and (tokens[index - 1].endswith(",") if index else True):
            return index
        if token in _NOUNISH_PT and before in _BEFORE_NOUN:
            continue
        if portuguese.known(token) and portuguese.first_person(token) is not None and len(tokens) > index + 1:
            while index and tokens[index - 1].lower() in (portuguese.ADVERBS | {"me", "nos", "se"}) - {"hoje", "ontem"}:
                if index == 1:
                    return None if tokens[0].lower() not in ("não", "nunca", "já", "me", "nos", "só", "também") else 0
                index -= 1
            return index
        if portuguese.known(token) and token not in _NOUNISH_PT and index and before not in _BEFORE_NOUN:
            return None
    return None


def _with_eu(body: str) -> str:
    tokens = words(body)
    if len(tokens) < 3:
        return body
    low = body[0].lower() + body[1:]
    if portuguese.gerund_of(tokens[0]) and not any(portuguese.third_person(t) for t in tokens[1:4]):
        return f"Estou {low}"
    if m := _STATE_PT.match(plain(low)):
        return f"{'Estou' if m['estar'] else 'Sou'} {low}"
    return body
