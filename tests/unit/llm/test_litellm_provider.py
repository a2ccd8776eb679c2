"""Real HTTP through litellm, against the scripted server."""

from __future__ import annotations

import email.utils
import json
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.scripted_model import Fault, ScriptedModel
from worker.llm import llm_from_environment
from worker.llm.litellm_provider import LiteLLMProvider
from worker.llm.provider import Cause, Completion, LLMProvider, ModelError
from worker.llm.schemas import SCHEMAS

SECRET = "o segredo de Bruna"
REPLY = {"emotion": {"primary": "joy", "intensity": 0.5, "energy_level": "low"}}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def model(server: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    server.reset()
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    server.on("emotion", REPLY)
    return server


@pytest.fixture
def provider() -> LiteLLMProvider:
    return LiteLLMProvider("openai/scripted")


def ask(provider: LLMProvider, *, timeout: float = 10.0, schema: Any = None) -> Completion:
    return provider.complete("emotion", "You are constant.", {"message": SECRET}, schema=schema, timeout=timeout)


def failure(provider: LLMProvider, *, timeout: float = 10.0) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(provider, timeout=timeout)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


def test_one_system_prompt_and_one_user_message(model: ScriptedModel, provider: LiteLLMProvider) -> None:
    completion = ask(provider)
    assert json.loads(completion.text) == REPLY
    assert not completion.truncated
    (call,) = model.calls
    assert [message["role"] for message in call.body["messages"]] == ["system", "user"]
    assert call.system == "You are constant."
    assert call.payload == {"task": "emotion", "message": SECRET}
    assert "ã" in json.dumps({"x": "ã"}, ensure_ascii=False)
    assert SECRET in call.body["messages"][1]["content"]


def test_usage_and_an_unknown_price(model: ScriptedModel, provider: LiteLLMProvider) -> None:
    usage = ask(provider).usage
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert usage.cost_usd is None


def test_the_price_of_a_reply_is_the_lists_and_no_logging_thread_works_on_it(model: ScriptedModel) -> None:
    from worker.llm.litellm_client import litellm_module

    usage = ask(LiteLLMProvider("openai/gpt-4o-mini")).usage
    listed = litellm_module().cost_per_token(
        model="gpt-4o-mini", prompt_tokens=usage.input_tokens, completion_tokens=usage.output_tokens
    )
    assert usage.cost_usd == pytest.approx(sum(listed))
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("litellm-logging")]


def test_a_known_price_counts_cached_tokens_as_cached() -> None:
    from worker.llm.litellm_client import litellm_module
    from worker.llm.litellm_provider import _usage

    litellm = litellm_module()

    def response(cached: int) -> Any:
        details = {"cached_tokens": cached}
        usage = litellm.Usage(
            prompt_tokens=2000, completion_tokens=10, total_tokens=2010, prompt_tokens_details=details
        )
        return litellm.ModelResponse(model="gpt-4o-mini", usage=usage)

    plain, cached = _usage(response(0), "gpt-4o-mini"), _usage(response(1500), "gpt-4o-mini")
    assert plain.cost_usd is not None
    assert cached.cost_usd is not None
    assert 0 < cached.cost_usd < plain.cost_usd
    assert (cached.input_tokens, cached.cached_input_tokens) == (2000, 1500)


@pytest.mark.parametrize(
    ("fault", "cause", "detail"),
    [
        (Fault.status(400), Cause.INVALID_REQUEST, "http_400"),
        (Fault.status(400, code="context_length_exceeded"), Cause.INVALID_REQUEST, "http_400"),
        (Fault.status(400, code="content_policy_violation"), Cause.REFUSED, "http_400"),
        (Fault.status(401), Cause.MODEL_UNAVAILABLE, "http_401"),
        (Fault.status(402), Cause.MODEL_UNAVAILABLE, "http_402"),
        (Fault.status(403), Cause.MODEL_UNAVAILABLE, "http_403"),
        (Fault.status(404, code="model_not_found"), Cause.MODEL_UNAVAILABLE, "http_404"),
        (Fault.status(408), Cause.TIMEOUT, "http_408"),
        (Fault.status(413), Cause.INVALID_REQUEST, "http_413"),
        (Fault.status(422), Cause.INVALID_REQUEST, "http_400"),
        (Fault.status(429), Cause.RATE_LIMITED, "http_429"),
        (Fault.status(429, code="insufficient_quota"), Cause.MODEL_UNAVAILABLE, "http_429"),
        (Fault.status(500), Cause.PROVIDER_ERROR, "http_500"),
        (Fault.status(502), Cause.PROVIDER_ERROR, "http_502"),
        (Fault.status(503), Cause.PROVIDER_ERROR, "http_503"),
        (Fault.status(529), Cause.PROVIDER_ERROR, "http_529"),
        (Fault.disconnect(), Cause.PROVIDER_ERROR, "http_500"),
        (Fault.refusal(), Cause.REFUSED, "refusal"),
        (Fault.content_filter(), Cause.REFUSED, "content_filter"),
        (Fault.broken("  "), Cause.BAD_REPLY, "empty"),
    ],
)
def test_every_failure_has_its_cause_and_is_one_call(
    model: ScriptedModel, provider: LiteLLMProvider, fault: Fault, cause: Cause, detail: str
) -> None:
    if fault.kind == "status":
        fault = Fault.status(fault.status_code, code=fault.code, text=f"echo: {SECRET}")
    model.queue("emotion", fault)
    error = failure(provider)
    assert (error.cause, error.detail) == (cause, detail)
    assert model.count() == 1


def test_retry_after_in_seconds_and_as_a_date(model: ScriptedModel, provider: LiteLLMProvider) -> None:
    date = email.utils.formatdate(time.time() + 90, usegmt=True)
    model.queue("emotion", Fault.status(429, retry_after=7), Fault.status(429, retry_after=date))
    model.queue("emotion", Fault.status(503, retry_after=3), Fault.status(429, retry_after="soon"))
    model.queue("emotion", Fault.status(429, retry_after="Wed, 21 Oct 2199 07:28:00 GMT"))
    assert failure(provider).retry_after == 7
    assert 80 < (failure(provider).retry_after or 0) <= 91
    assert failure(provider).retry_after == 3
    assert failure(provider).retry_after is None
    assert failure(provider).retry_after == 3600


def test_a_server_that_is_not_there(provider: LiteLLMProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert failure(provider).cause is Cause.PROVIDER_ERROR


def test_a_name_that_is_no_models_and_a_missing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure(LiteLLMProvider("no-such-model")).cause is Cause.MODEL_UNAVAILABLE
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert failure(LiteLLMProvider("anthropic/claude-sonnet-4-5")).cause is Cause.MODEL_UNAVAILABLE


@pytest.mark.parametrize("fault", [Fault.timeout(30), Fault.drip("x" * 500, interval=0.02)])
def test_the_deadline_is_a_total_one(model: ScriptedModel, provider: LiteLLMProvider, fault: Fault) -> None:
    ask(provider)  # so that the import is not in the time
    model.queue("emotion", fault)  # it answers in the end, to whoever waits for it
    assert failure(provider, timeout=0.5).cause is Cause.TIMEOUT


def test_a_dripping_call_that_was_given_up_ends_by_itself(model: ScriptedModel, provider: LiteLLMProvider) -> None:
    from worker.llm import deadline

    ask(provider)
    before = deadline._abandoned
    model.queue("emotion", Fault.drip("x" * 5000, interval=0.02))
    failure(provider, timeout=0.3)
    for _ in range(200):
        if deadline._abandoned <= before:
            break
        time.sleep(0.01)
    assert deadline._abandoned <= before


def test_a_cut_off_reply_is_marked(model: ScriptedModel, provider: LiteLLMProvider) -> None:
    model.queue("emotion", Fault.length('{"emotion": {"prim'), Fault.length(""))
    completion = ask(provider)
    assert completion.truncated
    assert completion.text == '{"emotion": {"prim'
    assert ask(provider).truncated


def test_chr_02_nul_and_lone_surrogates_are_cleaned_both_ways(model: ScriptedModel, provider: LiteLLMProvider) -> None:
    model.on("emotion", '{"emotion": "x\x00"}')
    text = provider.complete("emotion", "s\x00", {"message": "olha \ud83d <|endoftext|>\x00 ok"}).text
    assert text == '{"emotion": "x"}'
    assert model.calls[0].payload["message"] == "olha  <|endoftext|> ok"
    assert model.calls[0].system == "s"


def test_the_strongest_format_that_the_model_takes(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = SCHEMAS["emotion"]
    ask(LiteLLMProvider("openai/scripted"), schema=schema)
    ask(LiteLLMProvider("openai/gpt-4o-mini"), schema=schema)
    ask(LiteLLMProvider("openai/gpt-4o-mini"))
    formats: list[Any] = [call.body.get("response_format") for call in model.calls]
    assert formats[0] == {"type": "json_object"}
    assert formats[1]["type"] == "json_schema"
    assert formats[1]["json_schema"]["schema"] == schema
    assert formats[1]["json_schema"]["strict"] is True
    assert formats[2] is None


def test_a_server_that_dislikes_the_format_is_asked_plainly_ever_after(model: ScriptedModel) -> None:
    provider = LiteLLMProvider("openai/scripted")
    model.queue("emotion", Fault.status(400, text="'response_format.type' must be 'json_schema' or 'text'"))
    ask(provider, schema=SCHEMAS["emotion"])
    ask(provider, schema=SCHEMAS["emotion"])
    assert [("response_format" in call.body) for call in model.calls] == [True, False, False]


def test_a_model_for_each_group_of_tasks(model: ScriptedModel) -> None:
    env = {**model.environment(), "MANDUA_LLM_MODEL_RECONCILIATION": "openai/other", "MANDUA_LLM_MODEL_JOBS": " "}
    provider = llm_from_environment(env)
    assert isinstance(provider, LiteLLMProvider)
    assert provider.model_for("reconciliation") == "openai/other"
    assert provider.model_for("informed_extraction") == "openai/scripted"
    assert provider.model_for("entity_profile") == "openai/scripted"
    model.on("reconciliation", {"decisions": []})
    provider.complete("reconciliation", "s", {})
    assert model.calls[0].body["model"] == "other"


def test_without_a_model_the_offline_reader_answers_and_half_a_configuration_is_refused() -> None:
    from worker.llm.offline import OfflineProvider

    assert isinstance(llm_from_environment({"MANDUA_LLM_MODEL": " "}), OfflineProvider)
    with pytest.raises(ValueError, match="MANDUA_LLM_MODEL is needed"):
        llm_from_environment({"MANDUA_LLM_MODEL_JOBS": "openai/x"})


def test_what_is_not_scripted_is_answered_by_the_offline_reader(
    model: ScriptedModel, provider: LiteLLMProvider
) -> None:
    payload: dict[str, Any] = {
        "message": "I live in Olinda.",
        "speaker": "Bruna",
        "message_date": None,
        "recent_messages": [],
        "known": [],
    }
    facts = json.loads(provider.complete("informed_extraction", "s", payload).text)["facts"]
    assert any("Olinda" in fact["text"] for fact in facts)
    assert model.errors == []


def test_many_threads_at_once(model: ScriptedModel, provider: LiteLLMProvider) -> None:
    model.on("emotion", lambda payload: {"echo": payload["message"]})
    with ThreadPoolExecutor(16) as pool:
        replies = pool.map(lambda n: provider.complete("emotion", "s", {"message": n}).text, range(64))
    assert [json.loads(text)["echo"] for text in replies] == list(range(64))


def test_a_held_call_waits_for_its_release(model: ScriptedModel, provider: LiteLLMProvider) -> None:
    results: list[str] = []
    with model.hold("emotion") as hold:
        thread = threading.Thread(target=lambda: results.append(ask(provider).text))
        thread.start()
        hold.wait_arrived(10)
        assert results == []
    thread.join(10)
    assert len(results) == 1


def test_no_text_is_logged(model: ScriptedModel, provider: LiteLLMProvider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model.queue("emotion", Fault.status(400, text=SECRET))
    failure(provider)
    ask(provider)
    assert SECRET not in caplog.text
