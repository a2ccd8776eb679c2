"""Words for people and pets by what they are to somebody, in six languages, and the edge that each stands for.

The names of the edges are the offline reader's too (``worker/llm/offline/roles.py``), so that all readers meet.
"""

from __future__ import annotations

from dataclasses import dataclass

from worker.write.names import fold

LANGUAGES = ("en", "pt", "es", "fr", "it", "de")


@dataclass(frozen=True, slots=True)
class Role:
    """A role and its edge.

    ``holder_first``: the edge runs from the one who has the role ("Helena parent_of Rafael"); else from the other.
    ``symmetrical``: the edge says the same both ways. ``name``: the English word, as it stands in placeholders' keys.
    ``kind``: roles of one kind with different genders exclude each other; of different kinds always.
    ``entity_type``: of the holder, "person" or "pet".
    """

    rel_type: str
    holder_first: bool
    symmetrical: bool
    name: str
    gender: str
    kind: str
    entity_type: str = "person"


@dataclass(frozen=True, slots=True)
class RoleWord:
    """A word for a role, and the languages that have it. ``owned``: it only means the role with a possessive."""

    role: Role
    languages: tuple[str, ...]
    owned: bool = False


# rel_type, direction (> from the holder, = symmetrical, < to the holder), English name, gender (m, f or -), then the
# forms in en | pt | es | fr | it | de. A form with "!" needs a possessive before it.
_TABLE = """
spouse_of = wife f: wife | esposa, mulher! | esposa, mujer! | épouse, femme! | moglie | Ehefrau, Frau!
spouse_of = husband m: husband, hubby | marido, esposo | marido, esposo | mari, époux | marito | Ehemann, Mann!
spouse_of = spouse -: spouse | cônjuge | cónyuge | conjoint | coniuge | Ehepartner
partner_of = girlfriend f: girlfriend | namorada | novia | copine, petite amie | fidanzata, ragazza! | Freundin
partner_of = boyfriend m: boyfriend | namorado | novio | copain, petit ami | fidanzato, ragazzo! | Freund!
partner_of = partner -: partner | companheiro, companheira, parceiro, parceira | pareja | compagnon, compagne | compagno, compagna | Partner, Partnerin
partner_of = fiancee f: fiancée | noiva | prometida | fiancée | | Verlobte
partner_of = fiance m: fiancé | noivo | prometido | fiancé | | Verlobter
former_partner_of = ex -: ex | ex | ex | ex | ex | Ex
former_partner_of = ex_wife f: ex-wife | ex-mulher, ex-esposa | ex-esposa, ex-mujer, exesposa | ex-femme | ex-moglie | Ex-Frau
former_partner_of = ex_husband m: ex-husband | ex-marido | ex-marido, exmarido | ex-mari | ex-marito | Ex-Mann
former_partner_of = ex_girlfriend f: ex-girlfriend | ex-namorada | ex-novia, exnovia | ex-copine | ex-ragazza, ex-fidanzata | Ex-Freundin
former_partner_of = ex_boyfriend m: ex-boyfriend | ex-namorado | ex-novio, exnovio | ex-copain | ex-ragazzo, ex-fidanzato | Ex-Freund
parent_of > mother f: mother, mom, mum, mommy, mama | mãe, mamãe | madre, mamá | mère, maman | madre, mamma | Mutter, Mama
parent_of > father m: father, dad, daddy | pai, papai | padre, papá | père, papa | padre, papà | Vater, Papa
parent_of > stepmother f: stepmother, stepmom | madrasta | madrastra | belle-mère | matrigna | Stiefmutter
parent_of > stepfather m: stepfather, stepdad | padrasto | padrastro | beau-père | patrigno | Stiefvater
child_of > son m: son | filho | hijo | fils | figlio | Sohn
child_of > daughter f: daughter | filha | hija | fille! | figlia | Tochter
child_of > child -: child!, kid!, baby! | bebê! | bebé! | enfant!, bébé! | bambino!, bambina! | Kind!, Baby!
child_of > stepson m: stepson | enteado | hijastro | beau-fils | figliastro | Stiefsohn
child_of > stepdaughter f: stepdaughter | enteada | hijastra | belle-fille | figliastra | Stieftochter
sibling_of = brother m: brother, bro! | irmão, mano! | hermano | frère | fratello | Bruder
sibling_of = sister f: sister, sis! | irmã, mana! | hermana | sœur | sorella | Schwester
sibling_of = sibling -: sibling, twin | gêmeo, gêmea | gemelo, gemela, mellizo, melliza | jumeau, jumelle | gemello, gemella | Zwilling
grandparent_of > grandmother f: grandmother, grandma, granny, nana! | avó, vovó, vó | abuela, abuelita | grand-mère, mamie | nonna | Großmutter, Oma
grandparent_of > grandfather m: grandfather, grandpa, granddad | avô, vovô, vô | abuelo, abuelito | grand-père, papi | nonno | Großvater, Opa
grandchild_of > grandson m: grandson | neto | nieto | petit-fils | | Enkel
grandchild_of > granddaughter f: granddaughter | neta | nieta | petite-fille | | Enkelin
uncle_of > uncle m: uncle | tio | tío | oncle, tonton | zio | Onkel
aunt_of > aunt f: aunt, auntie | tia | tía | tante, tata! | zia | Tante
cousin_of = cousin -: cousin | primo, prima | primo, prima | cousin, cousine | cugino, cugina | Cousin, Cousine
nephew_of > nephew m: nephew | sobrinho | sobrino | neveu | | Neffe
niece_of > niece f: niece | sobrinha | sobrina | nièce | | Nichte
in_law_of = mother_in_law f: mother-in-law | sogra | suegra | | suocera | Schwiegermutter
in_law_of = father_in_law m: father-in-law | sogro | suegro | | suocero | Schwiegervater
in_law_of = brother_in_law m: brother-in-law | cunhado | cuñado | beau-frère | cognato | Schwager
in_law_of = sister_in_law f: sister-in-law | cunhada | cuñada | belle-sœur | cognata | Schwägerin
in_law_of = son_in_law m: son-in-law | genro | yerno | gendre | genero | Schwiegersohn
in_law_of = daughter_in_law f: daughter-in-law | nora! | nuera | | nuora | Schwiegertochter
godparent_of > godmother f: godmother | madrinha | madrina | marraine | madrina | Patentante
godparent_of > godfather m: godfather | padrinho | padrino | parrain | padrino | Patenonkel
godchild_of > godson m: godson | afilhado | ahijado | filleul | figlioccio | Patensohn
godchild_of > goddaughter f: goddaughter | afilhada | ahijada | filleule | figlioccia | Patentochter
friend_of = friend -: friend, bestie, buddy!, pal!, mate! | amigo, amiga | amigo, amiga | ami, amie | amico, amica | guter Freund, gute Freundin
neighbor_of = neighbor -: neighbor, neighbour | vizinho, vizinha | vecino, vecina | voisin, voisine | vicino, vicina | Nachbar, Nachbarin
roommate_of = roommate -: roommate, flatmate, housemate | colega de quarto | compañero de piso, compañera de piso | colocataire | coinquilino, coinquilina | Mitbewohner, Mitbewohnerin
colleague_of = colleague -: colleague, coworker, co-worker, workmate, teammate | colega, colega de trabalho | compañero de trabajo, compañera de trabajo | collègue | collega | Kollege, Kollegin
classmate_of = classmate -: classmate | colega de classe, colega de turma | compañero de clase, compañera de clase | camarade de classe | compagno di classe | Mitschüler, Mitschülerin
boss_of > boss -: boss, supervisor | chefe, chefa, patrão, patroa | jefe, jefa | chef!, patron, patronne | capo!, capa! | Chef, Chefin
manager_of > manager -: manager | gerente | gerente | | |
employee_of > employee -: employee | funcionário, funcionária | empleado, empleada | employé, employée | dipendente | Angestellter, Angestellte
mentor_of > mentor -: mentor | mentor, mentora, orientador, orientadora | mentor, mentora | | mentore | Mentor
teacher_of > teacher -: teacher, professor | professor, professora | profesor, profesora, maestro!, maestra! | professeur, prof! | insegnante, professore, professoressa | Lehrer, Lehrerin
student_of > student -: student | aluno, aluna | alumno, alumna | élève | studente, studentessa | Schüler, Schülerin
doctor_of > doctor -: doctor | médico, médica | médico, médica | médecin, docteur | medico, dottore, dottoressa | Arzt, Ärztin
dentist_of > dentist -: dentist | dentista | dentista | dentiste | dentista | Zahnarzt, Zahnärztin
therapist_of > therapist -: therapist, psychologist | terapeuta, psicólogo, psicóloga | terapeuta, psicólogo, psicóloga | thérapeute, psychologue | terapeuta, psicologo, psicologa | Therapeut, Therapeutin
trainer_of > trainer -: trainer, coach | treinador, treinadora | entrenador, entrenadora | entraîneur, entraîneuse | allenatore, allenatrice | Trainer, Trainerin
landlord_of > landlord -: landlord, landlady | senhorio, senhoria | casero, casera | propriétaire! | padrone di casa | Vermieter, Vermieterin
business_partner_of = business_partner -: business partner, co-founder | sócio, sócia | socio, socia | associé, associée | socio, socia | Geschäftspartner, Geschäftspartnerin
owns < dog -: dog, puppy, pup | cachorro, cachorra, cão, cadela, cachorrinho, cachorrinha | perro, perra, perrito, perrita | chien, chienne | cane, cagnolino | Hund, Hündin
owns < cat -: cat, kitten | gato, gata, gatinho, gatinha | gato, gata, gatito, gatita | chat!, chatte! | gatto, gatta, gattino | Katze, Kater
owns < bird -: parrot, bird! | papagaio, passarinho, calopsita, periquito | loro, pájaro! | perroquet, oiseau! | pappagallo | Papagei, Vogel!
owns < rabbit -: rabbit, bunny | coelho, coelha | conejo, coneja | lapin | coniglio | Kaninchen
owns < hamster -: hamster | hamster | hámster | hamster | criceto | Hamster
owns < horse -: horse, mare, pony | cavalo, égua | caballo!, yegua! | cheval!, jument | cavallo! | Pferd, Pony
owns < turtle -: turtle, tortoise | tartaruga, jabuti | tortuga | tortue | tartaruga | Schildkröte
owns < pet -: pet! | bicho!, pet! | mascota | animal! | | Haustier
"""  # noqa: E501
_BY_ACCENT = {"avó": "grandmother", "vovó": "grandmother", "vó": "grandmother", "avô": "grandfather"}
_BY_ACCENT |= {"vovô": "grandfather", "vô": "grandfather"}

# What else an edge of a role is called, and whether it then runs from the holder.
_OTHER_EDGES: dict[str, tuple[tuple[str, bool], ...]] = {
    "spouse_of": (("married_to", True), ("spouse", True), ("has_spouse", False)),
    "partner_of": (("dating", True), ("engaged_to", True), ("in_relationship_with", True), ("fiance_of", True)),
    "parent_of": (("child_of", False), ("has_parent", False), ("has_child", True)),
    "child_of": (("parent_of", False), ("has_child", False), ("has_parent", True)),
    "grandparent_of": (("grandchild_of", False),),
    "grandchild_of": (("grandparent_of", False),),
    "sibling_of": (("has_sibling", True), ("twin_of", True)),
    "boss_of": (("manager_of", True), ("supervisor_of", True), ("reports_to", False), ("manages", True)),
    "manager_of": (("boss_of", True), ("reports_to", False), ("manages", True)),
    "employee_of": (("boss_of", False), ("reports_to", True)),
    "friend_of": (("friends_with", True), ("best_friend_of", True)),
    "neighbor_of": (("neighbour_of", True),),
    "colleague_of": (("works_with", True), ("coworker_of", True)),
    "teacher_of": (("student_of", False), ("teaches", True)),
    "student_of": (("teacher_of", False),),
    "uncle_of": (("nephew_of", False), ("niece_of", False)),
    "aunt_of": (("nephew_of", False), ("niece_of", False)),
    "doctor_of": (("patient_of", False),),
    "owns": (("has_pet", False), ("pet_of", True), ("owner_of", False)),
}


def _build() -> tuple[dict[str, Role], dict[str, RoleWord], dict[str, list[str]]]:
    roles: dict[str, Role] = {}
    found: dict[str, RoleWord] = {}
    spoken: dict[str, list[str]] = {}
    for line in _TABLE.strip().splitlines():
        head, _, forms = line.partition(":")
        rel_type, arrow, name, gender = head.split()
        kind = name if rel_type in ("in_law_of", "owns") else "step" if name.startswith("step") else rel_type
        holder = "pet" if rel_type == "owns" else "person"
        role = Role(rel_type, arrow == ">", arrow == "=", name, gender.strip("-"), kind, holder)
        roles[name] = role
        for language, column in zip(LANGUAGES, forms.split("|"), strict=True):
            for form in filter(None, map(str.strip, column.split(","))):
                word = form.rstrip("!")
                known = found.get(fold(word))
                if known is None:
                    found[fold(word)] = RoleWord(role, (language,), form.endswith("!"))
                elif known.role.rel_type == rel_type and language not in known.languages:
                    found[fold(word)] = RoleWord(known.role, (*known.languages, language), known.owned)
                spoken.setdefault(name, []).append(word)
    return roles, found, spoken


ROLES, WORDS, FORMS = _build()
LONGEST_FORM = max(len(word.split()) for word in WORDS)


def role_word(written: str) -> RoleWord | None:
    """What ``written`` (one word or a compound such as "mother-in-law") means as a role, None if nothing.

    Plurals mean groups, not persons, and are no roles.
    """
    found = WORDS.get(fold(written))
    if found is not None and (by_accent := _BY_ACCENT.get(written.casefold())):
        return RoleWord(ROLES[by_accent], found.languages, found.owned)
    return found


def edges_of(role: Role) -> list[tuple[str, bool | None]]:
    """The stored edges that show who has ``role``: rel_type and whether its source is the holder (None: either end)."""
    own: list[tuple[str, bool | None]] = [(role.rel_type, None if role.symmetrical else role.holder_first)]
    own += [(f"{role.name}_of", True), (f"has_{role.name}", False)]
    for rel_type, from_holder in _OTHER_EDGES.get(role.rel_type, ()):
        own.append((rel_type, None if role.symmetrical else from_holder))
    return list(dict.fromkeys(own))


def excludes(one: Role, other: Role) -> bool:
    """Whether nobody is both: brother and sister, mother-in-law and sister-in-law, mother and stepmother."""
    if one.rel_type != other.rel_type:
        return False
    return one.kind != other.kind or bool(one.gender and other.gender and one.gender != other.gender)
