"""Which sentences may never be taken for the same claim, and which may."""

from __future__ import annotations

import pytest

from worker.write.polarity import (
    negations,
    numbers_and_dates,
    one_dated_closer,
    opposed,
    polarity,
    same_claim_possible,
)

NEGATED = [
    "Ana does not like tea", "Ana doesn't like tea", "Ana dislikes tea",
    "Ana can’t eat peanuts", "Ana cannot eat peanuts",
    "Ana never smoked", "Ana no longer works at Vertix", "Ana has no children", "Ana stopped smoking",
    "Bruna não pode comer amendoim", "Nunca fumei.", "Já não trabalho na Vértice.", "Bruna não mora mais em Recife",
    "Bruna deixou de fumar", "Bruna odeia natação",
    "Bruna não viu ninguém", "Bruna vive sem carro",
    "Ana no come carne", "Ana ya no vive en Lima", "Rafael no fuma", "A Ana no le gusta el té", "Nunca he fumado",
    "Ana no ha fumado nunca",
    "Ana n'aime pas le thé", "Ana ne fume plus", "Je n’ai jamais fumé", "Ana déteste le thé",
    "Ana isst kein Fleisch", "Ana mag den Tee nicht", "Ana arbeitet nicht mehr bei Siemens", "Ana hat nie geraucht",
    "Ana non mangia carne", "Ana non ha mai fumato", "Ana non vive più a Roma", "Ana odia il tè",
    "我不喜欢喝茶", "我没有孩子", "王芳讨厌游泳", "王芳不再抽烟",
    "田中さんはお茶が好きではない", "私は肉を食べません", "田中さんは酒をやめた",
    "박서준은 고기를 먹지 않는다", "저는 안 먹어요", "나는 커피를 싫어한다",
    "Анна не любит чай", "Анна никогда не курила", "У Анны нет детей", "لا أحب الشاي",
    "لم أدخن أبدا", "मैं मांस नहीं खाता",
]  # fmt: skip
PLAIN = [
    "Ana likes tea", "Ana can eat peanuts", "Ana smokes", "No, Ana likes tea", "Ana has not only a dog but also a cat",
    "Ana doesn't dislike tea", "Not that Ana doesn't like jazz",
    "Bruna mora no Recife", "Bruna trabalha no Google", "Rafael nasceu no Rio", "Bruna nada todos os dias",
    "Não é que eu não goste de jazz.", "Bruna fala não só inglês mas também alemão", "Bruna pode comer amendoim",
    "Ana vive en Lima", "Ana no puede no ir", "Ana aime le thé", "Ana habite à Lyon", "Rafael surfa no mar",
    "Ana mag den Tee", "Ana vive a Roma", "Ana mora em Nova York",
    "我喜欢喝茶", "王芳很特别", "他们的性别不同", "我不得不去上海", "非常喜欢",
    "田中さんはお茶が好き", "行かなければならない", "そうかもしれない", "박서준은 고기를 먹는다", "안녕하세요",
    "Анна любит чай", "أحب الشاي",
]  # fmt: skip


@pytest.mark.parametrize("text", NEGATED)
def test_negated(text: str) -> None:
    assert polarity(text), negations(text)


@pytest.mark.parametrize("text", PLAIN)
def test_not_negated(text: str) -> None:
    assert not polarity(text), negations(text)


def test_two_negated_clauses_do_not_cancel_each_other() -> None:
    assert polarity("Bruna não come carne e não bebe café")
    assert polarity("Ana does not eat meat, does not drink coffee")
    assert not same_claim_possible("Bruna come carne e bebe café", "Bruna não come carne e não bebe café")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Posso comer amendoim.", "Não posso comer amendoim."),
        ("Ana likes tea", "Ana dislikes tea"),
        ("Ana likes tea", "Ana hates tea"),
        ("Ana has 2 cats", "Ana has 3 cats"),
        ("Ana has two cats", "Ana has three cats"),
        ("A festa é em março", "A festa é em abril"),
        ("Ana flies on Saturday", "Ana flies on Sunday"),
        ("Ana arrived yesterday", "Ana arrives tomorrow"),
        ("Casamos em 27 de agosto de 2023", "Casamos em 27 de agosto de 2022"),
        ("Ana bought the flat", "Ana sold the flat"),
        ("Ana is happy at work", "Ana is unhappy at work"),
        ("Bruna está empregada", "Bruna está desempregada"),
        ("Ana joined Vertix", "Ana left Vertix"),
        ("Ana used to live in Leeds", "Ana lives in Leeds"),
        ("王芳三岁", "王芳四岁"),
        ("王芳喜欢游泳", "王芳讨厌游泳"),
        ("王芳今天去上海", "王芳明天去上海"),
        ("田中は肉を食べます", "田中は肉を食べません"),
        ("Анна купила дом", "Анна продала дом"),
        ("Loja Centro 0001 abriu", "Loja Centro 0002 abriu"),
    ],
)
def test_neg_02_never_the_same_claim(a: str, b: str) -> None:
    assert not same_claim_possible(a, b)
    assert not same_claim_possible(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Bruna vai pintar a sala no sábado", "Bruna vai pintar a sala de verde no sábado e trocar as cortinas"),
        ("Ana does not like tea", "Ana dislikes tea"),
        ("Ana hates tea", "Ana doesn't like tea"),
        ("Ana has 9,000 books", "Ana has 9000 books"),
        ("Bruna tem três gatos", "Bruna tem 3 gatos"),
        ("Bruna se casou em março de 2023", "Bruna got married in March 2023"),
        ("Nunca fumei", "Eu nunca fumei na vida"),
        ("Ana is a software engineer", "Ana works as a software engineer"),
        ("我每天早上喝豆浆", "我每天早上都喝豆浆"),
    ],
)
def test_may_be_the_same_claim(a: str, b: str) -> None:
    assert same_claim_possible(a, b)
    assert same_claim_possible(b, a)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reunião em 2025-03-05", {"2025", "month:3", "5"}),
        ("paid R$ 9.000,50", {"9000.5"}),
        ("costs 1.50", {"1.5"}),
        ("at 07:30", {"7", "30"}),
        ("on May 3", {"month:5", "3"}),
        ("Ana may come", set()),
        ("once upon a time", set()),
        ("١٢ كتابا", {"12"}),
        ("nothing here", set()),
    ],
)
def test_numbers_and_dates(text: str, expected: set[str]) -> None:
    assert numbers_and_dates(text) == expected


def test_opposites_need_both_sides() -> None:
    assert opposed("Ana bought it", "Ana sold it")
    assert not opposed("Ana bought and sold it", "Ana sold it")
    assert not opposed("Ana bought it", "Ana has it")


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("Ana moved to Recife in 2020", "Ana moved to Recife on 5 March 2020", True),
        ("Ana moved to Recife", "Ana moved to Recife in May 2021", True),
        ("A Ana se mudou em 2020", "A Ana se mudou em março de 2020", True),
        ("Ana moved to Recife in 2019", "Ana moved to Recife in March 2020", False),
        ("Ana has 2 cats", "Ana has 2 cats and 3 dogs", False),
        ("Ana earns 9000", "Ana earns 9000, since 2020 it is 9500", False),
        ("Ana did not move in 2020", "Ana moved in March 2020", False),
        ("Ana moved in 2020", "Ana moved in 2020", False),
    ],
)
def test_one_of_two_may_give_less_of_a_date_and_of_nothing_else(one: str, other: str, may: bool):
    assert one_dated_closer(one, other) is one_dated_closer(other, one) is may
