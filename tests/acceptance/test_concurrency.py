"""Promise 3: agents side by side, an agent's messages one after another."""

from __future__ import annotations

import threading

from producer import WriteRequest
from tests.acceptance.stack import Stack, lives_in


def test_twenty_concurrent_writes_that_name_one_new_person_make_one_person(shared: Stack):
    shared.model.on("informed_extraction", lambda _: {
        "entities": [{"name": "Marta Nunes", "type": "person", "aliases": []}],
        "facts": [{"subject": "Marta Nunes", "text": "Marta Nunes is a vet", "action": "NEW",
                   "confidence_level": "explicit_statement", "importance_category": "stable_preference"}],
        "relations": [], "updated_profiles": [], "emotion": None,
    })  # fmt: skip
    results = []
    with shared.client() as client:

        def write(number: int) -> None:
            results.append(client.write("crowd", f"Marta Nunes is a vet, said no. {number}", "Rafael", timeout=60))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 20
    assert {result.status for result in results} == {"ok"}
    assert sorted(len(result.facts_added) for result in results) == [0] * 19 + [1]
    assert sum(len(result.facts_unchanged) for result in results) == 19
    assert shared.facts("crowd") == ["Marta Nunes is a vet"]
    people = shared.rows("SELECT canonical_key FROM memory_entities WHERE agent_id = 'crowd' ORDER BY 1")
    assert [row["canonical_key"] for row in people] == ["person:marta_nunes", "person:rafael"]
    assert shared.rows("SELECT count(*) AS n FROM memory_events WHERE agent_id = 'crowd'")[0]["n"] == 20


def test_two_agents_run_in_parallel(shared: Stack):
    """One agent's extraction is held; the other one's message goes through meanwhile."""
    shared.model.on("informed_extraction", lives_in)
    with shared.client() as client:
        with shared.model.hold("informed_extraction", lambda payload: payload["speaker"] == "Ana") as held:
            slow = client.enqueue("slow", "I live in Natal", "Ana")
            held.wait_arrived()
            assert client.write("quick", "I live in Recife", "Bia").status == "ok"
            assert client.result(slow.event_id) is None
        assert slow.result(30).status == "ok"


def test_an_agents_messages_are_applied_in_accepted_order_though_extraction_runs_ahead(shared: Stack):
    shared.model.on("informed_extraction", lives_in)
    places = [f"City{number}" for number in range(12)]
    with shared.client("database") as client:
        handles = client.enqueue_many(
            [WriteRequest(agent_id="ordered", message=f"I live in {place}", speaker_name="Rafael") for place in places],
            bulk=False,
        )
        shared.results([handle.event_id for handle in handles])
    applied = shared.rows(
        "SELECT e.message FROM runs r JOIN memory_events e ON e.id = r.event_id WHERE r.agent_id = 'ordered'"
        " ORDER BY r.finished_at"
    )
    assert [row["message"] for row in applied] == [f"I live in {place}" for place in places]
    ahead = shared.rows("SELECT count(*) AS n FROM runs WHERE agent_id = 'ordered' AND ahead_sent_at IS NOT NULL")
    assert ahead[0]["n"] > 0
