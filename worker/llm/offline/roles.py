"""Words for people and animals by what they are to somebody, in both languages: wife, chefe, cachorro."""

from __future__ import annotations

from dataclasses import dataclass

from worker.llm.offline.text import fold, word_set


@dataclass(frozen=True, slots=True)
class Role:
    """A role's edge. ``holder_first``: the edge runs from the one who has the role ("Helena parent_of Rafael")."""

    rel_type: str
    holder_first: bool
    gender: str
    english: str
    kind: str = "person"


# rel_type, direction (> from the holder, = symmetrical: written from the speaker), english word, its forms. A form may
# carry its gender as ":f" or ":m".
_TABLE = """
spouse_of = wife wife:f missus:f esposa:f mulher:f
spouse_of = husband husband:m hubby:m marido:m esposo:m
spouse_of = spouse spouse conjuge
partner_of = girlfriend girlfriend:f namorada:f
partner_of = boyfriend boyfriend:m namorado:m
partner_of = partner partner companheiro:m companheira:f parceiro:m parceira:f
partner_of = fiancé fiance:m fiancee:f noivo:m noiva:f
former_partner_of = ex ex ex-wife:f ex-husband:m ex-girlfriend:f ex-boyfriend:m
former_partner_of = ex ex-mulher:f ex-marido:m ex-namorada:f ex-namorado:m ex-esposa:f
parent_of > parent parent
parent_of > mother mother:f mom:f mum:f mam:f mummy:f mommy:f mama:f mae:f mamae:f
parent_of > father father:m dad:m daddy:m pai:m papai:m
parent_of > stepfather stepfather:m padrasto:m
parent_of > stepmother stepmother:f madrasta:f
child_of > son son:m filho:m
child_of > daughter daughter:f filha:f
child_of > child child kid baby bebe eldest youngest oldest firstborn cacula
child_of > stepson stepson:m enteado:m
child_of > stepdaughter stepdaughter:f enteada:f
sibling_of = brother brother:m irmao:m
sibling_of = sister sister:f irma:f
sibling_of = stepbrother stepbrother:m half-brother:m step-brother:m meio-irmao:m
sibling_of = stepsister stepsister:f half-sister:f step-sister:f meia-irma:f
sibling_of = twin twin gemeo:m gemea:f
grandparent_of > grandmother grandmother:f grandma:f granny:f nan:f nana:f gran:f avo_f:f vovo_f:f
grandparent_of > grandfather grandfather:m grandpa:m granddad:m grandad:m avo:m vovo:m
grandchild_of > grandson grandson:m neto:m
grandchild_of > granddaughter granddaughter:f neta:f
uncle_of > uncle uncle:m tio:m
aunt_of > aunt aunt:f auntie:f tia:f
cousin_of = cousin cousin primo:m prima:f
nephew_of > nephew nephew:m sobrinho:m
niece_of > niece niece:f sobrinha:f
in_law_of = mother-in-law mother-in-law:f sogra:f
in_law_of = father-in-law father-in-law:m sogro:m
in_law_of = brother-in-law brother-in-law:m cunhado:m
in_law_of = sister-in-law sister-in-law:f cunhada:f
in_law_of = son-in-law son-in-law:m genro:m
in_law_of = daughter-in-law daughter-in-law:f nora:f
godparent_of > godmother godmother:f madrinha:f
godparent_of > godfather godfather:m padrinho:m
godchild_of > godson godson:m afilhado:m
godchild_of > goddaughter goddaughter:f afilhada:f
friend_of = friend friend mate buddy bestie pal amigo:m amiga:f
neighbor_of = neighbour neighbour neighbor vizinho:m vizinha:f
roommate_of = roommate roommate flatmate housemate room-mate flat-mate
colleague_of = colleague colleague coworker co-worker teammate colega
boss_of > boss boss supervisor chefe chefa:f patrao:m patroa:f
manager_of > manager manager gerente
mentor_of > mentor mentor orientador:m orientadora:f
teacher_of > teacher teacher professor professora:f
doctor_of > doctor doctor medico:m medica:f
dentist_of > dentist dentist dentista
therapist_of > therapist therapist terapeuta psicologo:m psicologa:f
trainer_of > coach coach trainer treinador:m treinadora:f
landlord_of > landlord landlord:m landlady:f
student_of > student student aluno:m aluna:f
business_partner_of = partner socio:m socia:f
"""
_PETS = """
dog dog greyhound beagle labrador poodle terrier spaniel collie dachshund bulldog husky
dog retriever pug corgi chihuahua mutt
dog vira-lata shih-tzu pinscher labradora:f dog puppy pup
dog cachorro:m cachorra:f cao:m cadela:f cachorrinho:m cachorrinha:f filhote:m
cat siamese persian ragdoll tabby
cat cat kitten gato:m gata:f gatinho:m gatinha:f
bird bird parrot canary parakeet budgie cockatiel cockatoo passaro:m papagaio:m calopsita:f canario:m periquito:m
rabbit rabbit bunny coelho:m coelha:f
hamster hamster gerbil
snake snake gecko lizard cobra iguana
ferret ferret chinchilla
hen hen chicken goat sheep pig donkey galinha:f cabra:f porco:m jumento:m burro:m
horse horse mare pony cavalo:m egua:f
fish goldfish peixe:m
turtle turtle tortoise tartaruga:f jabuti:m
guinea guinea-pig porquinho-da-india:m
pet pet
"""


def _read(spec: str) -> tuple[str, str]:
    word, _, gender = spec.partition(":")
    return word, gender


def _build() -> dict[str, Role]:
    roles: dict[str, Role] = {}
    for line in _TABLE.strip().splitlines():
        rel, arrow, english, *forms = line.split()
        for word, gender in map(_read, forms):
            roles[word] = Role(rel, arrow == ">", gender, english)
    for line in _PETS.strip().splitlines():
        english, *forms = line.split()
        for word, gender in map(_read, forms):
            roles.setdefault(word, Role("owns", False, gender, english, "pet"))
    return roles


ROLES = _build()
ADJECTIVES = word_set(
    "kid baby best older younger elder little big eldest youngest oldest dear late new old current former good "
    "close only "
    "middle twin oldest first second great longtime childhood black white grey gray brown orange rescue melhor "
    "melhores grande velho velha novo nova antigo antiga querido querida atual falecido falecida mais ultimo "
    "ultima unico unica primeiro primeira segundo segunda pequeno pequena bom boa"
)
TRAILING = (
    "mais velho",
    "mais velha",
    "mais novo",
    "mais nova",
    "do meio",
    "caçula",
    "de infância",
    "gêmeo",
    "gêmea",
    "adotivo",
    "adotiva",
    "materno",
    "materna",
    "paterno",
    "paterna",
    "mais antigo",
    "mais antiga",
    "de trabalho",
    "do trabalho",
    "de quarto",
    "de apartamento",
    "de apê",
    "de república",
    "de classe",
    "de turma",
    "de escola",
    "da escola",
    "de longa data",
    "de consideração",
    "de criação",
    "da faculdade",
    "de faculdade",
    "from work",
    "from college",
    "from school",
    "from university",
    "from uni",
    "from church",
    "from home",
)

# Patterns in which roles stand: "my older brother", "meu primo de segundo grau".
ADJ = "(?:" + "|".join(sorted(ADJECTIVES, key=len, reverse=True)) + ")"
TRAIL = "(?:" + "|".join(TRAILING) + ")"
WORD = r"[^\W\d_]+(?:-[^\W\d_]+)*"
MINE = r"(?:my|our|[Mm]eu|[Mm]inha|[Nn]osso|[Nn]ossa|[Mm]eus|[Mm]inhas|[Nn]ossos|[Nn]ossas|My|Our)"


def role_of(word: str) -> Role | None:
    """The role that a word names, singular or plural ("filhos", "kids", "children")."""
    lowered = word.lower()
    if lowered in ("avó", "vovó", "avô", "vovô", "vó", "vô"):  # only the accent tells grandmother from grandfather
        return ROLES["avo_f" if lowered.endswith("ó") else "avo"]
    folded = fold(word)
    if folded.startswith("colega de "):
        return ROLES["roommate"] if folded[10:] in ("quarto", "apartamento", "ape", "republica", "casa") else None
    irregular = {
        "children": "child",
        "irmaos": "irmao",
        "irmas": "irma",
        "wives": "wife",
        "pais": "pai",
        "caes": "cao",
        "puppies": "puppy",
    }
    folded = irregular.get(folded, folded)
    return ROLES.get(folded) or (ROLES.get(folded[:-1]) if folded.endswith("s") and len(folded) > 3 else None)


def as_mine(word: str) -> Role | None:
    """The role of somebody who is "mine": "my twins" are the speaker's children."""
    return ROLES["child"] if fold(word) in ("twins", "gemeos", "gemeas", "triplets", "trigemeos") else role_of(word)


def is_plural(word: str) -> bool:
    """Whether a role word names several."""
    folded = fold(word)
    return folded in ("children", "irmaos", "pais", "caes", "puppies", "wives") or (
        folded not in ROLES and folded.endswith("s")
    )
