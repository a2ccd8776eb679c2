"""Which entities a text names, and the links from facts to them (behaviour: 8, "Entity links")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.write.fact_rows import as_rows
from worker.write.names import fold, mentions
from worker.write.plans import Resolution

# An entity that is gone (known only by a name that the planner saw) costs its link, never the batch.
INSERT_LINKS = text("""
INSERT INTO memory_fact_entity_links (fact_id, agent_id, entity_key, is_primary)
SELECT r.fact_id, :agent_id, r.entity_key, r.is_primary
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (fact_id uuid, entity_key text, is_primary boolean)
  JOIN memory_entities e ON e.agent_id = :agent_id AND e.canonical_key = r.entity_key
 ORDER BY r.fact_id, r.entity_key
ON CONFLICT DO NOTHING
""")


@dataclass(slots=True)
class NameBook:
    """Every name that a message's entities go by."""

    owners: dict[str, set[str]] = field(default_factory=dict)  # folded name -> keys
    names: dict[str, list[str]] = field(default_factory=dict)  # key -> names as written
    said: dict[str, str] = field(default_factory=dict)  # folded name in the message -> key

    @classmethod
    def of(cls, resolution: Resolution) -> NameBook:
        """The names of a resolution: as said, as displayed, aliases, and those already stored."""
        book = cls()
        for entity in resolution.entities:
            book.said.setdefault(fold(entity.name), entity.key)
            for name in (entity.name, entity.display_name, *entity.aliases):
                book.add(name, entity.key)
        for key, names in resolution.known_names.items():
            for name in names:
                book.add(name, key)
        return book

    def add(self, name: str, key: str) -> None:
        """Register one name of one entity."""
        folded = fold(name)
        if folded and key not in self.owners.setdefault(folded, set()):
            self.owners[folded].add(key)
            self.names.setdefault(key, []).append(name)

    def key_of(self, name: str) -> str | None:
        """Whom the message means by ``name``; None where the resolution does not say."""
        folded = fold(name)
        if folded in self.said:
            return self.said[folded]
        owners = self.owners.get(folded, set())
        return next(iter(owners)) if len(owners) == 1 else None

    def names_of(self, key: str) -> list[str]:
        """The names of ``key``; none where it is unknown."""
        return self.names.get(key, [])

    def mentioned(self, sentence: str, subject: str) -> list[str]:
        """The keys that ``sentence`` names, the subject's own first; whole words, the longest name wins.

        A name that a person and a company share means the subject, else whom the message means by it.
        """
        found: dict[str, None] = {subject: None}
        own = {fold(name) for name in self.names_of(subject)}
        for name in mentions(sentence, [name for names in self.names.values() for name in names]):
            folded = fold(name)
            keys = self.owners[folded]
            if folded in own or (not subject.startswith("person:") and _within(folded, own)):
                keys = {key for key in keys if key == subject or not key.startswith("person:")}
                if folded in own:
                    keys = {subject}
            elif len(keys) > 1 and folded in self.said:
                keys = {self.said[folded]}
            found.update((key, None) for key in sorted(keys))
        return list(found)


def _within(folded: str, names: set[str]) -> bool:
    """Whether the name is part of a longer one: the person in "Prado Advogados"."""
    return any(f" {folded} " in f" {name} " for name in names)


def insert_links(session: Session, agent_id: str, mentioned: Mapping[UUID, Sequence[str]]) -> None:
    """Link each fact to the entities that it names; the first one is its subject."""
    rows = [
        {"fact_id": fact, "entity_key": key, "is_primary": index == 0}
        for fact, keys in mentioned.items()
        for index, key in enumerate(keys)
    ]
    if rows:
        session.execute(INSERT_LINKS, {"agent_id": agent_id, "rows": as_rows(rows)})
