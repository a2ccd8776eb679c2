"""Folding, keys, mentions and hashes of names, in every script."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from worker.write import names
from worker.write.names import display_name, entity_key, fold, mentions, slug, text_hash, word_grams, words

TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("Aãçñ ßİıøС йеё\u0301\u0308\u200b\u200d\ufe0f+#&@.,-%5٣北京田ーカがタ박서준ไทวัสदी😀🐶()$"),
    ),
    max_size=24,
)


@given(TEXT)
@example("北+ 南")
@example("a--5 +#")
@example("℠")
@example(":℠")
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(TEXT)
def test_units_spell_the_folded_text(text: str) -> None:
    units = names._Units(text)
    assert units.folded == names._joined(names._spaced(text, symbols=False))
    assert "".join(units.folded[a:b] for a, b in zip(units.starts, units.ends, strict=True)) == (
        units.folded.replace(" ", "")
    )


@given(TEXT)
def test_composed_and_decomposed_writing_are_one_name(text: str) -> None:
    """DUP-08"""
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))


@given(st.text(min_size=0, max_size=300), TEXT)
def test_a_key_is_never_empty_nor_long(entity_type: str, name: str) -> None:
    key = entity_key(entity_type, name)
    kind, _, rest = key.partition(":")
    assert kind
    assert rest
    assert ":" not in kind
    assert len(key) <= 128
    assert key == entity_key(entity_type, name)
    assert not any(char.isspace() for char in key)


@given(TEXT)
def test_a_name_with_something_to_see_has_something_to_show(name: str) -> None:
    shown = display_name(name)
    assert shown == " ".join(shown.split())
    assert display_name(shown) == shown
    if fold(name):
        assert shown


@given(TEXT)
def test_what_is_shown_is_compared_like_what_was_written(name: str) -> None:
    if any(char.isalnum() for char in fold(name)):
        assert fold(display_name(name)).split()[:1] == fold(display_name(display_name(name))).split()[:1]


@given(st.lists(TEXT, max_size=6))
def test_every_mention_is_one_of_the_names(parts: list[str]) -> None:
    found = mentions(" ".join(parts), parts)
    assert set(found) <= set(parts)


@given(TEXT)
def test_the_grams_of_a_name_hold_the_name(name: str) -> None:
    folded = names._joined(names._spaced(name, symbols=False))
    if folded and len(folded) <= 12 and len(folded.split()) <= 6 and len(names._Units(name).starts) <= 12:
        assert folded in word_grams(name)


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("São Paulo", "sao paulo"),
        ("  PADARIA\n\tSol ", "padaria sol"),  # DUP-07
        ("C++", "c++"),
        ("C#", "c#"),
        ("AT&T", "at&t"),
        ("Ana&Bia", "ana bia"),
        ("Node.js 3.11", "node js 3.11"),
        ("O'Brien", "o brien"),
        ("Straße", "strasse"),
        ("İstanbul", "istanbul"),
        ("Łódź", "lodz"),
        ("Μαρία", "μαρια"),
        ("Йод и иод", "йод и иод"),
        ("Пётр", "петр"),
        ("مُحَمَّد", "محمد"),
        ("हिन्दी", "हिन्दी"),
        ("田中 一郎", "田中一郎"),
        ("박 서준", "박서준"),
        ("ｶﾞｰﾀ", "ガータ"),
        ("Ana北", "ana 北"),
        ("ａｎａ", "ana"),
        ("a\u200bna\ufeff", "ana"),
        ("★Ana★", "ana"),
        ("-5 graus", "-5 graus"),
        ("−5 graus", "-5 graus"),
        ("Jean-Luc", "jean luc"),
        ("🐶", "🐶"),
        ("!!!", "!!!"),
        ("\u200b \n", ""),
    ],
)
def test_folding(written: str, folded: str) -> None:
    assert fold(written) == folded


def test_keys_of_every_script_are_distinct() -> None:
    """MRG-03, MRG-04"""
    people = [
        "李雷",
        "王芳",
        "محمد",
        "Ana 北",
        "Ana 南",
        "박서준",
        "박서진",
        "田中一郎",
        "田中一朗",
        "Ana",
        "Йод",
        "Иод",
    ]
    keys = [entity_key("person", name) for name in people]
    assert len(set(keys)) == len(people)
    assert entity_key("place", "São Paulo") == "place:sao_paulo"
    assert entity_key("Organization ", "Отдел 7") == "organization:отдел_7"
    assert slug("C++") == "c++"
    assert slug("C#") == "c#"
    assert slug("🐶") == "u1f436"
    assert slug("🐶") != slug("🐱")


def test_a_long_name_ends_in_a_hash_of_the_whole() -> None:
    first, second = entity_key("place", "rua " * 80 + "a"), entity_key("place", "rua " * 80 + "b")
    assert len(first) <= 128
    assert first != second


@pytest.mark.parametrize(
    ("text", "wanted", "found"),
    [
        ("Comprei banana", ["Ana"], []),
        ("A Ana foi", ["Ana"], ["Ana"]),
        ("Carol's car", ["Carol"], ["Carol"]),
        ("Ana Paula foi", ["Ana", "Ana Paula"], ["Ana Paula"]),
        ("Ana Paula viu a Ana", ["Ana", "Ana Paula"], ["Ana Paula", "Ana"]),
        ("O Jo foi", ["Jo"], []),
        ("I write C++, not C", ["C++", "C"], ["C++"]),
        ("我朋友李雷来了", ["李雷", "李"], ["李雷"]),
        ("박서준은 의사다", ["박서준", "서준"], ["박서준"]),
        ("내 친구 박 서준은", ["박서준"], ["박서준"]),
        ("ジョンソンさんと", ["ジョン", "ジョンソン"], ["ジョンソン"]),
        ("我在Google工作", ["Google"], ["Google"]),
        ("JOSÉ ligou", ["Jose\u0301"], ["Jose\u0301"]),
        ("ผมชื่อสมชายครับ", ["สมชาย"], ["สมชาย"]),
        ("", ["Ana"], []),
        ("O irmão de Ana saiu", ["Ana", "irmão de Ana"], ["irmão de Ana", "Ana"]),
        ("Ana's brother left", ["Ana", "Ana's brother"], ["Ana's brother", "Ana"]),
        ("Ana's Diner opened", ["Ana", "Ana's Diner"], ["Ana's Diner"]),
        ("Fui ao Rio de Janeiro", ["Janeiro", "Rio de Janeiro"], ["Rio de Janeiro"]),
    ],
)
def test_mentions(text: str, wanted: list[str], found: list[str]) -> None:
    assert mentions(text, wanted) == found


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Bruna adora café!", "bruna ADORA cafe", True),
        ("e-mail", "email", True),
        ("田中 一郎です。", "田中一郎です", True),
        ("C++", "C#", False),
        ("C++", "C", False),
        ("-5", "5", False),
        ("1 2", "12", False),
        ("3.5", "35", False),
        ("10:30", "1030", False),
        ("x > 5", "x < 5", False),
        ("likes 🐶", "likes 🐱", False),
        ("50%", "50", False),
        ("$50", "€50", False),
    ],
)
def test_what_identical_means(one: str, other: str, same: bool) -> None:
    assert (text_hash(one) == text_hash(other)) is same
    assert len(text_hash(one)) == 16


def test_words_and_grams() -> None:
    assert words("A Ana, do 3º andar") == ["a", "ana", "do", "3o", "andar"]
    assert word_grams("Ana Paula Ana") == ["ana", "paula", "ana paula", "paula ana", "ana paula ana"]
    assert {"박서", "박서준", "서준은"} & set(word_grams("박서준은")) == {"박서", "박서준"}


@pytest.mark.parametrize("text", ["palavra ção " * 17_000, "".join(chr(0x4E00 + i % 9000) for i in range(50_000))])
def test_grams_of_a_huge_message_are_bounded(text: str) -> None:
    started = time.process_time()
    assert len(word_grams(text)) <= names.MAX_GRAMS
    assert time.process_time() - started < 5
