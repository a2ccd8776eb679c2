"""PRV-02: a secret is stored nowhere but in the event, and with MANDUA_REDACT_EVENTS=1 not even there."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from producer.accepting import accept, envelope
from producer.contract import MemoryConfig, WriteRequest
from tests.cases.conftest import Memory
from tests.cases.replies import entity, extraction, fact
from worker.db import engine

SECRETS = [
    ("minha chave é sk-test-ZZ99ZZ99ZZ99ZZ99, guarda aí", "ZZ99ZZ99"),
    ("my password for Netflix is hunter2!", "hunter2"),
    ("a senha do wifi é banana42 e moro em Recife", "banana42"),
    ("我的密码是abc123456，别忘了", "abc123456"),
    ("カード番号は4111111111111111です", "4111111111111111"),
    ("use ghp_abcdefghijklmnop0123456789ABCDEFGHIJ please", "ghp_abcdefghijklmnop"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA7"),
]


def repeating(memory: Memory) -> None:
    """A model that puts whatever it is sent wherever it can."""
    memory.model.on(
        "informed_extraction",
        lambda payload: extraction(
            [fact("Bruna", f"Bruna disse: {payload['message']}", value=payload["message"], attribute_key="user.note")],
            [entity("Bruna")],
            updated_profiles=[{"name": "Bruna", "profile_text": f"Said: {payload['message']}"}],
        ),
    )


@pytest.mark.parametrize(("said", "secret"), SECRETS)
def test_prv_02_a_secret_stays_in_the_event(
    memory: Memory, said: str, secret: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    repeating(memory)
    with caplog.at_level(logging.DEBUG):
        memory.write(said, verbose=True)
    assert any("[redacted: " in text for text in memory.texts(0))
    assert secret not in memory.everything(but=("memory_events",))
    assert secret in memory.everything()
    assert secret not in str([(call.task, call.payload, call.system) for call in memory.model.calls])
    assert secret not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize(("said", "secret"), SECRETS)
def test_prv_02_and_not_even_there_where_events_are_redacted(
    memory: Memory, said: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANDUA_REDACT_EVENTS", "1")
    repeating(memory)
    agent_before = memory.everything().count(secret)
    memory.write(said, verbose=True, recent_messages=[said], message_id="m")
    assert memory.everything().count(secret) == agent_before
    (event,) = memory.rows("SELECT message FROM memory_events WHERE agent_id = :agent")
    assert "[redacted: " in event["message"]


def accepted(agent: str, said: str) -> str:
    """What becomes of a message that a producer commits itself (accept="database")."""
    request = WriteRequest.parse(agent_id=agent, message=said, speaker_name="Bruna", message_id="m")
    with engine().connect() as connection:
        driver: Any = connection.connection.driver_connection
        (done,) = accept(driver, [envelope(request)])
        connection.connection.commit()
    return done.outcome


def test_prv_02_a_producer_that_commits_itself_masks_too(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANDUA_REDACT_EVENTS", "1")
    assert accepted(memory.agent, "a senha é banana43") == "accepted"
    assert "banana43" not in memory.everything()


@pytest.mark.parametrize("order", [("1", "1"), ("1", "0"), ("0", "1"), ("0", "0")])
def test_prv_02_a_redelivery_is_a_duplicate_whenever_redaction_was_switched(
    memory: Memory, order: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = []
    for setting in order:
        monkeypatch.setenv("MANDUA_REDACT_EVENTS", setting)
        outcomes.append(accepted(memory.agent, "a senha do wifi é banana44"))
    assert outcomes == ["accepted", "duplicate"]
    assert accepted(memory.agent, "moro em Recife") == "conflict"


def test_prv_02_in_process_too(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.orm import Session

    from worker.models_in_use import embedding_model, language_model
    from worker.write.pipeline import run_write_pipeline

    monkeypatch.setenv("MANDUA_REDACT_EVENTS", "1")
    repeating(memory)
    with Session(engine()) as session:
        run_write_pipeline(
            session, memory.agent, "a senha é banana45", language_model(), embedding_model(), MemoryConfig(), "Bruna"
        )
        session.commit()
    assert "banana45" not in memory.everything()
    assert any("[redacted: password]" in text for text in memory.texts(0))
