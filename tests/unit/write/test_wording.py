"""Relations in words, and sentences that end something (behaviour: 7, 8 and 14)."""

from __future__ import annotations

import pytest

from worker.write.wording import bare_ending, ends, guess_language, relation_sentence, says_more, says_over


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I'm going to Curitiba to see my mother", "en"),
        ("vou pra Curitiba ver minha mãe", "pt"),
        ("Voy a Córdoba a ver a mi madre", "es"),
        ("El año pasado me mudé", "es"),
        ("Moro com a minha irmã", "pt"),
        ("Acme", "en"),
        ("", "en"),
    ],
)
def test_guess_language(text: str, language: str) -> None:
    assert guess_language(text) == language


def test_relation_sentence() -> None:
    assert relation_sentence("Mom", "lives_in", "Curitiba", "en") == "Mom lives in Curitiba"
    assert relation_sentence("Ana", "works_at", "Acme", "pt") == "Ana trabalha em Acme"
    assert relation_sentence("Ana", "works_at", "Acme", "es") == "Ana trabaja en Acme"
    assert relation_sentence("Ana", "inspired_by", "Bia", "pt") == "Ana inspired by Bia"


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("Já não trabalho na Vértice", True),
        ("Ana não mora mais em Recife", True),
        ("Bia deixou de fumar", True),
        ("Rui no longer eats meat", True),
        ("Luis ya no vive en Lima", True),
        ("Ana mora em Recife", False),
        ("Ana não gosta mais de café", True),
        ("Ana tem mais dois gatos", False),
        ("Ana não corre mais que o Rui", False),
        ("O carro não custa mais de 10 mil", False),
        ("Bruna vendeu o Fusca", False),
        ("Ana does not like tea", False),
    ],
)
def test_says_over(text: str, over: bool) -> None:
    assert says_over(text) is over


@pytest.mark.parametrize(
    ("new", "old", "more"),
    [
        ("Ana no longer works at Acme", "Ana works at Acme", False),
        ("Ana não trabalha mais na Acme", "Ana trabalha na Acme", False),
        ("Ana no longer likes tea, prefers coffee", "Ana likes tea", True),
        ("Ana left Acme for Orion", "Ana works at Acme", True),
    ],
)
def test_says_more(new: str, old: str, more: bool) -> None:
    assert says_more(new, old, ["Ana"]) is more


@pytest.mark.parametrize(
    ("new", "old", "ended"),
    [
        ("Bruna vendeu o Fusca ontem", "Bruna tem um Fusca azul", True),
        ("Bruna sold the car", "Bruna owns a red car", True),
        ("Bruna não pode comer amendoim", "Bruna pode comer amendoim", True),
        ("Bruna left Acme", "Bruna works at Acme", True),
        ("Bruna vendeu o Fusca", "Bruna tem um gato", False),
        ("Bruna administra o GitHub da Nortec", "Bruna é gerente de compliance na Nortec", False),
        ("Bruna no longer likes tea", "Bruna likes coffee", False),
        ("Bruna bought a car", "Bruna has a car", False),
        ("Bruna moved to Austin", "Bruna lives in Austin", False),
        ("Bruna", "Bruna", False),
    ],
)
def test_ends(new: str, old: str, ended: bool) -> None:
    assert ends(new, old, ["Bruna"]) is ended


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Ana não mora mais em Recife", True),
        ("Ana no longer works at Acme", True),
        ("Ana no longer likes tea, prefers coffee", False),
        ("Ana não bebe mais café e prefere chá", False),
        ("Ana likes tea", False),
    ],
)
def test_bare_ending(text: str, bare: bool) -> None:
    assert bare_ending(text) is bare
