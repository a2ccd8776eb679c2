"""The model on paper holds together: it decides nothing, so what is tested are its laws, not its figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.bench.capacity import Assumed, Measured, _played, needed, told

MEASURED, ASSUMED = Measured(), Assumed(agents=100_000)


def test_ten_times_the_messages_need_ten_times_of_what_is_counted() -> None:
    one, ten = (needed(MEASURED, replace(ASSUMED, messages_a_day=many)) for many in (1e6, 1e7))
    for name in ("peak_rate", "worker_cores", "database_cores", "gib_a_year", "broker_commands", "dollars_a_day"):
        assert getattr(ten, name) == pytest.approx(10 * getattr(one, name)), name
    assert ten.days_to_partition_at == pytest.approx(one.days_to_partition_at / 10)
    assert ten.partitions > one.partitions >= 1


def test_the_slots_that_are_busy_at_the_peak_are_what_arrives_times_how_long_it_takes() -> None:
    need = needed(MEASURED, ASSUMED)
    held = MEASURED.model_calls * ASSUMED.model_seconds + MEASURED.worker_cpu + MEASURED.database_cpu
    assert need.minute.messages == pytest.approx(need.peak_rate * 60, rel=0.05)
    assert 0.8 * need.peak_rate * held < need.minute.busy_slots <= need.worker_processes * ASSUMED.slots
    assert held * 0.8 < need.minute.median < need.minute.p95


def test_an_agent_s_messages_go_one_after_another_and_slots_are_never_exceeded() -> None:
    one_agent = _played([0.0, 0.1, 0.2], [7, 7, 7], [1.0, 1.0, 1.0], slots=3)
    assert (one_agent.busy_slots, round(one_agent.p95, 1)) == (1, 2.8)
    three = _played([0.0, 0.1, 0.2], [1, 2, 3], [1.0, 1.0, 1.0], slots=2)
    assert (three.busy_slots, round(three.p95, 1)) == (2, 1.8)


def test_with_few_agents_that_say_much_an_index_for_the_large_ones_saves_nothing() -> None:
    alike = replace(ASSUMED, agents=1_000, spread=0.1)
    need = needed(MEASURED, alike)
    assert need.agents_beyond_exact == 1
    assert need.nearest_gib_of_large_agents == pytest.approx(need.nearest_gib_a_year)
    assert needed(MEASURED, replace(ASSUMED, messages_a_day=1e5, spread=0.1)).nearest_gib_of_large_agents == 0


def test_the_same_seed_says_the_same_and_it_can_be_printed() -> None:
    need = needed(MEASURED, ASSUMED)
    assert need == needed(MEASURED, ASSUMED)
    assert np.isfinite(need.fullest_partition)
    assert "partitions" in told(need, MEASURED, ASSUMED)
