"""Edges: their types, the facts that hold them up, and when they are true (behaviour: 8, "Relationships" to "cascade").

An edge's validity is a function of its evidence: ``refresh_edges`` derives it from the recorded facts, and nothing
else ever sets it. So a cascade, a late fact and an edge that comes back to life are one and the same computation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.write.fact_rows import as_rows

MAX_REL_TYPE_CHARS = 64

# Relations that say that two names are one thing: they are for resolution, never an edge.
_IDENTITY = (
    "same_as is is_a_name_of alias_of has_alias also_known_as aka known_as identical_to equals equal_to nickname_of "
    "has_nickname called is_called named name_of e_o_mesmo_que mesmo_que apelido_de conhecido_como mismo_que"
)
IDENTITY = frozenset(_IDENTITY.split())

# Of these a person mostly has one at a time: a new one raises the question what became of the old one. The model
# answers it; two jobs may both stay.
ONE_AT_A_TIME = frozenset({"lives_in", "works_at", "married_to", "engaged_to", "partner_of", "studies_at"})

# alias -> type. Only spellings of one relation in one direction; a type that says more ("mother_of") stays.
_ALIASES: dict[str, str] = {
    alias: rel_type
    for rel_type, aliases in {
        "works_at": "employed_at employed_by works_for work_at works_in working_at employee_of is_employed_by "
        "is_employed_at trabalha_em trabalha_na trabalha_no trabalha_para trabaja_en trabaja_para",
        "lives_in": "resides_in lives_at living_in live_in resident_of based_in resides_at mora_em mora_na mora_no "
        "vive_em reside_em vive_en reside_en",
        "born_in": "was_born_in birthplace nasceu_em nacio_en",
        "married_to": "spouse_of is_married_to husband_of wife_of casado_com casada_com casado_con casada_con",
        "partner_of": "dating is_dating boyfriend_of girlfriend_of in_relationship_with in_a_relationship_with namora "
        "namora_com namorado_de namorada_de novio_de novia_de",
        "engaged_to": "fiance_of fiancee_of noivo_de noiva_de",
        "sibling_of": "brother_of sister_of irmao_de irma_de hermano_de hermana_de",
        "parent_of": "mother_of father_of mae_de pai_de madre_de padre_de",
        "child_of": "son_of daughter_of filho_de filha_de hijo_de hija_de",
        "friend_of": "friends_with is_friend_of friend amigo_de amiga_de",
        "family_of": "relative_of related_to_family family_member_of parente_de familiar_de",
        "colleague_of": "coworker_of co_worker_of works_with colega_de trabalha_com trabaja_con",
        "studies_at": "student_at student_of studies_in enrolled_at attends_school estuda_em estuda_na estuda_no "
        "estudia_en",
        "owns": "owner_of possesses possui posee dono_de dona_de",
        "has_pet": "pet_owner_of owns_pet tem_animal tiene_mascota",
        "likes": "enjoys is_fan_of fan_of gosta_de le_gusta",
        "located_in": "is_in situated_in is_located_in located_at fica_em ubicado_en",
        "member_of": "belongs_to is_member_of part_of_team membro_de miembro_de",
        "founded": "founder_of co_founded cofounded cofounder_of fundou fundo",
        "manages": "manager_of boss_of supervises gerencia chefe_de jefe_de",
        "reports_to": "managed_by supervised_by subordinate_of",
        "neighbor_of": "neighbour_of neighbors_with vizinho_de vizinha_de vecino_de vecina_de",
        "traveled_to": "travelled_to travels_to went_to viajou_para viajo_a",
        "visited": "has_visited visitou visito",
        "speaks": "speaks_language fala_idioma habla_idioma",
    }.items()
    for alias in aliases.split()
}

# The other direction's name, for readers; the pipeline stores only what was said.
_PAIRS = {
    "works_at": "employs", "parent_of": "child_of", "manages": "reports_to", "owns": "owned_by",
    "founded": "founded_by", "member_of": "has_member", "located_in": "location_of", "lives_in": "home_of",
    "mentored_by": "mentors", "studies_at": "has_student", "has_pet": "pet_of", "grandparent_of": "grandchild_of",
}  # fmt: skip
_BOTH_WAYS = "married_to partner_of engaged_to sibling_of friend_of family_of colleague_of neighbor_of cousin_of"
INVERSES: Mapping[str, str] = (
    _PAIRS | {other: one for one, other in _PAIRS.items()} | {rel_type: rel_type for rel_type in _BOTH_WAYS.split()}
)


def normalise_rel_type(raw: str, aliases: Mapping[str, str] | None = None) -> str:
    """``raw`` as a snake_case type, aliases mapped (the deployment's own first); "" where nothing is left of it."""
    rel_type = _snake(raw)
    own = {_snake(alias): _snake(target) for alias, target in (aliases or {}).items()}
    if rel_type in own:
        return own[rel_type]
    return _ALIASES.get(rel_type, rel_type)


def is_identity(rel_type: str) -> bool:
    """Whether a normalised type only says that two names are one thing."""
    return rel_type in IDENTITY


def inverse_of(rel_type: str) -> str | None:
    """What the same edge is called from its other end; None where there is no name for it."""
    return INVERSES.get(rel_type)


def _snake(raw: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unicodedata.normalize("NFKC", raw))
    plain = unicodedata.normalize("NFD", spaced.casefold())
    plain = unicodedata.normalize("NFC", re.sub(r"(?<=[a-z])[\u0300-\u036f]+", "", plain))
    plain = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else "_" for char in plain)
    return re.sub(r"_+", "_", plain).strip("_")[:MAX_REL_TYPE_CHARS].strip("_")


# An edge asserted again grows; each assertion records its fact. Rows are locked in the order of the unique key.
UPSERT_EDGES = text("""
WITH given AS (
  SELECT * FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (source text, target text, rel_type text, fact_id uuid)
), edge AS (
  INSERT INTO memory_entity_relationships AS e (agent_id, source_entity_key, target_entity_key, rel_type,
                                                evidence_fact_id, created_at, updated_at)
  SELECT DISTINCT ON (source, target, rel_type) :agent_id, source, target, rel_type, fact_id,
         CAST(:now AS timestamptz), CAST(:now AS timestamptz)
    FROM given ORDER BY source, target, rel_type, fact_id
  ON CONFLICT (agent_id, source_entity_key, target_entity_key, rel_type) DO UPDATE
     SET strength = least(1.0, round(CAST(e.strength + 0.1 AS numeric), 2)), updated_at = excluded.updated_at
  RETURNING e.id, e.source_entity_key, e.target_entity_key, e.rel_type, e.strength
), noted AS (
  INSERT INTO memory_relationship_evidence (relationship_id, fact_id)
  SELECT DISTINCT edge.id, given.fact_id
    FROM edge JOIN given ON (given.source, given.target, given.rel_type)
                          = (edge.source_entity_key, edge.target_entity_key, edge.rel_type)
  ON CONFLICT DO NOTHING
)
SELECT id, source_entity_key AS source, target_entity_key AS target, rel_type, strength FROM edge
""")

# Invariant: an edge is true exactly while one of its recorded facts is. Its interval is the last unbroken stretch of
# theirs; while that is open it stands on the surest active fact, afterwards on the one that ended last.
REFRESH_EDGES = text("""
WITH touched AS (
  SELECT id FROM memory_entity_relationships WHERE id = ANY (CAST((SELECT CAST(:edges AS uuid[])) AS uuid[]))
  UNION
  SELECT relationship_id FROM memory_relationship_evidence
   WHERE fact_id = ANY (CAST((SELECT CAST(:facts AS uuid[])) AS uuid[]))
), told AS MATERIALIZED (
  SELECT t.id, f.fact_id, f.valid_from, f.valid_to, f.confidence
    FROM touched t
   CROSS JOIN LATERAL (
     SELECT v.fact_id FROM memory_relationship_evidence v WHERE v.relationship_id = t.id OFFSET 0) v
   CROSS JOIN LATERAL (
     SELECT f.id AS fact_id, f.valid_from, f.valid_to, f.confidence FROM memory_facts f
      WHERE f.id = v.fact_id AND f.kind = 'fact' OFFSET 0) f
), stretch AS (
  SELECT id, unnest(range_agg(tstzrange(valid_from, valid_to))) AS stretch FROM told GROUP BY id
), span AS (
  SELECT DISTINCT ON (id) id, lower(stretch) AS valid_from, upper(stretch) AS valid_to
    FROM stretch ORDER BY id, upper(stretch) DESC NULLS FIRST
), basis AS (
  SELECT DISTINCT ON (id) id, fact_id, valid_from, valid_to
    FROM told
   ORDER BY id, (valid_to IS NULL) DESC, CASE WHEN valid_to IS NULL THEN confidence END DESC NULLS LAST,
            valid_to DESC, valid_from DESC NULLS LAST, fact_id
), locked AS (
  SELECT e.id FROM (SELECT id FROM touched ORDER BY id) t
   CROSS JOIN LATERAL (SELECT r.id FROM memory_entity_relationships r WHERE r.id = t.id FOR UPDATE) e
)
UPDATE memory_entity_relationships e
   SET evidence_fact_id = b.fact_id,
       valid_from = CASE WHEN s.id IS NULL THEN b.valid_from ELSE s.valid_from END,
       valid_to = CASE WHEN b.valid_to IS NULL THEN NULL ELSE coalesce(s.valid_to, b.valid_to) END,
       invalidated_at = CASE WHEN b.valid_to IS NOT NULL
                             THEN coalesce(e.invalidated_at, CAST(:now AS timestamptz)) END,
       updated_at = CAST(:now AS timestamptz)
  FROM locked l JOIN basis b ON b.id = l.id LEFT JOIN span s ON s.id = l.id
 WHERE e.id = l.id
RETURNING e.id, e.evidence_fact_id
""")


def upsert_edges(
    session: Session, agent_id: str, rows: Sequence[Mapping[str, Any]], now: datetime
) -> list[dict[str, Any]]:
    """Assert edges (source, target, rel_type, fact_id): each with its id and strength. ``refresh_edges`` dates them."""
    if not rows:
        return []
    found = session.execute(UPSERT_EDGES, {"agent_id": agent_id, "now": now, "rows": as_rows(rows)})
    return [dict(row) for row in found.mappings()]


def refresh_edges(session: Session, edges: Iterable[UUID], facts: Iterable[UUID], now: datetime) -> dict[UUID, UUID]:
    """Derive the validity of ``edges``, and of all edges that any of ``facts`` ever held up, from their evidence.

    Returns the fact that each of them now stands on. Jobs that close or merge facts call it as well.
    """
    found = session.execute(REFRESH_EDGES, {"edges": list(edges), "facts": list(facts), "now": now})
    return {row.id: row.evidence_fact_id for row in found}
