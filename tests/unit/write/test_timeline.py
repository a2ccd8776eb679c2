"""Where a fact belongs in world time (behaviour: 8, "Time"), without a database."""

from __future__ import annotations

import itertools
import uuid
from datetime import UTC, datetime, timedelta

from worker.write.timeline import Said, Timeline, Version

START = datetime(2020, 1, 1, tzinfo=UTC)
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def day(number: int | None) -> datetime | None:
    return None if number is None else START + timedelta(days=number)


def version(words: str, at: int | None, *, until: int | None = None, new: bool = False) -> Version:
    event = uuid.uuid4()
    return Version(
        id=uuid.uuid4(),
        entity_key="person:ana",
        text=words,
        text_hash=words.encode(),
        confidence=0.9,
        said=[Said(event, day(at))],
        source_event_id=event,
        valid_from=day(at),
        valid_to=day(until),
        invalidated_at=NOW if until is not None else None,
        planned=0 if new else None,
    )


def timeline(at: int | None, *stored: Version) -> Timeline:
    made = Timeline(uuid.uuid4(), day(at), NOW)
    made.load(stored)
    return made


def chain(*versions: Version) -> None:
    for before, after in itertools.pairwise(versions):
        after.supersedes = before.id


def test_an_update_closes_what_was_before_it() -> None:
    old, new = version("Natal", 1), version("Lima", 5, new=True)
    outcome = timeline(5, old).update(new, old)
    assert (outcome.effect, outcome.replaced) == ("updated", old)
    assert (old.valid_to, old.invalidated_at) == (day(5), NOW)
    assert (new.supersedes, new.valid_to) == (old.id, None)


def test_a_late_update_ends_where_the_next_version_begins() -> None:
    later, new = version("Lima", 5), version("Natal", 1, new=True)
    outcome = timeline(1, later).update(new, later)
    assert outcome.effect == "added"
    assert (new.valid_to, new.invalidated_at, later.supersedes) == (day(5), NOW, new.id)
    assert (later.valid_from, later.valid_to) == (day(5), None)


def test_whichever_version_is_cited_the_place_in_the_chain_is_the_same() -> None:
    for cited in range(3):
        first, second, third = version("A", 1, until=5), version("B", 5, until=9), version("C", 9)
        chain(first, second, third)
        new = version("N", 7, new=True)
        timeline(7, first, second, third).update(new, (first, second, third)[cited])
        assert (second.valid_to, new.valid_to, new.supersedes, third.supersedes) == (day(7), day(9), second.id, new.id)
        assert first.valid_to == day(5)


def test_a_chain_that_had_ended_is_left_alone() -> None:
    old, new = version("A", 1, until=3), version("B", 5, new=True)
    assert timeline(5, old).update(new, old).effect == "added"
    assert (new.supersedes, old.valid_to) == (None, day(3))


def test_what_was_said_again_later_goes_on_as_a_version_of_its_own() -> None:
    old, new = version("A", 1), version("B", 5, new=True)
    again = Said(uuid.uuid4(), day(9))
    old.said.append(again)
    line = timeline(5, old)
    line.update(new, old)
    (rest,) = [one for one in line.versions.values() if one.copy_of == old.id]
    assert (old.valid_to, new.valid_to, rest.valid_from, rest.valid_to) == (day(5), day(9), day(9), None)
    assert (new.supersedes, rest.supersedes, rest.source_event_id) == (old.id, new.id, again.event_id)


def test_an_older_confirmation_moves_valid_from_back_never_the_last_one() -> None:
    old = version("A", 5)
    old.last_confirmed_at = day(8)
    line = timeline(2, old)
    assert line.confirm(version("A", 2, new=True), old).effect == "unchanged"
    assert (old.valid_from, old.last_confirmed_at, old.confirmations) == (day(2), day(8), 1)


def test_an_older_confirmation_takes_the_time_from_the_version_before() -> None:
    first, second = version("A", 1, until=9), version("B", 9)
    chain(first, second)
    timeline(5, first, second).confirm(version("B", 5, new=True), second)
    assert (first.valid_to, second.valid_from) == (day(5), day(5))


def test_a_retraction_closes_nothing_that_began_after_it() -> None:
    later = version("A", 9)
    outcome = timeline(5, later).retract(version("not A", 5, new=True), later)
    assert (outcome.effect, outcome.replaced, later.valid_to) == ("deleted", None, None)
    assert (outcome.version.kind, outcome.version.valid_to) == ("retraction", day(5))


def test_a_stored_retraction_closes_a_late_fact() -> None:
    ending = version("not A", 5, until=5)
    ending.kind = "retraction"
    new = version("A", 1, new=True)
    assert timeline(1, ending).add(new, ending.id).effect == "added"
    assert new.valid_to == day(5)
    early = version("A", 7, new=True)
    timeline(7, ending).add(early, ending.id)
    assert early.valid_to is None


def test_an_unknown_time_is_older_than_any_other_and_closes_nothing_dated() -> None:
    dated, new = version("A", 5), version("B", None, new=True)
    timeline(None, dated).update(new, dated)
    assert (new.valid_from, new.valid_to, dated.valid_to) == (None, day(5), None)
    line = timeline(None, dated)
    line.retract(version("not A", None, new=True), dated)
    assert dated.valid_to is None
    line.confirm(version("A", None, new=True), dated)
    assert (dated.valid_from, dated.confirmations) == (day(5), 1)


def test_the_same_text_is_active_once() -> None:
    old = version("A", 1)
    assert timeline(5, old).add(version("A", 5, new=True)).version is old


def test_nothing_begins_before_it_ends_within_one_message() -> None:
    first, second = version("A", 5, new=True), version("not A", 5, new=True)
    line = timeline(5)
    line.add(first)
    line.update(second, first)
    assert (first.valid_from, first.valid_to, second.valid_to) == (day(5), day(5), None)
