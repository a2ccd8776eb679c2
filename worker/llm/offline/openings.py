"""What stands at the head of a sentence without telling anything: greetings, thanks, corrections, labels."""

from __future__ import annotations

import re

from worker.llm.offline import portuguese
from worker.llm.offline.text import UPPER, plain, words

# After these anything may follow.
_MARKERS = re.compile(
    r"^(?:(?:(?:ah|oh|ok|so|well|and|but|e|mas|ai) )?(?:and|but|so|well|also|oh|ah|aha|hey|hi|hello|ok|okay|yes|yeah"
    r"|yep|no|nope|nah|right|alright|all right|now"
    r"|actually|btw|by the way|in fact|honestly|anyway|anyways|fyi|sorry|to be honest|tbh|truth be told|frankly"
    r"|good news|bad news|great news|sad news|big news|funny thing|fun fact|for what it's worth|for context"
    r"|for the record|you know|listen|look|guess what|long story short|believe it or not|as it happens|oops|whoops"
    r"|my bad|my mistake|apologies|wait|no wait|hang on|hold on|hmm+|ugh|yay|wow|sadly|unfortunately|luckily"
    r"|fortunately|thankfully|happily|personally|please note|just so you know|turns out|then|since then|yet|or"
    r"|e|mas|entao|bom|bem|oi|ola|olha|olha isso|olha so|ei|gente|sim|nao|na verdade|na real|alias|pois e|alem disso"
    r"|inclusive|desculpa|desculpe|perdao|foi mal|sabe|so que|porque|pois|because|although|though|while|embora"
    r"|enquanto|depois|um dia|enfim|por sinal|ops|opa|ih|eita|epa|ah sim|ah nao|falando nisso|a proposito|detalhe"
    r"|boa noticia|ma noticia|novidade|infelizmente|felizmente|sinceramente|pra ser sincer[ao]|para ser sincer[ao]"
    r"|cara|mano|amig[ao]|pessoal|galera|adivinha|acredita|nossa|caramba|puxa|poxa|uau|bora la|resumindo"
    r"|por enquanto nao|ou seja|ou melhor|melhor dizendo|quer dizer|digo|minto)"
    r"(?:,|!|:|\.\.\.|…|\s[-–—])+\s*"
    r"|(?:and then|and|but|so|because|although|though|yet|also|actually|in fact|e depois|mas|porque|pois|na verdade"
    r"|alias|alem disso|entao|e) +)"
)
_CORRECTIONS = re.compile(
    r"^(?:(?:(?:(?:small|quick|slight|minor|little|one) )?(?:correction|typo|update|edit|fix|amendment|erratum|note"
    r"|reminder|clarification|context|background|ps|p\.s\.?|correcao|retificacao|errata|atualizacao|atualizando"
    r"|corrigindo|retificando|obs|aviso|contexto|lembrete|recado|informacao|sobre mim|about me)"
    r"(?: (?:here|from me|on that|to my last message|rapid[ao]|importante|minha))?(?:,|:|!|\s[-–—])+\s*)"
    r"|(?:(?:i|we|eu)?,? ?(?:made a (?:mistake|typo)|misspoke|mistyped|got (?:that|it|this) wrong|was wrong"
    r"|wrote (?:that|it) wrong|stand corrected|said (?:that|it) wrong|errei|me enganei|me confundi|confundi"
    r"|digitei errado|escrevi errado|falei errado|me expressei mal|engano meu|erro meu|mandei errado)"
    r"(?: (?:before|earlier|above|there|antes|ali|aqui|tudo))?(?:,|:|!|;|\.|\s[-–—])+\s*)"
    r"|(?:(?:scratch|scrap|strike|forget|ignore|cancel|disregard) (?:that|this|what i said|the last one"
    r"|my last message)"
    r"(?: before| earlier)?|let me (?:correct|rephrase|fix) (?:that|myself|this)|i take (?:that|it) back"
    r"|esquec[ea](?: (?:isso|isto|o que eu (?:disse|falei)|o que (?:disse|falei)))?|retiro o que (?:eu )?disse"
    r"|desconsidera(?: isso)?|deixa eu corrigir|me corrigindo)(?:,|:|!|;|\.|\s[-–—])+\s*"
    r"|it turns out(?: that)?,? +|(?:i )?(?:just )?(?:wanted|want|need) to (?:let you know|tell you|say|mention"
    r"|share)(?: that|:)? +"
    r"|i forgot to (?:tell you|mention|say)(?: that)?[:,]? +|(?:eu )?(?:so )?(?:queria|quero|vim|passando (?:pra"
    r"|para)) ?(?:te |lhe |vos )?"
    r"(?:avisar|contar|dizer|falar|informar|comunicar)(?: que|:) +|esqueci de (?:contar|falar|dizer|avisar)(?: que|:) +"
    r"|(?:what )?i (?:really |actually )?mean[t]?(?: (?:was|is|to say|to write))?(?: that)?(?:,|:|\s[-–—])*\s+"
    r"|(?:o que )?(?:eu )?(?:quis|queria|quero) dizer(?: (?:foi|e))?(?: que)?(?:,|:|\s[-–—])*\s+)"
)
# After these only a sentence with a subject of its own tells something: "Valeu, ajudou demais", "Thanks, saved my day".
_THANKS = re.compile(
    r"^(?:thanks(?: (?:a (?:lot|bunch|million|ton)|so much|very much|again|mate|man|all|everyone"
    r"|for \w+(?: \w+){0,4}))?"
    r"|many thanks|thank you(?: (?:so much|very much|again|all|for \w+(?: \w+){0,4}))?|thx|cheers(?: mate)?|ta"
    r"|much appreciated|appreciate it|got (?:it|you|ya)|gotcha|fair (?:enough|point)|(?:that )?makes sense|will do"
    r"|sounds (?:good|great|fair|fine|right|like a plan)|understood|noted|roger|cool|nice(?: one)?|great|fantastic"
    r"|brilliant|awesome|amazing|excellent|perfect|lovely|wonderful|super|sweet|good (?:point|idea|call|one|job)"
    r"|no (?:worries|problem)|of course|sure(?: thing)?|exactly|absolutely|totally|true|well done|bravo"
    r"|congrat(?:s|ulations)|never ?mind"
    r"|valeu(?: (?:mesmo|demais|cara|mano|gente|pessoal|pela \w+|pelo \w+))*|vlw|obrigad[ao](?: (?:mesmo|demais|de novo"
    r"|pela \w+|pelo \w+))*|muito obrigad[ao]|brigad[ao]|agradecid[ao]|agradeco|show(?: de bola)?|top(?: demais)?|massa"
    r"|legal|bacana|otimo|otima|perfeito|maravilha|beleza|blz|tranquilo|de boa|suave|certo|claro|fechado|combinado"
    r"|entendi(?:do)?|saquei|faz sentido|boa|parabens|arrasou|isso(?: mesmo| ai)?|exato|exatamente|com certeza|ta bom"
    r"|tudo bem|ta certo|deu certo|deixa comigo|pode deixar)(?:,|!|\.|;|:|\s[-–—])+\s*"
)
_IS_SAID = re.compile(
    r"^(?:i|we|my|our|eu|a gente|nos|meus?|minhas?|he|she|ele|ela|[a-z]{3,}(?:ei|amos|emos|imos)|tenho)\b"
)
_LABEL = re.compile(r"^(?!https?)[\w ]{1,24}: +(?=\S)")
_HAS_SUBJECT = re.compile(
    rf"^(?:(?:[Ii]|[Ww]e|[Mm]y|[Oo]ur|[Hh]e|[Ss]he|[Tt]he|[Ee]u|[Nn]ós|[Aa] gente|[Ee]l[ea]|[Mm]eus?|[Mm]inhas?"
    rf"|[Nn]oss[oa]s?|[OoAa]s?)\b|[{UPPER}][^\W\d_]+ )"
)


_INTRODUCED = re.compile(rf"^[{UPPER}][^\W\d_]+ (?:here|aqui)(?:,|!|:|\s[-–—])+ ")
_POLITE_END = re.compile(
    r",? (?:(?:it's |so )?(?:nice|good|great|lovely|pleased) to (?:meet|be)\b.*|(?:muito )?prazer(?: em .*)?|thanks"
    r"|thank you"
    r"|obrigad[ao]|lol|haha\w*|k{3,}|rs+)(?=\W*$)"
)


def without_openings(sentence: str) -> str:
    """The sentence without what opens it; empty where the opening was all it said."""
    rest = sentence.strip()
    if m := _POLITE_END.search(plain(rest)):
        rest = rest[: m.start()].strip(" ,") if m.start() else rest
    rest = _INTRODUCED.sub("", rest)
    while rest:
        folded = plain(rest)
        # "é" is a verb, "e" a conjunction; "só" is "only", "so" a joint: folding must not confuse them
        if rest[:1] in "éÉ" or (rest[:3].lower() == "só " and not _CORRECTIONS.match(folded)):
            return rest
        if m := _CORRECTIONS.match(folded):
            rest = _after_correction(rest[m.end() :].strip())
        elif m := _THANKS.match(folded):
            rest = rest[m.end() :].strip()
            if not _has_subject(rest) and not _THANKS.match(plain(rest) + ",") and not _MARKERS.match(plain(rest)):
                return ""
        elif (m := _MARKERS.match(folded)) or (m := _LABEL.match(folded) if folded.count(":") == 1 else None):
            if m.re is _LABEL and _IS_SAID.match(folded):
                return rest  # "Resgatamos três gatinhos: Tico e Teco" is no label
            if not rest[m.end() :].strip():
                return rest
            rest = rest[m.end() :].strip()
        else:
            return rest
    return rest


def _after_correction(rest: str) -> str:
    """ "I meant Tuesday, the exam is on Tuesday": the corrected word alone tells nothing."""
    m = re.match(r"^(?P<w>[^\s,]+(?: [^\s,]+)?), (?P<r>.+)$", rest)
    if m and not re.match(r"^(?:i|we|eu|my|meu|minha|he|she|ele|ela)\b", m["w"], re.I) and _has_subject(m["r"]):
        return m["r"]
    return rest


def _has_subject(rest: str) -> bool:
    if _HAS_SUBJECT.match(rest):
        return True
    first = [w for w in words(rest)[:3] if w.lower() not in ("já", "me", "não", "nunca", "também", "agora", "só")][:1]
    return bool(first) and any(form.person == 1 for form in portuguese.known(first[0]))
