"""How often search finds the right fact: recall@5 over a generated life with known answers (issue 8).

The facts are those of many people with few first and last names, told in English and Portuguese, so that nearly every
fact has neighbours that differ by a name only. Closed versions lie among them and are no answers. A question is put in
other words than its fact; ``other_language`` questions share nothing with it but the name.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, text

from worker.bench.figures import Figure
from worker.bench.scene import Scene
from worker.db import make_engine
from worker.embedding import embedding_from_environment
from worker.embedding.provider import EmbeddingProvider
from worker.read.finding import search, search_words
from worker.write.fact_rows import vector_text
from worker.write.names import entity_key, fold, text_hash

FACTS, QUESTIONS, AT = 2_000, 200, 5
FIRST = ("Ana", "Bruno", "Carla", "Diego", "Elisa", "Fábio", "Gil", "Helena", "Ivo", "Joana", "Karim", "Lena")
LAST = ("Prado", "Lima", "Souza", "Rezende", "Moura", "Teixeira", "Okafor", "Tanaka", "Weber", "Quintana", "Rossi",
        "Dahl", "Nunes", "Castro")  # fmt: skip
START = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Theme:
    """One kind of fact: how it is told, its values, how it is asked for in its own and in the other language."""

    said: str
    values: tuple[str, ...]
    asked: str
    asked_otherwise: str


THEMES = (
    Theme("{} lives in {}", ("Curitiba", "Natal", "Lisbon", "Osaka", "Lagos", "Turin"), "Where is {}'s home?",
          "Onde {} mora?"),
    Theme("{} works as a {}", ("nurse", "welder", "beekeeper", "judge", "pilot", "baker"), "What is {}'s profession?",
          "Qual é a profissão de {}?"),
    Theme("{} é alérgico a {}", ("amendoim", "camarão", "leite", "pólen", "látex"), "O que faz mal à saúde de {}?",
          "What is {} allergic to?"),
    Theme("{} plays the {} every week", ("cello", "drums", "flute", "accordion", "harp"),
          "Which instrument does {} make music on?", "Que instrumento {} toca?"),
    Theme("{} tem um cachorro chamado {}", ("Bidu", "Pipoca", "Thor", "Mel", "Farofa"),
          "Como se chama o animal de estimação de {}?", "What is the name of {}'s dog?"),
    Theme("{} was born on {}", ("3 May 1988", "17 October 1975", "29 February 1992", "8 January 2001"),
          "When is {}'s birthday?", "Em que dia {} nasceu?"),
    Theme("{} drives a {}", ("red pickup", "blue van", "grey hatchback", "yellow beetle"), "What car does {} own?",
          "Que carro {} tem?"),
    Theme("{} estudou {} na universidade", ("geologia", "direito", "música", "química", "história"),
          "Em que {} se formou?", "What did {} study?"),
    Theme("{} dislikes {}", ("olives", "opera", "flying", "crowds", "cold weather"), "What can {} not stand?",
          "Do que {} não gosta?"),
    Theme("{} quer viajar para {}", ("a Islândia", "o Peru", "o Japão", "a Namíbia", "a Grécia"),
          "Qual é a viagem dos sonhos de {}?", "Which country does {} want to visit?"),
    Theme("{} collects {}", ("stamps", "vinyl records", "cacti", "old maps", "teapots"), "What is {}'s hobby?",
          "O que {} coleciona?"),
    Theme("{} speaks {} fluently", ("German", "Yoruba", "Korean", "Arabic", "Guarani"),
          "Which foreign language does {} know well?", "Que língua estrangeira {} fala?"),
)  # fmt: skip

INSERT = """
WITH event AS (
  INSERT INTO memory_events (id, agent_id, speaker_name, message, occurred_at, offset_minutes)
  VALUES (gen_random_uuid(), :agent, 'Rafael', 'generated', :start, 0) RETURNING id
), person AS (
  INSERT INTO memory_entities (agent_id, canonical_key, entity_type, display_name, embedding)
  SELECT :agent, r.key, 'person', r.name, CAST(r.vector AS vector)
    FROM jsonb_to_recordset(CAST(:people AS jsonb)) AS r (key text, name text, vector text)
  RETURNING canonical_key
), alias AS (
  INSERT INTO memory_entity_aliases (agent_id, alias_folded, entity_type, alias, entity_key)
  SELECT :agent, r.folded, 'person', r.name, p.canonical_key
    FROM person p JOIN jsonb_to_recordset(CAST(:people AS jsonb)) AS r (key text, name text, folded text)
      ON r.key = p.canonical_key
)
INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, embedding, confidence, source_event_id,
                          valid_from, valid_to, invalidated_at)
SELECT r.id, :agent, p.canonical_key, r.text, decode(r.hash, 'hex'), CAST(r.vector AS vector), 0.95, event.id,
       r.since, r.until, r.until
  FROM event CROSS JOIN jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
         id uuid, key text, text text, hash text, vector text, since timestamptz, until timestamptz)
  JOIN person p ON p.canonical_key = r.key
"""


@dataclass(frozen=True)
class Recall:
    """Shares from 0 to 1 of questions whose fact is among the first five hits, and milliseconds a search (its median,
    without the embedding of the question)."""

    facts: int
    questions: int
    recall_at_5: float
    same_language: float
    other_language: float
    words_alone: float
    first_hit: float
    search_ms: float

    def figures(self) -> dict[str, float]:
        """By name."""
        return asdict(self)


@dataclass(frozen=True)
class Question:
    """What is asked, in which language, and the id of the fact that answers it."""

    asked: str
    answer: str
    other_language: bool


def generated_life(chance: random.Random, many: int = FACTS) -> tuple[list[dict[str, Any]], list[Question]]:
    """``many`` facts, a tenth of them closed versions, and a question for each active one."""
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    chance.shuffle(people)
    rows: list[dict[str, Any]] = []
    questions: list[Question] = []
    for place, (name, theme) in enumerate((name, theme) for name in people for theme in THEMES):
        if len(rows) >= many:
            break
        now, before = chance.sample(theme.values, 2)
        since = START + timedelta(days=place)
        if place % 9 == 0:
            rows.append(_row(name, theme.said.format(name, before), since - timedelta(days=900), since))
        rows.append(_row(name, theme.said.format(name, now), since, None))
        other = place % 2 == 1
        asked = (theme.asked_otherwise if other else theme.asked).format(name)
        questions.append(Question(asked, rows[-1]["id"], other))
    return rows, questions


def _row(name: str, said: str, since: datetime, until: datetime | None) -> dict[str, Any]:
    return {"id": str(uuid.uuid4()), "name": name, "key": entity_key("person", name), "text": said,
            "hash": text_hash(said).hex(), "since": since.isoformat(),
            "until": None if until is None else until.isoformat()}  # fmt: skip


def store(bind: Engine, agent_id: str, rows: Sequence[dict[str, Any]], embeddings: EmbeddingProvider) -> None:
    """Put the facts into the memory of ``agent_id``."""
    vectors = embeddings.embed([row["text"] for row in rows], timeout=600)
    full = [{**row, "vector": vector_text(vector)} for row, vector in zip(rows, vectors, strict=True)]
    names = sorted({row["name"] for row in rows})
    people = [
        {"key": entity_key("person", name), "name": name, "folded": fold(name), "vector": vector_text(vector)}
        for name, vector in zip(names, embeddings.embed(names, timeout=600), strict=True)
    ]
    with bind.begin() as connection:
        connection.execute(
            text(INSERT),
            {"agent": agent_id, "start": START, "rows": json.dumps(full), "people": json.dumps(people)},
        )
        connection.execute(text("ANALYZE memory_facts"))


def measure_recall(
    bind: Engine, embeddings: EmbeddingProvider, *, facts: int = FACTS, questions: int = QUESTIONS, seed: int = 8
) -> Recall:
    """Store a generated life in an agent of its own and ask it ``questions``. The same seed gives the same life."""
    chance = random.Random(seed)
    agent_id = f"recall-{uuid.uuid4().hex[:8]}"
    rows, all_questions = generated_life(chance, facts)
    store(bind, agent_id, rows, embeddings)
    asked = chance.sample(all_questions, min(questions, len(all_questions)))
    vectors = embeddings.embed([one.asked for one in asked], timeout=600)
    ranks: list[int | None] = []
    by_words, took = 0, []
    with bind.connect() as connection:
        for one, vector in zip(asked, vectors, strict=True):
            begun = time.perf_counter()
            hits = search(connection, agent_id, one.asked, vector=vector, limit=AT)
            took.append((time.perf_counter() - begun) * 1000)
            ranks.append(next((rank for rank, hit in enumerate(hits) if str(hit["id"]) == one.answer), None))
            words = search_words(connection, agent_id, one.asked, limit=AT)
            by_words += any(str(hit["id"]) == one.answer for hit in words)

    def share(other: bool | None, most: int = AT) -> float:
        counted = [rank for rank, one in zip(ranks, asked, strict=True) if other in (None, one.other_language)]
        return round(sum(rank is not None and rank < most for rank in counted) / max(1, len(counted)), 3)

    return Recall(
        facts=len(rows), questions=len(asked), recall_at_5=share(None), same_language=share(False),
        other_language=share(True), words_alone=round(by_words / len(asked), 3), first_hit=share(None, 1),
        search_ms=round(sorted(took)[len(took) // 2], 2),
    )  # fmt: skip


def recall(scene: Scene) -> list[Figure]:
    """How often search finds what is asked for, with the default embeddings."""
    scene.say(f"search among {FACTS:,} facts; embedding them takes a minute")
    bind = make_engine(scene.fresh())
    try:
        found = measure_recall(bind, embedding_from_environment({}))
    finally:
        bind.dispose()
    about = f"{found.questions} questions, {found.facts:,} facts"
    return [
        Figure("search, recall@5", found.recall_at_5, at_least=0.9, note=about),
        Figure("search, recall@5 across languages", found.other_language, note="Portuguese and English"),
        Figure("search, right fact first", found.first_hit),
        Figure("search, recall@5 by words alone", found.words_alone, note="without embeddings"),
        Figure("search, time", found.search_ms, "ms", at_most=50, note="median, the question's embedding left out"),
    ]
