"""Hosted embeddings through litellm, against the scripted server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.scripted_model import EMBEDDING, Fault, ScriptedModel
from worker.embedding import embedding_from_environment
from worker.embedding.litellm_provider import MAX_CHARS, LiteLLMEmbedding
from worker.embedding.provider import EmbeddingProvider
from worker.llm.provider import Cause, ModelError


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def model(server: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    server.reset()
    for name, value in server.environment(embeddings=True).items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def provider(model: ScriptedModel) -> EmbeddingProvider:
    return embedding_from_environment(model.environment(embeddings=True))


def failure(provider: EmbeddingProvider, timeout: float = 10.0) -> ModelError:
    with pytest.raises(ModelError) as caught:
        provider.embed(["um", "dois", "três"], timeout=timeout)
    return caught.value


def test_unit_vectors_in_order(model: ScriptedModel, provider: EmbeddingProvider) -> None:
    model.vector("um", [3.0, 4.0, *[0.0] * 382])
    rows = provider.embed(["um", "Bruna mora em Maceió", "bruna MORA em maceio!"])
    assert rows.shape == (3, 384)
    assert rows.dtype == np.float32
    assert rows[0, :2] == pytest.approx([0.6, 0.8])
    assert float(rows[1] @ rows[2]) > 0.85
    assert abs(float(rows[0] @ rows[1])) < 0.5


def test_order_is_by_index(model: ScriptedModel, provider: EmbeddingProvider) -> None:
    expected = provider.embed(["um", "dois", "três"])
    model.queue(EMBEDDING, Fault.shuffled())
    assert np.array_equal(provider.embed(["um", "dois", "três"]), expected)


def test_VEC_01_a_short_batch_or_another_width_is_a_provider_error(
    model: ScriptedModel, provider: EmbeddingProvider
) -> None:
    model.queue(EMBEDDING, Fault.short_batch(), Fault.wrong_width(768), [[0.0] * 384] * 3)
    for detail in ("short_batch", "wrong_width", "bad_vector"):
        error = failure(provider)
        assert (error.cause, error.detail) == (Cause.PROVIDER_ERROR, detail)


def test_http_errors_have_their_causes_and_are_one_call(model: ScriptedModel, provider: EmbeddingProvider) -> None:
    model.queue(
        EMBEDDING, Fault.status(500), Fault.status(429, retry_after=4), Fault.status(401), Fault.drip("x" * 500)
    )
    assert failure(provider).cause is Cause.PROVIDER_ERROR
    limited = failure(provider)
    assert (limited.cause, limited.retry_after) == (Cause.RATE_LIMITED, 4)
    assert failure(provider).cause is Cause.MODEL_UNAVAILABLE
    assert failure(provider, timeout=0.5).cause is Cause.TIMEOUT
    assert model.count(EMBEDDING) == 4


def test_a_server_that_knows_no_base64_is_asked_for_floats_from_then_on(
    model: ScriptedModel, provider: EmbeddingProvider
) -> None:
    model.queue(EMBEDDING, Fault.status(400))
    expected = provider.embed(["um", "dois"])
    assert expected.shape == (2, 384)
    assert np.array_equal(provider.embed(["um", "dois"]), expected)
    asked = [call.body["encoding_format"] for call in model.calls]
    assert asked == ["base64", "float", "float"]


def test_one_that_answers_floats_whatever_it_is_asked(model: ScriptedModel, provider: EmbeddingProvider) -> None:
    encoded = provider.embed(["um", "dois"])
    model.queue(EMBEDDING, Fault.floats())
    assert provider.embed(["um", "dois"]) == pytest.approx(encoded, abs=1e-6)


def test_batches_long_blank_and_odd_texts(model: ScriptedModel, provider: EmbeddingProvider) -> None:
    texts = ["x" * 60_000, "", "a\x00b\ud83d", *map(str, range(200))]
    assert provider.embed(texts).shape == (203, 384)
    sent = [text for call in model.calls for text in call.payload["texts"]]
    assert model.count(EMBEDDING) == 2
    assert len(sent[0]) == MAX_CHARS
    assert sent[1:3] == [".", "ab"]
    assert provider.embed([]).shape == (0, 384)


def test_settings_that_cannot_be(model: ScriptedModel) -> None:
    env = model.environment(embeddings=True)
    for width in ("", "0", "wide", "-3"):
        with pytest.raises(ValueError, match="MANDUA_EMBEDDING_DIMENSIONS"):
            embedding_from_environment({**env, "MANDUA_EMBEDDING_DIMENSIONS": width})
    with pytest.raises(ValueError, match="dimensions"):
        LiteLLMEmbedding("openai/x", 0)
