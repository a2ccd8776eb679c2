"""Which names may be one entity's, and what in their spelling speaks for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.write.entity_types import compatible, family
from worker.write.persons import evidence, may_be_same, person_name, prefix_match

NAMES = st.one_of(
    st.text(max_size=20),
    st.lists(
        st.sampled_from(["Ana", "Anabela", "Carol", "Carolina", "Silva", "Filho", "Jr.", "II", "2", "北", "京", "de"]),
        max_size=4,
    ).map(" ".join),
)


@pytest.mark.parametrize(
    ("one", "other", "guard"),
    [
        ("Otávio Prado", "Otávio Prado Filho", "generation"),  # MRG-05
        ("Prado", "Prado Filho", "generation"),
        ("João Silva", "João Silva Jr.", "generation"),
        ("João Silva Sr.", "João Silva Jr.", "generation"),
        ("Carlos Neto", "Carlos", "generation"),
        ("Carlos Sobrinho", "Carlos Neto", "generation"),
        ("John Smith II", "John Smith III", "number"),
        ("John Smith", "John Smith III", "number"),
        ("田中一郎", "田中一朗", "cjk_character"),
        ("박서준", "박서진", "cjk_character"),
        ("Ana 北", "Ana 南", "surname"),
        ("Ana Souza", "Ana Lima", "surname"),
        ("Ana Souza", "Ana Sousa", None),
        ("Sr. Silva", "Silva", None),
        ("João da Silva", "João Silva", None),
        ("João P. Silva", "João Pedro Silva", None),
        ("田中", "田中一郎", None),
        ("田中 一郎", "田中一郎", None),
        ("Bob", "Roberto", None),
        ("Júnior", "Junior", None),
    ],
)
def test_guards_of_persons(one: str, other: str, guard: str | None) -> None:
    assert may_be_same(one, other, "person", "person") == guard
    assert may_be_same(other, one, "person", "person") == guard


@pytest.mark.parametrize(
    ("one", "other", "guard"),
    [
        ("Loja Centro 0001", "Loja Centro 0002", "number"),
        ("Loja 01", "Loja 1", None),
        ("iPhone", "iPhone 15", "number"),
        ("Rocky II", "Rocky III", "number"),
        ("Turma A", "Turma B", "letter"),
        ("C++", "C", None),
        ("Orion Tech", "Orion Tech Ltda", None),
        ("東京大学", "東京大空", "cjk_character"),
        ("東京大学", "東大", None),
    ],
)
def test_guards_of_things(one: str, other: str, guard: str | None) -> None:
    assert may_be_same(one, other, "organization", "company") == guard


def test_types() -> None:
    assert may_be_same("Ana", "Ana", "person", "organization") == "type"
    assert may_be_same("Ana", "Ana", "person", "unknown") is None
    assert compatible("company", "organization")
    assert not compatible("place", "product")
    assert family("Cidade") == "place"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Carol", "Carolina", True),
        ("Carol", "Carolina Lima", True),
        ("Carol Lima", "Carolina Lima Souza", True),
        ("Carol Lima", "Carolina Souza", False),
        ("Jo", "João", False),
        ("Bob", "Roberto", False),
        ("Ana", "Anabela", True),  # who else is there decides
        ("Gabriel", "Gabriela", False),
        ("Paul", "Paula", False),
        ("Rafa", "Rafaela", True),
        ("Ana", "Ana Filho", False),
        ("Dr. Ana", "Ana", True),
        ("João P.", "João Pedro", True),
        ("李", "李雷", False),
        ("Саш", "Саша", True),
    ],
)
def test_first_name_rule(one: str, other: str, same: bool) -> None:
    assert prefix_match(one, other) is same
    assert prefix_match(other, one) is same


def test_nicknames_join_what_no_spelling_does() -> None:
    assert prefix_match("Bob Dias", "Roberto Dias", {"bob": "roberto"})
    assert not prefix_match("Bob Dias", "Renato Dias", {"bob": "roberto"})


@pytest.mark.parametrize(
    ("one", "other", "kind", "found"),
    [
        ("Guili", "Guilherme Maturana", "person", "diminutive"),
        ("Aninha", "Ana", "person", "diminutive"),
        ("Thiago", "Tiago", "person", "spelling"),
        ("Sophia Dias", "Sofia Dias", "person", "spelling"),
        ("Luiz", "Luis", "person", "spelling"),
        ("Marina", "Mariana", "person", None),
        ("Fernanda Lima", "Fernando Lima", "person", None),
        ("Marcos", "Marcelo", "person", None),
        ("Ana Souza", "Rita Souza", "person", None),
        ("Brasil", "Brazil", "place", "spelling"),
        ("Porto", "Ponto", "place", None),
        ("Orion Tech", "OrionTech", "organization", "same_words"),
        ("Orion Tech", "Orion Tech Ltda.", "organization", "same_words"),
        ("Loja Norte", "Loja Sul", "organization", None),
        ("IBM", "International Business Machines", "organization", "acronym"),
        ("Padaria Sol", "Padaria Sal", "organization", None),
    ],
)
def test_evidence(one: str, other: str, kind: str, found: str | None) -> None:
    assert evidence(one, other, kind) == found
    assert evidence(other, one, kind) == found


def test_parts_of_a_name() -> None:
    parts = person_name("Dra. Maria de Lourdes Prado Filho Jr.")
    assert (parts.first, parts.rest, parts.suffixes) == ("maria", ("lourdes", "prado"), {"filho", "junior"})
    assert person_name("Júnior").first == "junior"


@given(NAMES, NAMES)
def test_no_order_and_no_crash(one: str, other: str) -> None:
    assert may_be_same(one, other, "person", "person") == may_be_same(other, one, "person", "person")
    assert prefix_match(one, other) == prefix_match(other, one)
    assert evidence(one, other, "person") == evidence(other, one, "person")
    assert evidence(one, other, "place") == evidence(other, one, "place")


@given(NAMES, NAMES)
def test_what_is_forbidden_has_no_evidence(one: str, other: str) -> None:
    if may_be_same(one, other, "person", "person") is not None:
        assert not prefix_match(one, other)
        assert evidence(one, other, "person") is None


@given(NAMES)
def test_a_name_may_be_itself(name: str) -> None:
    assert may_be_same(name, name, "person", "person") is None
