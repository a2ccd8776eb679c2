"""Which names are forms of one another."""

from __future__ import annotations

import pytest

from tests.unit.llm.offline.asking import ask


def chosen(name: str, *candidates: str, kind: str = "person") -> str | None:
    """The candidate that the reader picks."""
    listed = [{"number": i, "name": c, "type": kind, "aliases": [], "profile": ""} for i, c in enumerate(candidates, 1)]
    names = [{"number": 3, "name": name, "type": kind, "candidates": listed}]
    (resolution,) = ask("entity_resolution", {"message": "", "speaker": "Bruna", "names": names})["resolutions"]
    assert resolution["name_number"] == 3
    assert list(resolution)[1] == "reason"
    number = resolution["candidate_number"]
    return candidates[number - 1] if number else None


@pytest.mark.parametrize(
    ("name", "candidate"),
    [
        ("Clara", "Clara Rezende"),
        ("Aninha", "Ana"),
        ("Guili", "Guilherme Maturana"),
        ("Carol", "Carolina"),
        ("José", "Jose"),
        ("J. Silva", "João Silva"),
        ("Gulherme", "Guilherme"),
        ("Pedrinho", "Pedro Alves"),
        ("Bob", "Roberto"),
        ("박서준", "박 서준"),
    ],
)
def test_forms_of_one_name(name: str, candidate: str) -> None:
    assert chosen(name, candidate, "Xavier Quintana") == candidate


@pytest.mark.parametrize(
    ("name", "candidate"),
    [
        ("Otávio Prado Filho", "Otávio Prado"),
        ("Loja Centro 0001", "Loja Centro 0002"),
        ("田中一郎", "田中一朗"),
        ("박서준", "박서진"),
        ("Ana", "Mariana"),
        ("Jo", "João"),
        ("Carlos Junior", "Carlos"),
        ("Lia", "Léo"),
        ("Henry IV", "Henry V"),
    ],
)
def test_mrg_05_two_names(name: str, candidate: str) -> None:
    assert chosen(name, candidate) is None


def test_two_that_fit_are_none() -> None:
    assert chosen("Ana", "Ana Lima", "Ana Prado") is None
    assert chosen("Ana", "Ana", "Ana Prado") == "Ana"
