"""Portuguese verbs: which words are verb forms, and how the first person becomes the third.

Regular conjugation by rule over a list of common verbs, a table of irregular ones, and rules by ending for verbs that
are not in the list ("-o", "-ei", "-i" at the head of a clause).
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from worker.llm.offline.text import word_list, word_set

_AR = word_list("""
morar trabalhar gostar amar adorar odiar detestar comprar viajar casar mudar tocar falar estudar jogar ganhar usar
tomar evitar ajudar pintar cantar dançar nadar caminhar cozinhar cuidar criar adotar acabar começar terminar chegar
ficar voltar levar deixar passar entrar chamar achar pensar acreditar precisar pegar pagar gastar juntar guardar
assinar contratar lançar fundar abandonar parar continuar tentar conversar ligar contar perguntar mandar enviar
encontrar visitar conquistar completar aposentar formar separar divorciar namorar noivar apaixonar engravidar operar
machucar quebrar curar tratar vacinar fumar almoçar jantar acordar levantar deitar descansar treinar pedalar pescar
acampar plantar colecionar desenhar fotografar programar administrar gerenciar coordenar liderar ensinar lecionar
pesquisar publicar apresentar participar organizar planejar preparar esperar desejar sonhar lembrar cortar lavar
limpar arrumar consertar reformar alugar financiar emprestar doar trocar bancar montar instalar baixar testar virar
tirar botar colocar fechar mostrar olhar escutar procurar buscar apoiar votar militar atuar estagiar empregar afastar
perdoar brigar reclamar chorar gritar festejar comemorar celebrar convidar aceitar recusar negar confirmar cancelar
marcar adiar matricular alcançar dominar praticar frequentar odiar suportar aguentar tolerar apreciar valorizar
priorizar recomendar passear cursar prestar trancar largar completar faturar faltar custar pesar calçar adoçar
temperar assar fritar tricotar costurar bordar meditar rezar orar congregar batizar enterrar velar herdar enfrentar
superar melhorar piorar engordar cochilar roncar sonhar faxinar andar surfar escalar remar velejar patinar esquiar
lutar malhar alongar reprovar juntar quitar poupar costumar gerar anunciar brincar cobrar economizar postar gravar
editar navegar jejuar tatuar arranhar hospedar decorar aumentar negociar apostar
""")
_ER = word_list("""
viver comer beber correr vender aprender conhecer nascer crescer escrever receber esquecer morrer torcer entender
responder prometer meter parecer merecer agradecer oferecer descer escolher colher encher defender depender ofender
prender temer dever vencer acontecer adoecer envelhecer emagrecer enlouquecer aparecer desaparecer permanecer obedecer
eleger proteger sofrer mexer lamber varrer bater combater debater romper exercer estabelecer reconhecer fornecer
esclarecer remeter atender estender pretender acender suspender render ferver resolver desenvolver devolver envolver
mover converter perceber conceber preencher falecer enriquecer fortalecer inscrever descrever surpreender compreender
""")
_IR = word_list("""
partir decidir abrir assistir desistir existir insistir dividir permitir discutir curtir subir cumprir dormir sentir
mentir seguir conseguir preferir servir vestir repetir sugerir investir divertir fugir dirigir corrigir exigir fingir
descobrir cobrir tossir engolir pedir medir ouvir despedir impedir demitir admitir transmitir garantir imprimir reunir
unir punir produzir traduzir conduzir reduzir introduzir assumir resumir consumir aplaudir definir residir presidir
aderir ferir construir contribuir distribuir possuir incluir concluir substituir destruir influir atrair cair sair
trair esculpir competir
""")

# lemma: present 1s 3s 3p 1p, past 1s 3s 3p 1p, imperfect 3s 3p.
_IRREGULAR = """
ser sou é são somos fui foi foram fomos era eram
ir vou vai vão vamos fui foi foram fomos ia iam
estar estou está estão estamos estive esteve estiveram estivemos estava estavam
ter tenho tem têm temos tive teve tiveram tivemos tinha tinham
vir venho vem vêm vimos vim veio vieram viemos vinha vinham
ver vejo vê veem vemos vi viu viram vimos via viam
dar dou dá dão damos dei deu deram demos dava davam
fazer faço faz fazem fazemos fiz fez fizeram fizemos fazia faziam
dizer digo diz dizem dizemos disse disse disseram dissemos dizia diziam
trazer trago traz trazem trazemos trouxe trouxe trouxeram trouxemos trazia traziam
poder posso pode podem podemos pude pôde puderam pudemos podia podiam
querer quero quer querem queremos quis quis quiseram quisemos - -
saber sei sabe sabem sabemos soube soube souberam soubemos sabia sabiam
pôr ponho põe põem pomos pus pôs puseram pusemos punha punham
ler leio lê leem lemos li leu leram lemos lia liam
crer creio crê creem cremos cri creu creram cremos cria criam
doer doo dói doem doemos doí doeu doeram doemos doía doíam
perder perco perde perdem perdemos perdi perdeu perderam perdemos perdia perdiam
odiar odeio odeia odeiam odiamos odiei odiou odiaram odiamos odiava odiavam
passear passeio passeia passeiam passeamos passeei passeou passearam passeamos passeava passeavam
ouvir ouço ouve ouvem ouvimos ouvi ouviu ouviram ouvimos ouvia ouviam
pedir peço pede pedem pedimos pedi pediu pediram pedimos pedia pediam
medir meço mede medem medimos medi mediu mediram medimos media mediam
dormir durmo dorme dormem dormimos dormi dormiu dormiram dormimos dormia dormiam
sentir sinto sente sentem sentimos senti sentiu sentiram sentimos sentia sentiam
mentir minto mente mentem mentimos menti mentiu mentiram mentimos mentia mentiam
seguir sigo segue seguem seguimos segui seguiu seguiram seguimos seguia seguiam
conseguir consigo consegue conseguem conseguimos consegui conseguiu conseguiram conseguimos conseguia conseguiam
preferir prefiro prefere preferem preferimos preferi preferiu preferiram preferimos preferia preferiam
servir sirvo serve servem servimos servi serviu serviram servimos servia serviam
vestir visto veste vestem vestimos vesti vestiu vestiram vestimos vestia vestiam
repetir repito repete repetem repetimos repeti repetiu repetiram repetimos repetia repetiam
sugerir sugiro sugere sugerem sugerimos sugeri sugeriu sugeriram sugerimos sugeria sugeriam
investir invisto investe investem investimos investi investiu investiram investimos investia investiam
cobrir cubro cobre cobrem cobrimos cobri cobriu cobriram cobrimos cobria cobriam
descobrir descubro descobre descobrem descobrimos descobri descobriu descobriram descobrimos descobria descobriam
fugir fujo foge fogem fugimos fugi fugiu fugiram fugimos fugia fugiam
subir subo sobe sobem subimos subi subiu subiram subimos subia subiam
sair saio sai saem saímos saí saiu saíram saímos saía saíam
cair caio cai caem caímos caí caiu caíram caímos caía caíam
construir construo constrói constroem construímos construí construiu construíram construímos construía construíam
possuir possuo possui possuem possuímos possuí possuiu possuíram possuímos possuía possuíam
produzir produzo produz produzem produzimos produzi produziu produziram produzimos produzia produziam
traduzir traduzo traduz traduzem traduzimos traduzi traduziu traduziram traduzimos traduzia traduziam
conduzir conduzo conduz conduzem conduzimos conduzi conduziu conduziram conduzimos conduzia conduziam
""".strip().splitlines()
_SHAPE = (
    ("pres", 1, 1),
    ("pres", 3, 1),
    ("pres", 3, 2),
    ("pres", 1, 2),
    ("past", 1, 1),
    ("past", 3, 1),
    ("past", 3, 2),
    ("past", 1, 2),
    ("imp", 3, 1),
    ("imp", 3, 2),
)
# First person plural forms in -amos/-emos/-imos are present and past at once; for these verbs they tell a state.
_STATES = word_set(
    "morar trabalhar gostar amar adorar odiar detestar estudar falar viver ter ser estar usar namorar torcer "
    "preferir frequentar evitar precisar curtir cuidar criar fumar beber dividir treinar jogar tocar praticar "
    "torcer sofrer possuir administrar cantar dançar acordar costumar"
)
# Colloquial short forms of estar.
_SPOKEN = {
    "tô": ("estar", "pres", 1),
    "tá": ("estar", "pres", 3),
    "tão": ("estar", "pres", 3),
    "tava": ("estar", "imp", 3),
}

# Words at the head of a clause that end like a verb and are none.
NOT_VERBS = word_set(
    "quando quanto tudo todo isso aquilo isto claro certo obrigado obrigada mesmo muito pouco novo bonito lindo "
    "otimo pessimo perfeito combinado beleza aqui ali ai oi hoje foi sei nao como no so ano mes lado dado modo "
    "jeito medo tempo trabalho caso seguro logo cedo tarde segundo primeiro ultimo proximo unico meio cerca fato "
    "vamos lei rei dei outro outra sobre quase nunca sempre"
) - {"foi", "sei", "dei", "como", "trabalho", "caso"}
ADVERBS = word_set(
    "não nao nunca já ja sempre também tambem só so ainda mal realmente finalmente acabei hoje ontem agora "
    "atualmente recentemente simplesmente quase até ate nem geralmente normalmente raramente jamais enfim"
) - {"acabei"}
CLITICS = word_set("me se te lhe nos o a os as lhes")


class Form(NamedTuple):
    """What a verb form is: its verb, tense (pres, past, imp), person (1 or 3) and number (1 or 2)."""

    lemma: str
    tense: str
    person: int
    number: int


def _first_past(stem: str, ending: str) -> str:
    """The past first person of an -ar verb, with the spelling that keeps the sound (chegar, ficar, começar)."""
    for tail, spelt in (("g", "gu"), ("c", "qu"), ("ç", "c")):
        if stem.endswith(tail):
            return stem[: -len(tail)] + spelt + ending
    return stem + ending


def _first_present(stem: str) -> str:
    """The present first person of an -er/-ir verb (conhecer: conheço; dirigir: dirijo)."""
    if stem.endswith("c"):
        return stem[:-1] + "ço"
    return stem[:-1] + "jo" if stem.endswith("g") else stem + "o"


def _regular(lemma: str) -> list[str]:
    stem = lemma[:-2]
    if lemma.endswith("ar"):
        return [
            stem + "o",
            stem + "a",
            stem + "am",
            stem + "amos",
            _first_past(stem, "ei"),
            stem + "ou",
            stem + "aram",
            stem + "amos",
            stem + "ava",
            stem + "avam",
        ]
    theme = lemma[-2]
    return [
        _first_present(stem),
        stem + "e",
        stem + "em",
        stem + theme + "mos",
        stem + "i",
        stem + ("eu" if theme == "e" else "iu"),
        stem + theme + "ram",
        stem + theme + "mos",
        stem + "ia",
        stem + "iam",
    ]


@cache
def _tables() -> tuple[dict[str, list[Form]], dict[str, list[str]]]:
    conjugated = {verb: _regular(verb) for verb in _AR + _ER + _IR}
    for line in _IRREGULAR:
        lemma, *forms = line.split()
        conjugated[lemma] = forms
    by_form: dict[str, list[Form]] = {}
    for lemma, forms in conjugated.items():
        for form, (tense, person, number) in zip(forms, _SHAPE, strict=True):
            by_form.setdefault(form, []).append(Form(lemma, tense, person, number))
    for form, (lemma, tense, person) in _SPOKEN.items():
        by_form[form] = [Form(lemma, tense, person, 1)]
    return by_form, conjugated


def known(word: str) -> list[Form]:
    """The readings of a word that is a form of a verb in the list."""
    word = word.lower()
    for ending, put in (
        ("ávamos", "ava"),
        ("íamos", "ia"),
        ("éramos", "era"),
        ("ínhamos", "inha"),
        ("únhamos", "unha"),
    ):
        if word.endswith(ending):  # "morávamos" is "morava" of us
            once = _tables()[0].get(word[: -len(ending)] + put, [])
            return [Form(form.lemma, "imp", 1, 2) for form in once if form.tense == "imp"][:1]
    return _tables()[0].get(word, [])


def is_verb(word: str) -> bool:
    """Whether a word is a finite form of a known verb."""
    return bool(known(word))


def first_person(word: str, *, guess: bool = False) -> str | None:
    """The third person singular of a first person form; None if it is not one.

    With ``guess`` (at the head of a clause, where only a verb makes sense) unknown verbs are read by their ending.
    """
    word = word.lower()
    readings = [form for form in known(word) if form.person == 1]
    if readings:
        return _third(word, readings)
    if known(word) and any(form.tense != "imp" for form in known(word)):
        return None
    if known(word):  # imperfect: "tinha", "morava" are both persons
        return word
    return _guess(word) if guess and word not in NOT_VERBS else None


def _third(word: str, readings: list[Form]) -> str:
    chosen = readings[0]
    if len(readings) > 1 and chosen.number == 2 and chosen.lemma not in _STATES:
        chosen = next((form for form in readings if form.tense == "past"), chosen)
    if word in _SPOKEN:
        return "está"
    column = {"pres": 1, "past": 5, "imp": 8}[chosen.tense]
    return _tables()[1][chosen.lemma][column]


def _guess(word: str) -> str | None:
    if len(word) < 4:
        return None
    for ending, spelt in (
        ("guei", "gou"),
        ("quei", "cou"),
        ("cei", "çou"),
        ("ei", "ou"),
        ("eio", "eia"),
        ("aí", "aiu"),
    ):
        if word.endswith(ending):
            return word[: -len(ending)] + spelt
    if word.endswith(("ci", "di", "ti", "li", "vi", "ri", "gui", "mi")):
        return word[:-1] + ("eu" if word.endswith(("ci", "ndi", "rdi")) else "iu")
    if word.endswith("ço"):
        return word[:-2] + "ce" if word.endswith("eço") else word[:-1] + "a"
    if word.endswith("o") and not word.endswith(
        ("ão", "ado", "ido", "oso", "ento", "eiro", "ismo", "ico", "inho", "ário")
    ):
        return word[:-1] + "a"
    if word.endswith("amos"):
        return word[:-4] + "ou"
    return None


def is_unreal(word: str) -> bool:
    """Conditional or imperfect subjunctive of a known verb ("compraria", "ganhasse"): nothing that happened."""
    lemmas = _tables()[1]
    for ending, put in (("iam", ""), ("ia", ""), ("asse", "ar"), ("esse", "er"), ("isse", "ir"), ("ássemos", "ar")):
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) > 1 and stem + put in lemmas and (put or stem.endswith("r")):
            return word not in ("seria", "esse")
    return word in (
        "fosse",
        "tivesse",
        "pudesse",
        "fizesse",
        "estivesse",
        "seria",
        "teria",
        "faria",
        "soubesse",
        "quisesse",
    )


def is_infinitive(word: str) -> bool:
    """Whether a word is the infinitive of a known verb."""
    return word in _tables()[1]


def gerund_of(word: str) -> str | None:
    """The infinitive of a known verb's gerund ("morando"), or None."""
    m = re.fullmatch(r"(\w+?)([aei])ndo", word.lower())
    lemma_ = f"{m[1]}{m[2]}r" if m else ""
    return lemma_ if lemma_ in _tables()[1] else None


def third_person(word: str) -> bool:
    """Whether a word can be a verb in the third person."""
    return any(form.person == 3 for form in known(word))


def past(word: str) -> bool:
    """Whether a word is a past tense form and nothing else."""
    return bool(known(word)) and all(form.tense == "past" for form in known(word))


def lemma(word: str) -> str:
    """The verb of a form, or the word itself."""
    readings = known(word)
    return readings[0].lemma if readings else word.lower()


def singular(word: str) -> str:
    """The third person singular of a third person plural form ("moram": "mora"); any other word unchanged."""
    for form in known(word):
        if form.person == 3 and form.number == 2:
            return _tables()[1][form.lemma][{"pres": 1, "past": 5, "imp": 8}[form.tense]]
    return word


def plural(form: Form) -> str:
    """The third person plural in the tense of ``form``."""
    if form.number == 1:
        return _tables()[1][form.lemma][{"pres": 2, "past": 6, "imp": 9}[form.tense]]
    tense = (
        "past" if form.lemma not in _STATES and form.tense == "pres" and not _distinct_past(form.lemma) else form.tense
    )
    return _tables()[1][form.lemma][{"pres": 2, "past": 6, "imp": 9}[tense]]


def _distinct_past(lemma_: str) -> bool:
    """Whether "we" has another form in the past than in the present (fazemos, fizemos)."""
    forms = _tables()[1][lemma_]
    return forms[3] != forms[7]
