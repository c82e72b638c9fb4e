"""Tests of observations of a simulated group."""

import numpy as np
import pytest
from unit.autoscaler.simulator.worlds import Story

from autoscaler.simulator.settings import ServiceSettings
from bench.scenario import load_scenario
from bench.simulation.run import run_scenario
from contracts.journal import TickRecord
from contracts.rebalance_protocol import RebalanceProtocol

SECONDS = [(1000 * second, k % 2) for second in range(4) for k in range(10)]
"""A burst of ten events at the start of each second."""


def test_lag_is_produced_minus_committed_events():
    story = Story(SECONDS).at(45)
    assert story.lags() == [3, 3], "four are finished, the fifth is in service"


def test_arrivals_are_unknown_when_nothing_has_arrived_since_the_call_before_the_last():
    story = Story(SECONDS)
    found = [story.at(at).simulation.group.arrivals() for at in (100, 200, 300, 1100)]
    assert [one and int(one.counts.sum()) for one in found] == [10, 10, None, 10]


@pytest.mark.parametrize("rebalance_protocol", [RebalanceProtocol.INCREMENTAL, RebalanceProtocol.SHARE])
def test_replicas_report_late_events_since_the_previous_observation(rebalance_protocol):
    events = [(1000 * second, k % 2) for second in range(3) for k in range(20)]
    story = Story(events, latency_target_s=0.125, rebalance_protocol=rebalance_protocol)
    assert [one.late for one in story.at(100).observe().replicas] == [0], "ten are finished, in time"
    assert [one.late for one in story.at(180).observe().replicas] == [6], "those finished at 130 to 180"
    assert [one.late for one in story.at(1100).observe().replicas] == [2]
    story.plan([0, 1] if rebalance_protocol is RebalanceProtocol.INCREMENTAL else None, replicas=[0, 1])
    assert sum(one.late for one in story.at(2900).observe().replicas) > 0
    assert [one.late for one in story.at(2950).observe().replicas] == [0, 0]


@pytest.mark.parametrize("rebalance_protocol", [RebalanceProtocol.INCREMENTAL, RebalanceProtocol.SHARE])
def test_removed_replicas_report_their_late_events(rebalance_protocol):
    story = Story([(0, k % 2) for k in range(60)], latency_target_s=0.125, rebalance_protocol=rebalance_protocol)
    story.at(1).plan([0, 1] if rebalance_protocol is RebalanceProtocol.INCREMENTAL else None, replicas=[0, 1])
    before = story.at(100).observe()
    assert not before.late_of_removed_replicas
    story.plan([0, 0] if rebalance_protocol is RebalanceProtocol.INCREMENTAL else None, replicas=[0])
    seen = [story.at(at).observe() for at in (140, 900, 1000)]
    assert {name for one in seen for name in one.late_of_removed_replicas} == {"payment-1"}
    late = sum(one.replicas[0].late + sum(one.late_of_removed_replicas.values()) for one in (before, *seen))
    story.served()
    assert late == np.count_nonzero(story.simulation.outcomes.events().done_us > 125_000) > 0
    assert not seen[-1].late_of_removed_replicas, "it is gone and has reported everything"


def test_a_delayed_observation_has_old_offsets_and_present_members():
    story = Story(SECONDS, observation_delay_s=0.07)
    for tick_ms in (100, 1100):
        story.simulation.schedule_observation(tick_ms * 1000)
    early = story.at(100).observe()
    assert [(one.arrival_rate, one.lag) for one in early.partitions] == [(5, 3), (5, 4)], "as at 30"
    story.plan([0, 1])
    later = story.at(1100).observe()
    assert later.replica_names == ("payment-0", "payment-1")
    assert [one.lag for one in later.partitions] == [2, 2], "as at 1030, with two replicas"


def test_the_rate_of_a_replica_that_becomes_slow_is_learned():
    service = ServiceSettings(service_time_s=0.001, slow_replicas=(1,), slow_factor=2.0, slow_from_s=4, slow_until_s=10)
    story = Story([(2 * k, k % 2) for k in range(5000)], service=service).plan([0, 1])
    seen = [[one.service_rate for one in story.at(1000 * second).observe().replicas] for second in range(1, 10)]
    assert seen[3] == [None, None], "equal until 4 s"
    assert seen[8] == [None, pytest.approx(500, rel=0.3)], "normally 1,000; older events count less and less"


def test_the_journal_has_the_age_of_each_oldest_waiting_event():
    """One replica is overloaded. Within an interval ages are exact to a slot of 0.1 s, before to an interval."""
    scenario = load_scenario("steady-150", {"policy": "static-1", "duration_s": 12, "service_time_s": 0.008})
    run, _ = run_scenario(scenario)
    events, seen = run.events, list[float]()
    for tick in (one for one in run.entries() if isinstance(one, TickRecord)):
        waits = (events.intended_us < tick.at_us) & (events.done_us > tick.at_us)
        for load in tick.partitions:
            times_us = events.intended_us[waits & (events.partition == load.partition)]
            age_s = (tick.at_us - times_us.min()) / 1e6 if len(times_us) else 0.0
            assert load.oldest_s == pytest.approx(age_s, abs=0.101 if age_s < 1 else 1.001)
            seen.append(load.oldest_s)
    assert max(seen) > 1
