"""One name per entity within a message: subjects, ends of relations and duplicates put in order (behaviour: 3).

Pure, in the order that the spec gives: pronouns and aliases become the canonical name, identity relations go, every
subject and end has an entity, exact duplicates fall together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from worker.llm.items import ExtractedEntity, ExtractedFact, ExtractedRelation
from worker.write.entity_types import compatible, unsure
from worker.write.extraction.reading import Reading
from worker.write.message import Message
from worker.write.names import fold, mentions, text_hash
from worker.write.pronouns import is_speaker_pronoun


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IDENTITY = _words(
    "same_as same is_same_as identical_to alias_of alias also_known_as aka known_as nickname_of is_nickname_of "
    "nicknamed called is_called equals equal_to is refers_to mesmo_que apelido_de conhecido_como"
)
# What an end of a relation is, where the model listed no entity for it.
_TARGET_TYPES: dict[str, str] = {
    **dict.fromkeys(("lives_in", "born_in", "moved_to", "located_in", "from", "visited", "travelled_to"), "place"),
    **dict.fromkeys(
        (
            "works_at",
            "works_for",
            "employed_at",
            "employed_by",
            "former_employee_of",
            "studies_at",
            "member_of",
            "founded",
        ),
        "organization",
    ),
    **dict.fromkeys(
        ("spouse_of", "married_to", "parent_of", "child_of", "sibling_of", "friend_of", "partner_of", "knows", "hired"),
        "person",
    ),
}
_PERSONS_SOURCE = frozenset(_TARGET_TYPES) - {"located_in", "from"}
# What a sentence without its subject begins with is a verb; after these it has another subject of its own.
_OWN_SUBJECT = _words(
    "the a an my his her their our your this that there it he she they we you i o os a as um uma meu minha seu "
    "sua este esta esse essa ele ela eles el la los las un una mi su le les un une mon ma son sa der die das ein "
    "eine il lo gli uno"
)


def normalise(reading: Reading, message: Message, known: Mapping[str, str] | None = None) -> Reading:
    """``reading`` with one name per entity. ``known`` gives the type of names that the memory has, by folded name.

    Repairs are counted: merged_entity, identity_relation, self_relation, exact_duplicate, added_entity, named_subject.
    """
    known = known or {}
    entities = _one_of_each([_speaking(entity, message) for entity in reading.entities], reading)
    canonical, entities = _grouped(entities, reading, known)

    def name_of(name: str) -> str:
        if is_speaker_pronoun(name, message.config.extra_pronouns):
            return canonical.get(fold(message.speaker), message.speaker)
        return canonical.get(fold(name), name)

    relations: dict[tuple[str, str, str], ExtractedRelation] = {}
    for relation in reading.relations:
        source, target = name_of(relation.source), name_of(relation.target)
        if _is_identity(relation.rel_type) or fold(source) == fold(target):
            reading.repairs["identity_relation" if _is_identity(relation.rel_type) else "self_relation"] += 1
            continue
        moved = relation.model_copy(update={"source": source, "target": target})
        relations.setdefault((fold(source), fold(relation.rel_type), fold(target)), moved)
    facts = _distinct(
        (
            _naming_subject(fact.model_copy(update={"subject": name_of(fact.subject)}), entities, reading)
            for fact in reading.facts
        ),
        reading,
    )
    complete = _with_missing(entities, facts, list(relations.values()), message, known, reading)
    profiles = {
        fold(name_of(item.name)): item.model_copy(update={"name": name_of(item.name)}) for item in reading.profiles
    }
    return replace(
        reading,
        entities=complete,
        facts=facts,
        relations=list(relations.values()),
        profiles=[item for item in profiles.values() if any(fold(e.name) == fold(item.name) for e in complete)],
    )


def _is_identity(rel_type: str) -> bool:
    return fold(rel_type.replace("_", " ")).replace(" ", "_") in IDENTITY


def _speaking(entity: ExtractedEntity, message: Message) -> ExtractedEntity:
    """An entity that is the speaker by another word ("I", "user") under the speaker's name; pronouns are no aliases."""
    extra = message.config.extra_pronouns
    aliases = [alias for alias in entity.aliases if not is_speaker_pronoun(alias, extra)]
    if is_speaker_pronoun(entity.name, extra):
        return ExtractedEntity(
            name=message.speaker, type="person", aliases=[a for a in aliases if a != message.speaker]
        )
    return entity if len(aliases) == len(entity.aliases) else entity.model_copy(update={"aliases": aliases})


def _one_of_each(entities: list[ExtractedEntity], reading: Reading) -> list[ExtractedEntity]:
    """Entities of one name and compatible type fall together; a person and a company of one name stay two."""
    kept: list[ExtractedEntity] = []
    for entity in entities:
        for place, other in enumerate(kept):
            if fold(other.name) == fold(entity.name) and compatible(other.type, entity.type):
                kept[place] = _joined(other, entity)
                reading.repairs["merged_entity"] += 1
                break
        else:
            kept.append(entity)
    return kept


def _joined(one: ExtractedEntity, other: ExtractedEntity) -> ExtractedEntity:
    aliases = {
        fold(alias): alias for alias in (*other.aliases, other.name, *one.aliases) if fold(alias) != fold(one.name)
    }
    kind = other.type if unsure(one.type) else one.type
    return ExtractedEntity(name=one.name, type=kind, aliases=list(aliases.values()))


def _grouped(
    entities: list[ExtractedEntity], reading: Reading, known: Mapping[str, str]
) -> tuple[dict[str, str], list[ExtractedEntity]]:
    """The canonical name by each folded name and alias, and the entities without those that are another's alias.

    An entity whose name is another's alias is that other one, unless a relation holds between the two: then they are
    two, whatever the alias says.
    """
    related = {
        frozenset((fold(item.source), fold(item.target)))
        for item in reading.relations
        if not _is_identity(item.rel_type)
    }
    claims = [(entity.name, alias) for entity in entities for alias in entity.aliases]
    for item in reading.relations:
        if _is_identity(item.rel_type) and not (fold(item.source) in known and fold(item.target) in known):
            longer, shorter = sorted((item.source, item.target), key=len, reverse=True)
            claims.append((longer, shorter))
    kept = {fold(entity.name): entity for entity in entities}
    same_name = len(kept) < len(entities)
    canonical = {folded: entity.name for folded, entity in kept.items()}
    for name, alias in claims:
        full, short = fold(canonical.get(fold(name), name)), fold(alias)
        if full == short or full not in kept or (short in kept and frozenset((full, short)) in related):
            continue
        if short not in canonical:
            canonical[short] = kept[full].name
            if all(fold(known_alias) != short for known_alias in kept[full].aliases):
                kept[full] = _joined(kept[full], ExtractedEntity(name=alias, type=kept[full].type))
        elif short in kept and compatible(kept[short].type, kept[full].type):
            merged = kept.pop(short)
            kept[full] = _joined(kept[full], merged)
            reading.repairs["merged_entity"] += 1
            for folded, owner in canonical.items():
                if fold(owner) == short:
                    canonical[folded] = kept[full].name
    if same_name:  # two kinds of one name: which is meant is not for names to say
        gone = {fold(entity.name) for entity in entities} - kept.keys()
        return canonical, [kept.get(fold(e.name), e) if compatible(kept.get(fold(e.name), e).type, e.type) else e
                           for e in entities if fold(e.name) not in gone]  # fmt: skip
    return canonical, list(kept.values())


def _naming_subject(fact: ExtractedFact, entities: list[ExtractedEntity], reading: Reading) -> ExtractedFact:
    """``fact`` with its subject in front where the text has none at all: "is a glassblower" (behaviour: 3)."""
    first = fact.text.split(" ", 1)[0]
    if not first.isascii() or not first.islower() or fold(first) in _OWN_SUBJECT or len(first) < 2:
        return fact
    names = [fact.subject, *(a for e in entities if fold(e.name) == fold(fact.subject) for a in e.aliases)]
    if mentions(fact.text, names) or any(word in fold(fact.text).split() for word in fold(fact.subject).split()):
        return fact
    reading.repairs["named_subject"] += 1
    return fact.model_copy(update={"text": f"{fact.subject} {fact.text}"})


def _distinct(facts: Iterable[ExtractedFact], reading: Reading) -> list[ExtractedFact]:
    """The facts without exact duplicates (subject and text, but for case, accents and punctuation)."""
    kept: dict[tuple[str, bytes], ExtractedFact] = {}
    for fact in facts:
        key = (fold(fact.subject), text_hash(fact.text))
        if key not in kept:
            kept[key] = fact
            continue
        reading.repairs["exact_duplicate"] += 1
        kept[key] = richer_of(kept[key], fact)
    return list(kept.values())


def richer_of(kept: ExtractedFact, other: ExtractedFact) -> ExtractedFact:
    """``kept`` with what only ``other`` knows beside the text: date, attribute, higher confidence and importance."""
    update: dict[str, object] = {"confidence": max(kept.confidence, other.confidence)}
    if other.importance > kept.importance:
        update |= {"importance": other.importance, "importance_category": other.importance_category}
    if kept.event_date is None and other.event_date is not None:
        update |= {"event_date": other.event_date, "event_date_precision": other.event_date_precision}
    if kept.attribute_key is None and other.attribute_key is not None:
        update |= {"attribute_key": other.attribute_key, "value": other.value}
    if other.action == "UPDATE":
        update["action"] = "UPDATE"
    return kept.model_copy(update=update)


def _with_missing(
    entities: list[ExtractedEntity],
    facts: list[ExtractedFact],
    relations: list[ExtractedRelation],
    message: Message,
    known: Mapping[str, str],
    reading: Reading,
) -> list[ExtractedEntity]:
    """``entities`` and one for each subject and end that has none."""
    complete = {fold(entity.name): entity for entity in reversed(entities)}
    missing: dict[str, ExtractedEntity] = {}
    wanted = [(fact.subject, "concept") for fact in facts]
    for relation in relations:
        kind = fold(relation.rel_type.replace("_", " ")).replace(" ", "_")
        wanted.append((relation.source, "person" if kind in _PERSONS_SOURCE else "concept"))
        wanted.append((relation.target, _TARGET_TYPES.get(kind, "concept")))
    for name, guess in wanted:
        folded = fold(name)
        if folded in complete:
            continue
        kind = "person" if folded == fold(message.speaker) else known.get(folded, guess)
        if folded not in missing:
            reading.repairs["added_entity"] += 1
        if folded not in missing or unsure(missing[folded].type):
            missing[folded] = ExtractedEntity(name=name, type=kind)
    return [*entities, *missing.values()]
