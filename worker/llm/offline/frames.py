"""What a plain third person sentence says, apart from its words: residence, employer, taste, age… in both languages.

One table of patterns serves extraction (edges, categories, attribute keys) and reconciliation (is this the same thing,
another value of it, or its end?), so that the two never disagree. Patterns run on folded text of unchanged length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from worker.llm.offline.lexicon import ORGANISATIONS
from worker.llm.offline.text import plain


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of statement. ``single``: a person has one value at a time, so a new one replaces it."""

    name: str
    category: str
    rel_type: str | None = None
    target: str = "other"
    attribute: str | None = None
    single: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """One statement: its kind, its value as written, and whether it denies, ends or tells an event."""

    kind: Kind
    value: str
    negative: bool = False
    ended: bool = False
    event: bool = False
    past: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        Kind("residence", "biographical_milestone", "lives_in", "place", "person.city", True),
        Kind("employer", "relationship_change", "works_at", "organization", "work.employer", True),
        Kind("occupation", "biographical_milestone", None, "concept", "person.occupation", True),
        Kind("age", "biographical_milestone", None, "concept", "person.age", True),
        Kind("name", "biographical_milestone", None, "person", "person.name", False),
        Kind("nickname", "biographical_milestone", None, "person", "person.nickname", False),
        Kind("birthplace", "biographical_milestone", "born_in", "place", "person.birthplace", True),
        Kind("birthday", "biographical_milestone", None, "concept", "person.birthday", True),
        Kind("origin", "biographical_milestone", "from", "place", "person.origin", True),
        Kind("studies", "biographical_milestone", "studies_at", "organization", None, False),
        Kind("graduated", "biographical_milestone", "graduated_from", "organization", None, False),
        Kind("spouse", "relationship_change", "spouse_of", "person", "person.spouse", True),
        Kind("partner", "relationship_change", "partner_of", "person", "person.partner", True),
        Kind("engaged", "relationship_change", "engaged_to", "person", "person.partner", True),
        Kind("civil", "relationship_change", None, "concept", "person.marital_status", True),
        Kind("taste", "stable_preference", None, "other", None, False),
        Kind("favourite", "stable_preference", None, "other", None, True),
        Kind("diet", "stable_preference", None, "concept", "health.diet", True),
        Kind("allergy", "biographical_milestone", None, "concept", "health.allergy", False),
        Kind("condition", "biographical_milestone", None, "concept", None, False),
        Kind("language", "stable_preference", None, "concept", None, False),
        Kind("has", "stable_preference", "owns", "product", None, False),
        Kind("member", "relationship_change", "member_of", "organization", None, False),
        Kind("founded", "biographical_milestone", "founded", "organization", None, False),
        Kind("runs", "routine_activity", "manages", "organization", None, False),
        Kind("milestone", "biographical_milestone", None, "other", None, False),
        Kind("hired", "specific_event", "hired", "person", None, False),
        Kind("habit", "routine_activity", None, "concept", None, False),
        Kind("ability", "stable_preference", None, "concept", None, False),
        Kind("plan", "specific_event", None, "concept", None, False),
    )
}

_ADV = (
    r"(?:\w+ly |now |also |already |still |currently |just |really |actually |ja |agora |tambem |ainda "
    r"|atualmente |hoje |so |sempre )*"
)
_V = r"(?P<v>[^,;.]+)"
_N = r"(?:the |a |an |o |um |uma |os |as )?"
_IN = r"(?:in|em|no|na|nos|nas|near|perto de)"
_TO = r"(?:to|into|para(?: o| a)?|pra|pro|em|no|na)"
_NO_ORG = rf"(?!(?:an?|uma?|the|another|outra) (?:[\w-]+ ){{0,2}}?(?:{'|'.join(sorted(ORGANISATIONS))})\b)"
# "em" leads to a place, "na" and "no" to an employer: "trabalha em Jundiaí", "trabalha na Vivo".
_AT_WORK = r"(?:at|for|na|no|para a|para o|pra|pela|pelo|nas|nos)"
_NO_JOB = (
    r"(?!nascid|criad|natural|apaixonad|doid|louc|fa |torced|casad|formad|viciad|famos|feliz|melhor|bom |boa |pessim"
    r"|otim|voluntari|membro|soci|alun|estudante|cliente|aposentad|paciente)"
)
# name of the kind, flags (e: event, x: end of it, n: denial), pattern of the predicate.
_PATTERNS = (
    ("plan", "e", rf"(?:is (?:moving|relocating|going to move|about to move|off)|are moving|will move|plans to move"
                  rf"|wants to move|vai (?:se )?mudar|vai morar|vao (?:se )?mudar|vao morar|pretende (?:se mudar|morar)"
                  rf"|quer (?:se mudar|morar)|esta de mudanca|vai voltar)(?: back| out"
                  rf"| em definitivo)?(?: .+?)? {_TO} {_V}"),
    ("residence", "", rf"(?:lives?|living|resides?|is based|is living|has been living"
                      rf"|has (?:always )?lived(?=.* (?:for|since|all|my whole|their whole)\b)|mora|morando|vive"
    rf"|reside"
                      rf"|esta morando|continua|lives? on) (?:with .+? |com .+? )?{_IN} {_V}"),
    ("residence", "e", rf"(?:has |have )?(?:moved|relocated|emigrated|immigrated|se mudou|mudou-se|mudou"
                       rf"|foi morar|veio morar|foi viver|veio viver|mudou de cidade|voltou a morar|settled"
                       rf"|moved back)(?: back"
                       rf"| out| over| down| up| de volta)?(?: (?:from|de|do"
                       rf"|da) .+?)? {_TO} {_NO_ORG}{_V}"),
    ("residence", "x", r"(?:moved out of|left|saiu de|deixou|foi embora de"
                       r"|moved away from) (?P<v>(?:the )?(?:city|cidade|country|pais|flat|apartment)\b.*)"),
    ("employer", "e", rf"(?:has )?(?:joined|started at|(?:started|got|landed|found|took|accepted|began) (?:an? "
                      rf"|their |his |her )"
                      rf"(?:new |better )?(?:[a-z-]+ ){{0,2}}?(?:job|role|position|post|internship"
                      rf"|apprenticeship) (?:at|with)"
                      rf"|is doing (?:an? |their )?(?:apprenticeship|internship|placement|residency"
                      rf"|traineeship) (?:at|with)"
                      rf"|(?:faz|esta fazendo|comecou) (?:um |o )?(?:estagio|residencia|trainee) (?:na|no)"
                      rf"|got the job (?:at|with)"
                      rf"|conseguiu (?:o |a |uma )?(?:emprego|vaga|trabalho) (?:na|no)|was hired (?:by|at)"
                      rf"|began working (?:at|for)"
                      rf"|started working (?:at|for)|signed with|entrou (?:na|no|em|para a)"
                      rf"|comecou (?:a trabalhar )?(?:na|no)|foi contratad[ao] (?:pela|pelo|na|no)"
                      rf"|(?:comecou (?:num|em um|no)|arrumou (?:um )?|conseguiu (?:um )?"
                      rf"|arranjou (?:um )?) ?(?:novo )?"
                      rf"(?:emprego|trampo|trabalho|estagio|vaga)(?: novo)? (?:na|no)|esta trabalhando (?:na|no)"
                      rf"|is working (?:at|for)|passou a trabalhar (?:na|no)) {_N}{_V}"),
    ("employer", "e", r"(?:foi|went|moved|switched) (?:para|pra|to) (?:a |o )?(?P<v>[^,;.]+?) (?:as|como) .+"),
    ("employer", "", rf"(?:works?|worked|has been working|has worked(?=.* (?:for|since)\b)|is employed"
                     rf"|is an? (?!(?:[\w-]+ )?(?:volunteer|member|student|regular|patient|customer|guest|fan"
                     rf"|partner in)\b)(?:[\w-]+ ){{0,3}}?[\w-]+|trabalha"
                     rf"|trabalhando|atua|e {_NO_JOB}(?:[\w-]+ ){{0,3}}?[\w-]+|leciona|is an? (?:[\w-]+ )+?of [\w-]+"
                     rf"|teaches(?: [\w-]+){{0,2}}|ensina(?: [\w-]+)?|da aulas?(?: de [\w-]+)?)(?: (?:as"
                     rf"|como) [^,]+?)? {_AT_WORK} {_N}{_V}"),
    ("employer", "x", rf"(?:has )?(?:left|quit|resigned from|was fired from|was laid off (?:from|by)|retired from"
                      rf"|got fired from|stopped working (?:at|for)|saiu d[aeo]|pediu demissao d[aeo]"
                      rf"|foi demitid[ao] (?:da|do|pela|pelo)|deixou (?:a|o)|largou (?:a|o)"
                      rf"|parou de trabalhar (?:na|no)|se desligou d[ao]|se aposentou d[ao]) {_N}{_V}"),
    ("occupation", "", rf"(?:works|worked|trabalha|atua) (?:as an?|as|como) {_V}"),
    ("occupation", "e", rf"(?:became|got promoted to|was promoted to|foi promovid[ao] a|virou|se tornou|was made"
                        rf"|retrained as) {_N}(?!pai|mae|avo|tio|tia|amig|father|mother|vega|vegeta){_V}"),
    ("age", "", r"(?:is|turned|just turned|has turned|completou|fez|tem|esta com) (?P<v>(?:\d{1,3}"
                r"|[a-z]+(?: e [a-z]+)?))(?: years old| years of age| anos(?: de idade)?)(?!\w)"),
    ("age", "", r"(?:is|turned|just turned|has turned) (?P<v>\d{1,3})(?=$|,|\.$| (?:now|today|this|next|in|on|and"
                r"|but|yesterday|tomorrow|last)\b)"),
    ("name", "", rf"(?:is called|is named|'s name is|se chama|chama-se|tem o nome de) {_V}"),
    ("nickname", "", rf"(?:is (?:also )?known as|goes by|is called .+ by|e conhecid[ao] como|tem o apelido de"
                     rf"|is nicknamed) {_V}"),
    ("birthplace", "", rf"(?:was born(?: and (?:raised|bred))?|nasceu(?: e cresceu)?"
                       rf"|e nascid[ao](?: e criad[ao])?) {_IN} (?P<v>(?!\d|the \d|janeiro|fevereiro|marco|abril"
                       rf"|maio|junho"
                       rf"|julho|agosto|setembro|outubro|novembro|dezembro|january|february|march|april|may |june"
                       rf"|july|august|september|october|november|december)[^,;.]+)"),
    ("birthday", "", rf"(?:was born on|nasceu (?:no dia|em)|faz aniversario (?:em|no dia)) {_V}"),
    ("origin", "", r"(?:is|comes|e|veio) (?:originally )?(?:from|de|do|da) (?P<v>[^,;.]+)"),
    ("graduated", "e", rf"(?:graduated|got (?:an? |her |his |their )(?:[\w'.-]+ ){{0,2}}?(?:degree|phd|doctorate"
                       rf"|master's|mba|diploma|bachelor's)|finished (?:an? |her |his "
                       rf"|their )(?:[\w'.-]+ ){{0,2}}?(?:degree|phd|doctorate|master's|mba|studies)|se formou"
                       rf"|formou-se|e formad[ao])(?: in .+?"
                       rf"| em .+?)? (?:from|at|pela|pelo|na|no) {_N}{_V}"),
    ("graduated", "e", rf"(?:graduated|se formou|formou-se|e formad[ao]) (?:in|em) {_V}"),
    ("studies", "", rf"(?:is (?:doing|taking|finishing|starting|pursuing|halfway through|working on|reading)|does"
                    rf"|started|began"
                    rf"|starts|has started|is on) (?:an? |his |her |their )?(?:[\w'.-]+ ){{0,2}}?(?:phd|doctorate"
                    rf"|master'?s?(?: degree)?|mba"
                    rf"|bachelor'?s?(?: degree)?|degree|postdoc|diploma|msc|bsc|ma|ba|foundation course|course"
                    rf"|a levels|a-levels)"
                    rf"(?: (?:in|of|on) .+?)? (?:at|with) {_N}{_V}"),
    ("studies", "", rf"is reading (?!an? |the |this |some |their |his |her )[\w ]{{3,24}} at {_V}"),
    ("studies", "", rf"(?:is|esta|ta) (?:in|no|na) (?:his |her |their )?(?:[\w-]+ )(?:year|ano|semestre"
                    rf"|periodo)(?: (?:of|de|do|da) .+?)?"
                    rf" (?:at|na|no) {_N}{_V}"),
    ("studies", "", r"(?:goes to|attends|is at|got into|got accepted (?:to|at|into)) (?P<v>[^,;.]*\b(?:university"
                    r"|college|school|institute|academy)\b[^,;.]*)"),
    ("studies", "", rf"(?:studies|studied|is studying|majors|estuda|estudando|esta estudando|cursa|faz"
                    rf"|esta fazendo|esta cursando)(?: .+?)? (?:at|na|no|pela) {_N}{_V}"),
    ("studies", "", rf"(?:studies|is studying|majors in|estuda|cursa|esta estudando|faz (?:faculdade|curso"
                    rf"|mestrado|doutorado|graduacao) (?:de|em)) {_V}"),
    ("spouse", "e", rf"(?:got married to|married|casou(?:-se)? com|se casou com|just married) {_V}"),
    ("spouse", "", rf"(?:is married to|e casad[ao] com|esta casad[ao] com|has been married to) {_V}"),
    ("partner", "", rf"(?:is dating|is seeing|dates|started dating|is in a relationship with|namora(?: com)?"
                    rf"|esta namorando(?: com)?|comecou a namorar(?: com)?|esta saindo com"
                    rf"|lives together with) {_V}"),
    ("engaged", "e", rf"(?:got engaged to|is engaged to|ficou noiv[ao] d[aeo]|esta noiv[ao] d[aeo]|noivou com"
                     rf"|e noiv[ao] d[aeo]) {_V}"),
    ("partner", "x", r"(?:broke up with|split up with|split from|separated from|divorced|got divorced from"
                     r"|terminou (?:o namoro )?com|se separou d[aeo]|se divorciou d[aeo]|separou d[aeo]"
                     r"|left (?:his|her|their) (?:wife|husband|girlfriend|boyfriend)|rompeu com"
                     r"|largou (?:o marido|a esposa)) ?(?P<v>[^,;.]*)"),
    ("partner", "x", r"(?:and [\w' ]+|e [\w ]+)? ?(?:broke up|split up|separated|got divorced|are divorced"
                     r"|terminaram|se separaram|se divorciaram)(?P<v>.*)"),
    ("civil", "", r"(?:is|e|esta|got|ficou) (?P<v>single|married|divorced|widowed|separated|solteir[ao]|casad[ao]"
                  r"|divorciad[ao]|viuv[ao]|separad[ao])(?!\w)(?! com| to| from)"),
    ("allergy", "", rf"(?:is|e|tem) (?:allergic to|alergic[ao] [ao]s?|alergia [ao]s?) {_V}"),
    ("allergy", "", r"(?:has an? |tem )(?P<v>\w+) allergy"),
    ("diet", "", r"(?:is|e|became|virou|se tornou) (?:an? |um |uma )?(?P<v>vegetarian\w*|vegan\w*|pescatarian"
                 r"|celiac[ao]?|coeliac|intolerante [^,;.]+|lactose intolerant|gluten intolerant)"),
    ("condition", "", rf"(?:was diagnosed with|suffers from|has (?:type \d )?(?=diabetes|asthma|cancer|migraines"
                      rf"|epilepsy|adhd|anxiety|depression|high blood)|foi diagnosticad[ao] com|sofre de"
                      rf"|tem (?=diabetes|asma|cancer|enxaqueca|epilepsia|tdah|ansiedade|depressao|pressao alta"
                      rf"|hipertensao|rinite)) ?{_V}"),
    ("taste", "n", rf"(?:hates?|dislikes?|detests?|despises?|loathes?|cannot stand|can't stand|cannot bear"
                   rf"|is not (?:a fan of|into|fond of)|odeia|detesta|nao suporta|nao aguenta|tem (?:horror|nojo"
                   rf"|pavor) (?:a|de)|abomina) {_V}"),
    ("taste", "", rf"(?:really |absolutely )?(?:likes?|loves?|enjoys?|adores?|prefers?|is (?:fond of|a (?:big "
                  rf"|huge )?fan of|crazy about|into|keen on|passionate about)|gosta(?: muito| bastante"
                  rf"| demais)?(?: de| do| da| dos| das)?|adora|ama|curte|prefere|e (?:fa|apaixonad[ao]) (?:de|do"
                  rf"|da|por)|torce (?:pelo|pela|para o|para a)|supports) {_N}{_V}"),
    ("language", "", rf"(?:speaks|is fluent in|fala|e fluente em) {_V}"),
    ("has", "x", rf"(?:sold|gave away|got rid of|lost|scrapped|vendeu|doou|perdeu|se desfez d[aeo]|deu"
                 rf"|devolveu) (?:his |her |their |the |o |a |os |as |seu |sua |o seu |a sua |um |uma )*{_V}"),
    ("has", "e", rf"(?:just |recently )?(?:bought|adopted|rescued|got (?=an? |some )|comprou|adotou|resgatou"
                 rf"|acabou de comprar|ganhou|pegou|adquiriu) ?(?:an? |some |um "
                 rf"|uma |o |a |os |as |seu |sua |his |her |their |the )*(?:new |novo |nova )?{_V}"),
    ("has", "", rf"(?:has(?: got)?|owns|drives|rides|possui|tem|dirige|e don[ao] d[aeo]) (?:an? |um |uma |o |a "
                rf"|dois |duas |two |three |tres )?(?!to |been |had |que |to\b|never|nao)(?!\w+ (?:years|anos)\b){_V}"),
    ("member", "", rf"(?:is a member of|plays .+? (?:in a band called|in|for)|belongs to|e membro d[aeo]"
                   rf"|faz parte d[aeo]|joga (?:no|na|pelo|pela)|toca (?:\w+ )?(?:na banda"
                   rf"|numa banda chamada)) {_N}{_V}"),
    ("founded", "e", rf"(?:founded|co-founded|started (?:a|his|her|their own) company called|opened|fundou"
                     rf"|cofundou|criou a empresa|abriu (?:a|o)) {_N}{_V}"),
    ("runs", "", rf"(?:runs|manages|administers|administra|gerencia|dirige a|comanda|lidera|leads) {_N}{_V}"),
    ("milestone", "e", r"(?:died|passed away|retired|got married|got engaged|graduated|had a baby|gave birth"
                       r"|got divorced|morreu|faleceu|ja faleceu|se aposentou|(?:se )?casou|casaram|se casaram"
                       r"|se formou|teve (?:um filho|uma filha|um bebe)|virou (?:pai|mae|avo)|passou (?:no|em|na)"
                       r"|(?:is|esta) (?:pregnant|gravida)) ?(?P<v>[^,;.]*)"),
    ("hired", "e", rf"(?:\w+ly )?(?:hired|contratou) (?:pessoalmente )?(?:a |o )?{_V}"),
    ("ability", "", rf"(?:can|is able to|pode|consegue) {_V}"),
    ("habit", "", r"(?:smokes?|drinks?|eats?|smoked|drank|fuma|fumou|bebe|bebeu|come|comeu|pratica|practi[cs]es"
                  r"|corre|runs|nada|swims|toca|plays|joga) ?(?P<v>[^,;.]*)"),
    ("occupation", "", r"(?:is (?:now |currently |also )?(?:an? |the )?|e (?:um |uma |o |a )?)(?P<v>(?!going|coming"
                       r"|to |not |very "
                       r"|muito |now |currently |also |[\w-]+ing\b|[\w-]+er than\b|older|younger|much |better|worse"
                       r"|doid|louc|mineir|brasileir|estrangeir|herdeir|companheir|parceir|primeir|terceir|solteir"
                       r"|flamengu|botafogu|pessimis|otimis|perfeccionis|budis|egois|madrugador|morador|torcedor"
                       r"|leitor|melhor|maior|menor|pior|super)(?:[\w-]+ ){0,3}?[\w-]*(?:er|or|ist|ian"
                       r"|nurse|chef|cook|architect|student|pilot"
                       r"|lawyer|dentist|vet|clerk|ceo|cto|head of \w+|judge|accountant|assistant|analyst|surgeon"
                       r"|scientist|guide|firefighter|soldier|eir[ao]|ist[ao]|or|ora|log[ao]|medic[ao]"
                       r"|advogad[ao]|arquitet[ao]|gerente|estudante|analista|chefe de cozinha|piloto|juiz|juiza"
                       r"|tecnic[ao]|mecanic[ao]|secretari[ao]|bibliotecari[ao]|veterinari[ao]|designer|policial"
                       r"|bombeir[ao]|fotograf[ao]|music[ao]|atriz|ator)\b(?: (?:civil|de [^,;.]+|do [^,;.]+"
                       r"|of [^,;.]+|at [^,;.]+))?)(?= at| na | no |$|[ ,.])"),
)  # fmt: skip

_NEGATION = re.compile(
    r"^(?:ja |today )?(?:nao|nunca|jamais|does not|did not|do not|doesn't|didn't|don't|is not|isn't|was not"
    r"|wasn't|has not|hasn't|never|cannot|can't|could not|no longer|has never|will not)\b ?(?:more |mais |yet )?"
)
_ENDING = re.compile(
    r"\b(?:no longer|any ?more|any longer|nao \w+ mais|ja nao|nao mais|deixou de|parou de|stopped"
    r"|quit (?=\w+ing)|used to|costumava|gave up|largou (?:o|a) )\b|\b(?:nao)\b.*\bmais\b(?! (?:de|que)\b)"
)
_OPENER = re.compile(
    r"^(?:(?:actually|now|today|currently|since then|then|also|still|already|na verdade|hoje|agora|atualmente"
    r"|tambem|ainda|ja|just|recently|recentemente|finalmente|finally|always|sempre|really) )+(?!nao )"
)
_TAIL = re.compile(
    r"\s+(?:since|desde|ha|for|with|com|yesterday|ontem|last|next|anymore|any more|now|agora|today|hoje"
    r"|em \d{4}|in \d{4}|as|como|and|e|but|mas|because|porque|on|when|quando|no mes|na semana|semana passada"
    r"|ano passado|mes passado|in (?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december)|em (?:janeiro|fevereiro|marco|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro)"
    r"|mais|also|tambem|ago|para|to|after|depois)\b.*$"
)


@cache
def _compiled() -> tuple[tuple[Kind, str, re.Pattern[str]], ...]:
    return tuple((KINDS[name], flags, re.compile("^" + _ADV + pattern)) for name, flags, pattern in _PATTERNS)


def frame_of(predicate: str) -> Frame | None:
    """The statement that a third person predicate ("lives in Lyon", "não gosta de chá") makes, or None."""
    if predicate.lstrip().startswith(("e ", "and ")):
        return None  # a second subject, which folding would take for the verb "é"
    text = plain(predicate).strip()
    offset = len(predicate) - len(predicate.lstrip())
    ended = bool(_ENDING.search(text))
    negative = False
    text_full = text
    position = 0
    if m := _OPENER.match(text):
        position = m.end()
    if not re.match(
        r"(?:nao suporta|nao aguenta|cannot stand|can't stand|cannot bear|is not (?:a fan|into|fond))", text[position:]
    ) and (m := _NEGATION.match(text[position:])):
        negative = True
        position += m.end()
        # "não mora mais em" is "mora em", denied and over.
        text_full = text_full[:position] + re.sub(r"^(\w+) mais\b", r"\1", text_full[position:])
        if m.group().startswith(("is not", "isn't", "was not", "wasn't")):
            text_full = text_full[: position - len("is ")] + "is " + text_full[position:]
            position -= len("is ")
        elif m.group().startswith(("cannot", "can't")):
            text_full = text_full[: position - len("can ")] + "can " + text_full[position:]
            position -= len("can ")
    elif m := re.match(r"(?:deixou de|parou de|stopped|quit|used to|costumava|gave up) ", text[position:]):
        position += m.end()
    found = _match(text_full[position:])
    if found is None and (ended or negative):
        found = _match(_finite(text_full[position:]))
        if found is None:
            return None
        kind, flags, value, _start = found
        return Frame(kind, _shorten(value, kind.name), negative != ("n" in flags), ended or "x" in flags, "e" in flags)
    if found is None:
        return None
    kind, flags, value, start = found
    original = (
        predicate[offset + position + start : offset + position + start + len(value)]
        if len(text_full) == len(text)
        else value
    )
    return Frame(kind, _shorten(original, kind.name), negative != ("n" in flags), ended or "x" in flags, "e" in flags)


def _match(text: str) -> tuple[Kind, str, str, int] | None:
    for kind, flags, pattern in _compiled():
        if m := pattern.match(text):
            return kind, flags, m["v"] or "", m.start("v")
    return None


def _finite(text: str) -> str:
    """The head verb of a negated or ended predicate in the third person: "work at X", "trabalhar na X"."""
    head, _, rest = text.partition(" ")
    if re.fullmatch(r"[a-z]+(?:ar|er|ir)", head):
        head = head[:-2] + ("a" if head.endswith("ar") else "e")
    elif head.endswith("ing"):
        head = head[:-3] + (
            "es" if head[:-3].endswith(("v", "k", "c")) and head != "drinking" and head != "working" else "s"
        )
    elif head and not head.endswith("s"):
        head = "has" if head == "have" else head + "s"
    return f"{head} {rest}".strip()


def _shorten(value: str, kind: str = "") -> str:
    """The value without what trails behind it: time, company, another clause."""
    text = plain(value)
    cut = _TAIL.search(" " + text)
    kept = value[: max(0, cut.start() - 1)] if cut else value
    if kind == "occupation":  # "nurse in Leicester"
        kept = re.sub(r"(?i) (?:in|em|at|na|no|numa?|for|pra|para|with|com|based)\b.*$", "", kept)
        kept = re.sub(r" (?:d[aeo]|from|of) [A-ZÀ-Ý].*$", "", kept)
    return kept.strip(" ,.;:!") or value.strip(" ,.;:!")
