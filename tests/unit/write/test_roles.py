"""Phrases that name a person by role, in six languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.llm.offline.roles import ROLES as OFFLINE_ROLES
from worker.write.kinship import FORMS, ROLES, WORDS, edges_of, excludes, role_word
from worker.write.names import fold
from worker.write.pronouns import SPEAKER_PRONOUNS, is_generic, is_pointing, is_speaker_pronoun
from worker.write.roles import phrases, read_phrase, spoken_roles, strip_hint


@pytest.mark.parametrize(
    ("name", "role", "qualifier", "anchor", "rest"),
    [
        ("brother", "brother", "", None, ""),
        ("Minha namorada", "girlfriend", "", None, ""),
        ("mi hermana", "sister", "", None, ""),
        ("mi hermana Lucía", "sister", "", None, "Lucía"),
        ("mon frère", "brother", "", None, ""),
        ("mia sorella", "sister", "", None, ""),
        ("meine Schwester", "sister", "", None, ""),
        ("my older brother", "brother", "older", None, ""),
        ("meu irmão mais velho", "brother", "older", None, ""),
        ("meu irmão Pedro", "brother", "", None, "Pedro"),
        ("my boss, Ana Lima", "boss", "", None, "Ana Lima"),
        ("Ana's brother", "brother", "", "Ana", ""),
        ("irmã da Bruna", "sister", "", "Bruna", ""),
        ("el hermano de Ana", "brother", "", "Ana", ""),
        ("amigo meu", "friend", "", None, ""),
        ("a friend of mine", "friend", "", None, ""),
        ("my mother-in-law", "mother_in_law", "", None, ""),
        ("ex-namorada", "ex_girlfriend", "", None, ""),
        ("minha mulher", "wife", "", None, ""),
        ("minha avó", "grandmother", "", None, ""),
        ("meu avô", "grandfather", "", None, ""),
        ("melhor amiga", "friend", "best", None, ""),
        ("vizinho", "neighbor", "", None, ""),
        ("my dog", "dog", "", None, ""),
        ("minha gata", "cat", "", None, ""),
        ("colega de trabalho", "colleague", "", None, ""),
    ],
)
def test_phrases(name: str, role: str, qualifier: str, anchor: str | None, rest: str) -> None:
    phrase = read_phrase(name)
    assert phrase is not None
    assert (phrase.role.name, phrase.qualifier, phrase.anchor, phrase.rest) == (role, qualifier, anchor, rest)


@pytest.mark.parametrize(
    "name",
    ["Pedro", "his brother", "o irmão dele", "mulher", "my friends", "Tia Ana", "Neto", "Otávio Prado Filho",
     "Doctor Who", "Dr. Paula", "my car", "São Paulo", "Brother Industries", "", "Partner Seguros"],
)  # fmt: skip
def test_plain_names(name: str) -> None:
    assert read_phrase(name) is None


@pytest.mark.parametrize(
    ("name", "stripped", "hinted"),
    [
        ("Carol (namorada do Rafael)", "Carol", True),
        ("Ana (my sister)", "Ana", True),
        ("Pedro (irmão)", "Pedro", True),
        ("Lucía （hermana）", "Lucía", True),
        ("Paris (Texas)", "Paris (Texas)", False),
        ("Carol (do Rafael)", "Carol (do Rafael)", False),
        ("Ana", "Ana", False),
    ],
)
def test_hints(name: str, stripped: str, hinted: bool) -> None:
    assert (strip_hint(name)[0], strip_hint(name)[1] is not None) == (stripped, hinted)


@pytest.mark.parametrize(
    ("name", "message", "shown"),
    [
        ("irmão", "", "irmão de Rafael"),
        ("my brother", "", "Rafael's brother"),
        ("amigo", "El amigo se fue", "amigo de Rafael"),
        ("meine Schwester", "", "Schwester von Rafael"),
        ("meu ex", "", "ex de Rafael"),
        ("cousin", "My cousin is in town", "Rafael's cousin"),
        ("cousin", "Le cousin est dans la ville", "cousin de Rafael"),
    ],
)
def test_a_placeholder_is_named_in_the_language_of_the_message(name: str, message: str, shown: str) -> None:
    phrase = read_phrase(name)
    assert phrase is not None
    assert phrase.display("Rafael", message) == shown
    assert fold(shown) in phrases(phrase.role, phrase.qualifier, "Rafael")


def test_roles_in_a_message() -> None:
    roles = list(spoken_roles("Eu tenho uma namorada, a Lívia. O Pedro é meu irmão mais velho; a chefe saiu."))
    assert [(one.phrase.role.name, one.phrase.qualifier, one.indefinite) for one in roles] == [
        ("girlfriend", "", True),
        ("brother", "older", False),
    ]


def test_every_role_has_its_edges_and_words() -> None:
    for role in ROLES.values():
        assert (role.rel_type in {rel_type for rel_type, _ in edges_of(role)}) is True
        assert FORMS[role.name]
    assert ("child_of", False) in edges_of(ROLES["mother"])
    assert excludes(ROLES["brother"], ROLES["sister"])
    assert not excludes(ROLES["sibling"], ROLES["sister"])
    assert excludes(ROLES["mother_in_law"], ROLES["sister_in_law"])


def test_the_offline_readers_edges_are_the_same() -> None:
    for word, theirs in OFFLINE_ROLES.items():
        ours = role_word(word)
        if ours is not None and theirs.kind == "person" and "_" not in word:
            rel_types = {rel_type for rel_type, _ in edges_of(ours.role)}
            assert theirs.rel_type in rel_types, word


@given(
    st.one_of(
        st.text(max_size=40), st.lists(st.sampled_from([*WORDS, "my", "meu", "Ana's", "de", "Ana"])).map(" ".join)
    )
)
def test_anything_can_be_read(name: str) -> None:
    phrase = read_phrase(name)
    strip_hint(f"Ana ({name})")
    list(spoken_roles(name))
    if phrase is not None:
        assert phrase.display("Rafael")
        assert phrase.slug_part


def test_pronouns() -> None:
    for row in SPEAKER_PRONOUNS.values():
        assert all(is_speaker_pronoun(word) for word in row.split("|"))
    assert is_speaker_pronoun("EU")
    assert is_speaker_pronoun("ego", ("ego",))
    assert not is_speaker_pronoun("ego")
    for other in ("we", "ele", "ela", "Ana", "Eulália", "Mia", "you"):
        assert not is_speaker_pronoun(other)


def test_words_that_point_are_no_names() -> None:
    assert all(is_pointing(word) for word in ("she", "Ela", "él", "彼女", "ihr", "they"))
    assert not any(is_pointing(word) for word in ("Ana", "Sie-Won", "Ella Fitzgerald", "eu"))
    assert all(is_generic(word) for word in ("the company", "essa cidade", "ela"))
    assert not any(is_generic(word) for word in ("The Beatles", "a-ha", "La Plata", "iPhone", "o2"))
