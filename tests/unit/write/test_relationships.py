"""rel_type normalisation (behaviour: 8, "Relationships")."""

from __future__ import annotations

import pytest

from worker.write.relationships import inverse_of, is_identity, normalise_rel_type


@pytest.mark.parametrize(
    ("raw", "rel_type"),
    [
        ("works_at", "works_at"),
        ("employed_at", "works_at"),
        ("Works At", "works_at"),
        ("worksAt", "works_at"),
        ("lives-in", "lives_in"),
        ("trabalha em", "works_at"),
        ("mentored_by", "mentored_by"),
        ("Irmã de", "sibling_of"),
        ("  inspired   by ", "inspired_by"),
        ("друг", "друг"),
        ("同事", "同事"),
        ("!!!", ""),
        ("", ""),
    ],
)
def test_normalise(raw: str, rel_type: str) -> None:
    assert normalise_rel_type(raw) == rel_type
    assert normalise_rel_type(normalise_rel_type(raw)) == rel_type


def test_the_deployments_own_aliases_come_first() -> None:
    assert normalise_rel_type("Employed At", {"employed_at": "serves in"}) == "serves_in"
    assert normalise_rel_type("pilots", {"Pilots": "flies"}) == "flies"


def test_a_long_type_is_cut_and_stays_a_word() -> None:
    cut = normalise_rel_type("knows_" * 40)
    assert len(cut) <= 64
    assert not cut.endswith("_")


def test_identity_and_inverses() -> None:
    assert is_identity(normalise_rel_type("sameAs"))
    assert not is_identity("works_at")
    assert inverse_of("parent_of") == "child_of"
    assert inverse_of("child_of") == "parent_of"
    assert inverse_of("sibling_of") == "sibling_of"
    assert inverse_of("inspired_by") is None
