"""Whom the names of a message mean, against a real database (behaviour: 6)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from tests.scripted_model import hashing_vector
from worker.db import read_session
from worker.embedding.provider import Vectors
from worker.llm.items import ExtractedEntity, ExtractedFact, ExtractedRelation
from worker.llm.provider import Cause, Completion, ModelError
from worker.write.calls import Calls, EmbeddingError, VectorCache
from worker.write.entity_rows import upsert_entities
from worker.write.message import Message
from worker.write.names import display_name, entity_key, fold
from worker.write.plans import Extraction, Resolution, ResolvedEntity
from worker.write.resolution import known, resolve

WIDTH = 384
NOW = datetime(2025, 3, 18, 15, tzinfo=UTC)


class Model:
    """A language model that answers resolution questions as a test says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.choose: Callable[[dict[str, Any]], int | None] = lambda _: None
        self.error: ModelError | None = None
        self.raw: str | None = None

    def complete(self, task: str, system: str, payload: Mapping[str, Any], **_: Any) -> Completion:
        assert task == "entity_resolution"
        assert system
        self.asked.append(dict(payload))
        if self.error:
            raise self.error
        choices = [
            {"name_number": name["number"], "reason": "told so", "candidate_number": self.choose(name)}
            for name in payload["names"]
        ]
        return Completion(self.raw or json.dumps({"resolutions": choices}))


class Embeddings:
    """Vectors as scripted, else by spelling."""

    dimensions = WIDTH

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = {}
        self.calls = 0
        self.error: ModelError | None = None

    def near(self, one: str, other: str, cosine: float) -> None:
        """Make the cosine of two names what a test needs."""
        place = len(self.rows) * 2 % (WIDTH - 2)
        self.rows[one] = [0.0] * WIDTH
        self.rows[other] = [0.0] * WIDTH
        self.rows[one][place] = 1.0
        self.rows[other][place], self.rows[other][place + 1] = cosine, (1 - cosine**2) ** 0.5

    def embed(self, texts: Sequence[str], *, timeout: float = 30.0) -> Vectors:  # noqa: ARG002
        self.calls += 1
        if self.error:
            raise self.error
        return np.array([self.rows.get(one) or hashing_vector(one, WIDTH) for one in texts], dtype=np.float32)


class Memory:
    """An agent's memory, filled by the plans of the stage itself."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.agent = f"agent-{uuid.uuid4().hex[:8]}"
        self.model = Model()
        self.embeddings = Embeddings()
        self.statements = 0

    def say(
        self,
        message: str,
        entities: Sequence[tuple[str, str] | tuple[str, str, list[str]]] = (),
        *,
        relations: Sequence[tuple[str, str, str]] = (),
        facts: Sequence[str] = (),
        speaker: str = "Bruna",
        called: Sequence[str] = (),
        store: bool = True,
        fallback: str | None = None,
        **config: Any,
    ) -> Resolution:
        """Resolve one message, and store its entities and edges as upsert would."""
        heard = Message(
            event_id=uuid.uuid4(), agent_id=self.agent, text=message, speaker=speaker, occurred_at=NOW,
            speaker_aliases=tuple(called), config=MemoryConfig().overridden(config),
        )  # fmt: skip
        extraction = Extraction(
            mode="informed",
            entities=[ExtractedEntity(name=e[0], type=e[1], aliases=e[2] if len(e) > 2 else []) for e in entities],
            relations=[ExtractedRelation(source=s, rel_type=r, target=t) for s, r, t in relations],
            facts=[ExtractedFact(subject=subject, text=f"{subject} exists") for subject in facts],
        )
        calls = Calls(self.model, self.embeddings)
        with self.counting():
            plan = resolve(heard, extraction, lambda: read_session(self.engine), calls, fallback=fallback)
        assert Resolution.model_validate(json.loads(plan.model_dump_json())) == plan
        if store:
            edges = [(e.source_key, e.rel_type, e.target_key) for e in plan.role_edges]
            edges += [(key(plan, s), r, key(plan, t)) for s, r, t in relations]
            self.store(plan.entities, edges, calls.vectors)
        return plan

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.statements = 0

        def count(*_: Any) -> None:
            self.statements += 1

        event.listen(self.engine, "before_cursor_execute", count)
        try:
            yield
        finally:
            event.remove(self.engine, "before_cursor_execute", count)

    def store(
        self, entities: Sequence[ResolvedEntity], edges: Sequence[tuple[str, str, str]], vectors: VectorCache
    ) -> None:
        with Session(self.engine) as session, session.begin():
            upsert_entities(session, self.agent, entities, vectors, NOW)
            for source, rel_type, target in edges:
                if source == target:
                    continue
                fact = uuid.uuid4()
                values = {"a": self.agent, "f": fact, "s": source, "t": target, "r": rel_type}
                session.execute(
                    text("INSERT INTO memory_events (id, agent_id, speaker_name, message) VALUES (:f, :a, 'x', 'x')"),
                    values,
                )
                session.execute(
                    text(
                        "INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, confidence,"
                        " source_event_id) VALUES (:f, :a, :s, 'x', decode(replace(CAST(:f AS text), '-', ''), 'hex'),"
                        " 0.9, :f)"
                    ),
                    values,
                )
                session.execute(
                    text(
                        "INSERT INTO memory_entity_relationships (agent_id, source_entity_key, target_entity_key,"
                        " rel_type, evidence_fact_id) VALUES (:a, :s, :t, :r, :f) ON CONFLICT DO NOTHING"
                    ),
                    values,
                )

    def know(self, *names: tuple[str, str]) -> None:
        """Store entities as they are."""
        vectors = VectorCache([name for _, name in names], self.embeddings.embed([name for _, name in names]))
        self.store(
            [
                ResolvedEntity(
                    name=name,
                    key=entity_key(kind, name),
                    display_name=name,
                    entity_type=kind,
                    is_new=True,
                    method="new",
                )
                for kind, name in names
            ],
            [],
            vectors,
        )
        self.embeddings.calls = 0

    def keys(self) -> set[str]:
        """Every stored entity."""
        query = text("SELECT canonical_key FROM memory_entities WHERE agent_id = :a")
        with Session(self.engine) as session:
            return set(session.scalars(query, {"a": self.agent}))

    def displayed(self, key: str) -> str:
        query = text("SELECT display_name FROM memory_entities WHERE agent_id = :a AND canonical_key = :k")
        with Session(self.engine) as session:
            return str(session.scalar(query, {"a": self.agent, "k": key}))


def key(plan: Resolution, name: str) -> str:
    """Whom the plan takes ``name`` for."""
    return entity(plan, name).key


def entity(plan: Resolution, name: str) -> ResolvedEntity:
    found = [one for one in plan.entities if one.name == name]
    return (found or [one for one in plan.entities if fold(one.name) == fold(name)])[0]


@pytest.fixture
def memory(database: Engine) -> Memory:
    return Memory(database)


# -- exact -------------------------------------------------------------------------------------------------------------


def test_dup_05_exact_name_wins_before_any_embedding(memory: Memory) -> None:
    memory.say("Entrei na TRQX como analista.", [("TRQX", "organization")], facts=["Bruna"])
    calls = memory.embeddings.calls
    plan = memory.say("A TRQX abriu um escritório novo.", [("TRQX", "organization")], facts=["TRQX"])
    assert key(plan, "TRQX") == "organization:trqx"
    assert entity(plan, "TRQX").method == "exact"
    assert memory.embeddings.calls == calls
    assert memory.keys() == {"organization:trqx", "person:bruna"}
    assert memory.statements == 1


def test_dup_07_white_space_in_a_name(memory: Memory) -> None:
    memory.say("x", [("Padaria Sol", "organization")])
    plan = memory.say("x", [("Padaria\n\tSol", "organization"), (" \n ", "place")])
    assert key(plan, "Padaria\n\tSol") == "organization:padaria_sol"
    assert [one.reason for one in plan.rejected] == ["blank_name"]
    assert memory.displayed("organization:padaria_sol") == "Padaria Sol"


def test_dup_08_composed_and_decomposed(memory: Memory) -> None:
    memory.say("x", [("José", "person")])
    plan = memory.say("x", [("Jose\u0301", "person")])
    assert key(plan, "Jose\u0301") == "person:jose"
    assert memory.displayed("person:jose") == "José"


def test_mrg_03_keys_in_every_script(memory: Memory) -> None:
    for said, name in (("李雷 é meu chefe.", "李雷"), ("王芳 é minha irmã.", "王芳"), ("محمد é meu vizinho.", "محمد")):
        plan = memory.say(said, [(name, "person")])
        assert entity(plan, name).is_new
    assert memory.keys() == {"person:bruna", "person:李雷", "person:王芳", "person:محمد"}


def test_mrg_04_names_that_share_the_latin_part(memory: Memory) -> None:
    plan = memory.say("x", [("Ana 北", "person"), ("Ana 南", "person")])
    assert key(plan, "Ana 北") != key(plan, "Ana 南")
    again = memory.say("x", [("Ana 南", "person")])
    assert key(again, "Ana 南") == key(plan, "Ana 南")


def test_mrg_05_generational_suffix(memory: Memory) -> None:
    memory.embeddings.near("Otávio Prado", "Otávio Prado Filho", 0.97)
    memory.say("Otávio Prado fundou a loja em 1980.", [("Otávio Prado", "person")])
    memory.model.choose = lambda _: 1
    plan = memory.say("Otávio Prado Filho assumiu a loja.", [("Otávio Prado Filho", "person", ["Otávio Prado"])])
    assert key(plan, "Otávio Prado Filho") == "person:otavio_prado_filho"
    assert not memory.model.asked


@pytest.mark.parametrize(
    ("stored", "said", "cosine"),
    [
        (("store", "Loja Centro 0001"), ("store", "Loja Centro 0002"), 0.97),
        (("person", "田中一郎"), ("person", "田中一朗"), 0.96),
        (("person", "박서준"), ("person", "박서진"), 0.99),
        (("person", "Ana Souza"), ("organization", "Ana Souza"), 1.0),
        (("person", "João Silva Jr."), ("person", "João Silva"), 0.95),
        (("place", "Turma A"), ("place", "Turma B"), 0.95),
        (("person", "Ana Souza"), ("person", "Ana Lima"), 0.9),
    ],
)
def test_guards_hold_whatever_the_cosine(
    memory: Memory, stored: tuple[str, str], said: tuple[str, str], cosine: float
) -> None:
    if stored[1] != said[1]:
        memory.embeddings.near(stored[1], said[1], cosine)
    memory.know(stored)
    memory.model.choose = lambda _: 1
    plan = memory.say("x", [(said[1], said[0])])
    assert entity(plan, said[1]).is_new
    assert not memory.model.asked


def test_a_person_and_a_company_of_one_name_in_one_message(memory: Memory) -> None:
    plan = memory.say("x", [("Santos", "person"), ("Santos", "organization")])
    assert {one.key for one in plan.entities} == {"person:bruna", "person:santos", "organization:santos"}


def test_types_drift_within_their_family(memory: Memory) -> None:
    memory.know(("organization", "Orion Tech"), ("person", "Clara"))
    plan = memory.say("x", [("Orion Tech", "company"), ("Clara", "concept")], facts=["Orion Tech"])
    assert key(plan, "Orion Tech") == "organization:orion_tech"
    assert key(plan, "Clara") == "person:clara"


# -- first names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "said", "found"),
    [
        (["Carolina"], "Carol", "person:carolina"),
        (["Carolina Lima"], "Carol", "person:carolina_lima"),
        (["Carol"], "Carolina Lima", "person:carol"),
        (["Ana Souza", "Anabela"], "Ana", "person:ana_souza"),
        (["João"], "Jo", None),
        (["Roberto"], "Bob", None),
        (["Carolina", "Caroline"], "Carol", None),
        (["Gabriela"], "Gabriel", None),
        (["Ana Souza"], "Ana Lima", None),
        (["Guilherme Maturana"], "Guilherme", "person:guilherme_maturana"),
    ],
)
def test_first_names(memory: Memory, stored: list[str], said: str, found: str | None) -> None:
    memory.know(*(("person", name) for name in stored))
    plan = memory.say("x", [(said, "person")], enable_llm_resolution=False, fuzzy_threshold=0.999)
    one = entity(plan, said)
    assert one.key == found if found else one.is_new
    if found:
        assert one.method == "prefix"
        assert said in one.aliases
        again = memory.say("x", [(said, "person")])
        assert (key(again, said), entity(again, said).method) == (found, "exact")


def test_ana_stays_ana_where_an_anabela_is(memory: Memory) -> None:
    memory.know(("person", "Anabela"), ("person", "Ana"))
    assert key(memory.say("x", [("Ana", "person")]), "Ana") == "person:ana"


def test_nicknames_by_configuration(memory: Memory) -> None:
    memory.know(("person", "Roberto Dias"))
    plan = memory.say("x", [("Bob", "person")], nicknames={"Bob": "Roberto"})
    assert key(plan, "Bob") == "person:roberto_dias"


def test_names_joined_by_a_relation_are_two(memory: Memory) -> None:
    memory.know(("person", "Rafael"))
    plan = memory.say(
        "x", [("Rafael Souza", "person")], relations=[("Rafael", "cousin_of", "Rafael Souza")], speaker="Rafael"
    )
    assert key(plan, "Rafael Souza") == "person:rafael_souza"
    assert plan.speaker_key == "person:rafael"


def test_imp_11_a_speakers_nickname_is_learnt_and_proves_nothing(memory: Memory) -> None:
    plan = memory.say("x", facts=["Bruna"], called=["Trovão", "chefe", "eu"])
    assert entity(plan, "Bruna").aliases == ["Bruna", "Trovão"], "a role and a pronoun are no names"
    thunder = ("Trovão", "person")
    assert key(memory.say("Trovão chegou", [thunder], speaker="Rui"), "Trovão") == "person:bruna"
    assert memory.say("x", facts=["Novata"], speaker="Novata", called=["Trovão"]).speaker_key == "person:novata"
    assert key(memory.say("Trovão saiu", [thunder], speaker="Rui"), "Trovão") == "person:bruna", "the first one has it"


def test_aliases_of_the_extraction_are_usable_at_once(memory: Memory) -> None:
    plan = memory.say("x", [("Guilherme Maturana", "person", ["Guili"])], facts=["Guili"], relations=[])
    assert key(plan, "Guili") == key(plan, "Guilherme Maturana") == "person:guilherme_maturana"
    assert key(memory.say("x", facts=["Guili"]), "Guili") == "person:guilherme_maturana"


# -- likeness and the model --------------------------------------------------------------------------------------------


def test_likeness_with_evidence_needs_no_model(memory: Memory) -> None:
    memory.embeddings.near("Guilherme Maturana", "Guili", 0.87)
    memory.know(("person", "Guilherme Maturana"))
    plan = memory.say("x", [("Guili", "person")])
    assert (key(plan, "Guili"), entity(plan, "Guili").method) == ("person:guilherme_maturana", "fuzzy")
    assert entity(plan, "Guili").score == pytest.approx(0.87, abs=1e-3)
    assert not memory.model.asked
    assert plan.known_names["person:guilherme_maturana"][0] == "Guilherme Maturana"


def test_two_first_names_are_never_one_by_cosine_alone(memory: Memory) -> None:
    memory.embeddings.near("Mariana", "Marina", 0.95)
    memory.know(("person", "Mariana"))
    plan = memory.say("x", [("Marina", "person")])
    assert entity(plan, "Marina").is_new
    assert len(memory.model.asked) == 1


def test_all_ambiguous_names_go_in_one_question(memory: Memory) -> None:
    memory.embeddings.near("Roberto", "Bob", 0.6)
    memory.embeddings.near("International Business Machines", "Big Blue", 0.7)
    memory.know(("person", "Roberto"), ("organization", "International Business Machines"))
    memory.model.choose = lambda name: 1 if name["name"] == "Bob" else 9
    plan = memory.say("Bob works at Big Blue", [("Bob", "person"), ("Big Blue", "organization")])
    assert (key(plan, "Bob"), entity(plan, "Bob").method) == ("person:roberto", "llm")
    assert entity(plan, "Big Blue").is_new  # a candidate that does not exist is none
    assert plan.repairs == {"unknown_candidate": 1}
    (asked,) = memory.model.asked
    assert [name["name"] for name in asked["names"]] == ["Bob", "Big Blue"]
    assert asked["names"][0]["candidates"][0]["name"] == "Roberto"
    assert memory.statements == 2
    assert memory.embeddings.calls == 1


def test_without_the_model(memory: Memory) -> None:
    memory.embeddings.near("Roberto", "Bob", 0.6)
    memory.know(("person", "Roberto"))
    plan = memory.say("x", [("Bob", "person")], store=False, enable_llm_resolution=False)
    assert entity(plan, "Bob").is_new
    assert not plan.degradations
    plan = memory.say("x", [("Bob", "person")], store=False, fallback="timeout")
    assert entity(plan, "Bob").is_new
    assert [(d.stage, d.fell_back_to, d.cause) for d in plan.degradations] == [("resolve", "new_entities", "timeout")]
    memory.model.error = ModelError(Cause.RATE_LIMITED)
    with pytest.raises(ModelError):
        memory.say("x", [("Bob", "person")], store=False)
    assert len(memory.model.asked) == 1


def test_without_embeddings_the_spelling_decides(memory: Memory) -> None:
    memory.know(("organization", "Padaria Estrela do Norte"), ("organization", "Banco Azul"))
    memory.embeddings.error = ModelError(Cause.REFUSED)
    plan = memory.say("x", [("Padaria Estrella do Norte", "organization")])
    assert key(plan, "Padaria Estrella do Norte") == "organization:padaria_estrela_do_norte"
    assert plan.degradations[0].fell_back_to == "string_ratio"
    memory.embeddings.error = ModelError(Cause.RATE_LIMITED)
    with pytest.raises(EmbeddingError):
        memory.say("x", [("Outra Coisa", "organization")])


def test_two_that_fit_are_the_models_to_choose_from(memory: Memory) -> None:
    memory.know(("person", "Carolina"), ("person", "Caroline"))
    memory.model.choose = lambda name: next(c["number"] for c in name["candidates"] if c["name"] == "Caroline")
    assert key(memory.say("x", [("Carol", "person")]), "Carol") == "person:caroline"


# -- the speaker and roles ---------------------------------------------------------------------------------------------


def test_pronouns_are_the_speaker(memory: Memory) -> None:
    plan = memory.say("x", [("Eu", "person"), ("São Paulo", "place")], facts=["I", "eu", "user"], speaker="Rafael")
    assert {key(plan, name) for name in ("Eu", "I", "user", "Rafael")} == {"person:rafael"}
    plan = memory.say("x", [("ego", "person")], speaker="Rafael", extra_pronouns=["ego"])
    assert key(plan, "ego") == "person:rafael"
    assert memory.keys() == {"person:rafael", "place:sao_paulo"}


def test_a_speaker_known_by_another_name(memory: Memory) -> None:
    memory.say("x", [("Rafael Souza", "person", ["Rafa"])])
    plan = memory.say("x", facts=["Rafa"], speaker="Rafa")
    assert plan.speaker_key == "person:rafael_souza"


def test_mrg_07_the_girlfriend_is_livia(memory: Memory) -> None:
    first = memory.say("Eu tenho uma namorada, a Lívia.", [("Eu", "person"), ("Lívia", "person")])
    assert [(e.source_key, e.rel_type, e.target_key) for e in first.role_edges] == [
        ("person:bruna", "partner_of", "person:livia")
    ]
    for said in ("namorada", "Minha namorada", "girlfriend"):
        plan = memory.say("Minha namorada faz medicina.", [(said, "person")], facts=[said])
        assert (key(plan, said), entity(plan, said).method) == ("person:livia", "role")
    assert memory.keys() == {"person:bruna", "person:livia"}
    assert memory.statements <= 3


def test_the_edge_alone_shows_who_it_is(memory: Memory) -> None:
    memory.say("x", [("Lívia", "person")], relations=[("Bruna", "partner_of", "Lívia")])
    plan = memory.say("A namorada viajou", [("namorada", "person")])
    assert key(plan, "namorada") == "person:livia"


def test_the_brother_is_not_the_speaker_and_takes_his_name(memory: Memory) -> None:
    plan = memory.say("Meu irmão está doente.", [("irmão", "person")], facts=["irmão"], speaker="Rafael")
    brother = entity(plan, "irmão")
    assert (brother.key, brother.display_name, brother.method) == (
        "person:rafael_brother", "irmão de Rafael", "placeholder",
    )  # fmt: skip
    assert [(e.source_key, e.rel_type, e.target_key) for e in plan.role_edges] == [
        ("person:rafael", "sibling_of", "person:rafael_brother")
    ]
    again = memory.say("My brother is better", [("my brother", "person")], speaker="Rafael")
    assert (key(again, "my brother"), entity(again, "my brother").method) == ("person:rafael_brother", "role")
    assert again.role_edges == []
    named = memory.say("Meu irmão Pedro melhorou", [("Pedro", "person")], speaker="Rafael")
    assert key(named, "Pedro") == "person:rafael_brother"
    assert memory.displayed("person:rafael_brother") == "Pedro"
    assert memory.embeddings.calls == 2
    after = memory.say("Pedro e o meu irmão", [("Pedro", "person"), ("brother", "person")], speaker="Rafael")
    assert key(after, "Pedro") == key(after, "brother") == "person:rafael_brother"
    assert memory.keys() == {"person:rafael", "person:rafael_brother"}
    assert "irmão de Rafael" in after.known_names["person:rafael_brother"]


def test_a_known_pedro_is_the_brother_from_now_on_and_the_nameless_one_stays(memory: Memory) -> None:
    memory.say("Meu irmão está doente.", [("irmão", "person")], facts=["irmão"], speaker="Rafael")
    memory.know(("person", "Pedro"))
    named = memory.say("Meu irmão Pedro saiu.", [("Pedro", "person")], facts=["Pedro"], speaker="Rafael")
    assert key(named, "Pedro") == "person:pedro"
    assert [(e.source_key, e.rel_type, e.target_key) for e in named.role_edges] == [
        ("person:rafael", "sibling_of", "person:pedro")
    ]
    later = memory.say("Meu irmão viajou.", [("irmão", "person")], facts=["irmão"], speaker="Rafael")
    assert key(later, "irmão") == "person:pedro"
    assert {"person:rafael_brother", "person:pedro"} <= memory.keys()
    assert memory.displayed("person:rafael_brother") == "irmão de Rafael"


def test_she_with_several_persons_is_nobody_of_them(memory: Memory) -> None:
    memory.know(("person", "Ana"), ("person", "Bia"))
    said = [("Ana", "person"), ("Bia", "person"), ("ela", "person")]
    plan = memory.say("A Ana ligou para a Bia e ela riu.", said, facts=["ela"], speaker="Rafael")
    assert key(plan, "ela") not in {"person:ana", "person:bia", "person:rafael"}
    said = [("Ana", "person"), ("ela", "person")]
    alone = memory.say("A Ana ligou e ela riu.", said, facts=["ela"], speaker="Rafael")
    assert key(alone, "ela") == "person:ana"


def test_a_sister_is_no_brother(memory: Memory) -> None:
    memory.say("Minha irmã Ana chegou", [("Ana", "person")], speaker="Rafael")
    plan = memory.say("Meu irmão saiu", [("irmão", "person")], speaker="Rafael")
    assert key(plan, "irmão") == "person:rafael_brother"
    older = memory.say("Meu irmão mais velho saiu", [("irmão mais velho", "person")], speaker="Rafael", store=False)
    assert key(older, "irmão mais velho") == "person:rafael_brother"
    memory.say("x", [("meu irmão mais novo Caio", "person")], speaker="Rafael")
    older = memory.say("x", [("my older sister", "person")], speaker="Rafael")
    assert key(older, "my older sister") == "person:ana"


def test_roles_of_others(memory: Memory) -> None:
    plan = memory.say("O irmão da Ana casou", [("Ana", "person"), ("irmão da Ana", "person")])
    assert entity(plan, "irmão da Ana").display_name == "irmão de Ana"
    assert key(plan, "irmão da Ana") == "person:ana_brother"
    assert [(e.source_key, e.target_key) for e in plan.role_edges] == [("person:ana", "person:ana_brother")]


def test_mothers_edge_runs_from_her(memory: Memory) -> None:
    plan = memory.say("Minha mãe mora em Curitiba", [("mãe", "person"), ("Curitiba", "place")])
    assert [(e.source_key, e.rel_type, e.target_key) for e in plan.role_edges] == [
        ("person:bruna_mother", "parent_of", "person:bruna")
    ]


def test_hints_in_brackets(memory: Memory) -> None:
    plan = memory.say("x", [("Carol (namorada do Rafael)", "other"), ("Paris (Texas)", "place")], speaker="Rafael")
    carol = entity(plan, "Carol (namorada do Rafael)")
    assert (carol.key, carol.display_name, carol.entity_type) == ("person:carol", "Carol", "person")
    assert entity(plan, "Paris (Texas)").display_name == "Paris (Texas)"
    assert [(e.source_key, e.rel_type, e.target_key) for e in plan.role_edges] == [
        ("person:rafael", "partner_of", "person:carol")
    ]


def test_she_is_not_the_she_of_another_message(memory: Memory) -> None:
    first = memory.say("Ela fechou a janela.", facts=["Ela"])
    other = memory.say("Ela saiu.", [("ela", "person")])
    assert key(first, "Ela") != key(other, "ela")
    named = memory.say("A Célia chegou. Ela saiu.", [("Célia", "person", ["ela", "the boss"])], facts=["Ela"])
    assert key(named, "Ela") == "person:celia"
    assert entity(named, "Célia").aliases[:1] == ["Célia"]
    assert "ela" not in [fold(alias) for one in named.entities for alias in one.aliases]


def test_a_doctor_is_not_the_speakers_doctor(memory: Memory) -> None:
    plan = memory.say("My wife Sofia is a doctor and I have a boss, Ana.", [("Sofia", "person"), ("Ana", "person")])
    assert [(e.source_key, e.rel_type, e.target_key) for e in plan.role_edges] == [
        ("person:bruna", "spouse_of", "person:sofia"),
        ("person:ana", "boss_of", "person:bruna"),
    ]


def test_titles_are_no_part_of_a_name(memory: Memory) -> None:
    memory.say("x", [("Dr. Paulo", "person")])
    assert key(memory.say("x", [("Paulo", "person")]), "Paulo") == "person:dr_paulo"


def test_the_sources_rule_by_configuration(memory: Memory) -> None:
    plan = memory.say("x", [("girlfriend", "person")], relationship_terms="speaker")
    assert key(plan, "girlfriend") == plan.speaker_key == "person:bruna"
    assert not plan.role_edges


def test_a_friend_is_not_the_friend_whom_one_knows(memory: Memory) -> None:
    memory.say("x", [("Ana", "person")], relations=[("Bruna", "friend_of", "Ana")])
    plan = memory.say("A friend of mine broke his leg", [("friend", "person")], store=False)
    assert key(plan, "friend") == "person:bruna_friend"
    assert key(memory.say("My friend broke her leg", [("friend", "person")]), "friend") == "person:ana"


def test_two_speakers_dogs_are_two(memory: Memory) -> None:
    first = memory.say("Meu cachorro dorme", [("cachorro", "pet")], speaker="Bruna")
    assert (key(first, "cachorro"), entity(first, "cachorro").method) == ("pet:bruna_dog", "placeholder")
    assert [(e.source_key, e.rel_type, e.target_key) for e in first.role_edges] == [
        ("person:bruna", "owns", "pet:bruna_dog")
    ]
    other = memory.say("My dog sleeps", [("dog", "animal")], speaker="Rafael")
    assert key(other, "dog") == "pet:rafael_dog"
    named = memory.say("Meu cachorro Rex late", [("Rex", "pet")], relations=[("Bruna", "owns", "Rex")])
    assert key(named, "Rex") == "pet:bruna_dog"
    cat = memory.say("O gato dorme", [("gato", "pet")])
    assert key(cat, "gato") == "pet:bruna_cat"
    assert key(memory.say("Minha cachorra dorme", [("cachorra", "pet")]), "cachorra") == "pet:bruna_dog"


NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30),
    st.sampled_from([
        "Ana", "Ana Souza", "Eu", "I", "Bruna", "irmão", "my brother", "Pedro", "meu irmão Pedro", "Ana's boss", "🐶",
        "Carol (namorada do Rafael)", "C++", "C#", "李雷", "박 서준", "Prado", "Prado Filho", "x" * 500, "汉" * 500,
        "cachorro", "Dr. Ana",
    ]),
)  # fmt: skip
TYPES = st.sampled_from(["person", "place", "organization", "pet", "concept", "unknown", "PESSOA", "日本", "a:b c"])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    entities=st.lists(st.tuples(NAMES, TYPES, st.lists(NAMES, max_size=2)), max_size=5),
    facts=st.lists(NAMES, max_size=3),
    relations=st.lists(st.tuples(NAMES, st.sampled_from(["sibling_of", "lives_in", "owns", "x"]), NAMES), max_size=3),
    message=st.lists(NAMES, max_size=6).map(" ".join),
)
def test_whatever_a_model_says_has_an_outcome_that_can_be_stored(
    memory: Memory, entities: Any, facts: Any, relations: Any, message: str
) -> None:
    plan = memory.say(message, entities, facts=facts, relations=relations)
    named = [name for name, *_ in entities if display_name(name)]
    ends = [end for source, _, target in relations for end in (source, target)]
    for name in [*named, *facts, *ends]:
        assert not display_name(name) or any(one.name == name for one in plan.entities), name
    assert plan.speaker_key in {one.key for one in plan.entities}
    assert memory.statements <= 3
    again = memory.say(message, entities, facts=facts, relations=relations)
    assert not any(one.is_new for one in again.entities if one.method == "new" and one.key == plan.speaker_key)


# -- cost --------------------------------------------------------------------------------------------------------------


def test_ops_08_thousands_of_alike_names(memory: Memory) -> None:
    names = [f"Loja Centro {number:04d}" for number in range(5000)]
    rng = np.random.default_rng(7)
    matrix = rng.normal(size=(1, WIDTH)) + 0.2 * rng.normal(size=(5000, WIDTH))
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    entities = [
        ResolvedEntity(
            name=name, key=f"organization:{fold(name).replace(' ', '_')}", display_name=name,
            entity_type="organization", is_new=True, method="new",
        )
        for name in names
    ]  # fmt: skip
    memory.store(entities, [], VectorCache(names, matrix))
    memory.embeddings.rows["Loja Centro 7777"] = matrix[0].tolist()
    plan = memory.say("x", [("Loja Centro 7777", "organization"), ("Loja Centro 0042", "organization")])
    assert entity(plan, "Loja Centro 7777").is_new
    assert key(plan, "Loja Centro 0042") == "organization:loja_centro_0042"
    assert not memory.model.asked
    assert memory.statements == 2


def test_above_the_pool_the_likest_spelling_is_still_a_candidate(memory: Memory) -> None:
    names = [f"Padaria Bairro {number:04d}" for number in range(2600)] + ["Padaria Estrela do Norte"]
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(len(names), WIDTH))
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    entities = [
        ResolvedEntity(
            name=name, key=f"organization:n{number}", display_name=name, entity_type="organization", is_new=True,
            method="new",
        )
        for number, name in enumerate(names)
    ]  # fmt: skip
    memory.store(entities, [], VectorCache(names, matrix))
    memory.embeddings.rows["Padaria Estrella do Norte"] = matrix[-1].tolist()
    plan = memory.say("x", [("Padaria Estrella do Norte", "organization")])
    assert key(plan, "Padaria Estrella do Norte") == "organization:n2600"


def test_statements_and_calls_do_not_grow_with_the_message(memory: Memory) -> None:
    memory.know(*(("person", f"Pessoa{number} Silva") for number in range(30)))
    many = [(f"Pessoa{number}", "person") for number in range(60)]
    plan = memory.say("Meu irmão saiu", [*many, ("irmão", "person")])
    assert len({one.key for one in plan.entities}) == 62
    assert memory.statements == 3
    assert memory.embeddings.calls == 1


def test_lookups_go_by_index(memory: Memory) -> None:
    memory.say("Meu irmão Pedro saiu", [("Pedro", "person")])
    memory.know(*(("person", f"Pessoa{number:04d} Silva") for number in range(3000)))
    rows = {
        "agent_id": memory.agent, "names": ["pedro"], "prefixes": ["ped"], "keys": ["person:pedro"],
        "last": "\U0010ffff",
        "person_types": ["person"], "per_prefix": 60, "aliases": 24, "people": ["person:bruna"],
        "rel_types": ["sibling_of"], "max_edges": 300, "pool": 2000, "near": 200, "nearest": 10,
        "wanted": json.dumps([{"number": 1, "types": ["person"], "stem": "ped", "vector": None}]),
    }  # fmt: skip
    with Session(memory.engine) as session:
        session.execute(text("ANALYZE memory_entities, memory_entity_aliases"))
        session.execute(text("SET LOCAL enable_seqscan = off"))
        plans = [
            "\n".join(session.scalars(text("EXPLAIN " + str(statement)), rows))
            for statement in (known.NAMED, known.ROLES, known.BY_SPELLING)
        ]
    assert all("Seq Scan" not in plan for plan in plans)
    assert all("memory_entity_aliases_prefix" in plan for plan in (plans[0], plans[2]))
    assert "Index Cond: ((agent_id = '" in plans[1]
    assert "AND (entity_type = ANY (w.types)))" in plans[2]  # the pool is bounded within the type
