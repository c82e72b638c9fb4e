"""Tests of complete runs: controller, policy and simulated group, and their results."""

import itertools

import msgspec
import numpy as np
import pytest
from unit.autoscaler.builders import Wants

from autoscaler.model import Action, Decision, Plan
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import Change, SimulationSettings
from bench.simulation.sent_events import replica_minutes
from contracts.journal import JournalEntry
from report.history import Journal, paid_spans
from report.history import replica_minutes as minutes_of_spans

EPOCH_US = 1_700_000_000_000_000


class Scripted:
    """A policy with a script: second → replica ordinal by partition."""

    name = "scripted"

    def __init__(self, plans):
        self.plans = plans

    def decide(self, observation):
        owners = self.plans.get(int(observation.at_s))
        if owners is None:
            return Decision(Action.NO_CHANGE, Plan(observation.replica_names, observation.assignment), "as written")
        count = len(set(owners))
        now = observation.requested_replicas
        action = Action.UP if count > now else Action.DOWN if count < now else Action.REASSIGN
        named = {partition: f"payment-{owner}" for partition, owner in enumerate(owners)}
        return Decision(action, Plan(tuple(sorted(set(named.values()))), named), f"second {int(observation.at_s)}")


def bursts(per_second, *, partitions=5):
    """Return a workload. per_second: events at the start of each second, to partitions round robin."""
    second = np.repeat(np.arange(len(per_second)), per_second)
    places = np.arange(len(second)) % partitions
    arrivals = Arrivals(second.astype(np.int64) * 1_000_000, places.astype(np.int32))
    return Workload.whole(arrivals, partitions=partitions, duration_s=len(per_second))


def test_replica_minutes_equal_those_computed_by_hand():
    plans = {1: [0, 1, 0, 1, 0], 3: [0] * 5}
    run = simulate(bursts([60, 60, 60, 60, 60]), Scripted(plans), SimulationSettings(tick_offset_s=0.102))
    # the one that goes finishes the event that it began at 3.1
    assert run.requested == ((0, 1), (1_102_000, 2), (3_105_000, 1))
    assert replica_minutes(run.requested, 0, 5) == pytest.approx((1.102 + 2 * 2.003 + 1.895) / 60)
    spans = paid_spans(Journal(run.entries(EPOCH_US)).changes)
    assert minutes_of_spans(spans, EPOCH_US, EPOCH_US + 5_000_000) == replica_minutes(run.requested, 0, 5)
    assert run.changes == (Change(1.102, Action.UP, 2, 2), Change(3.102, Action.DOWN, 1, 2))


def test_the_journal_has_the_records_of_a_live_run():
    settings = SimulationSettings(observation_loss=0.4, startup_s=0.5)
    run = simulate(bursts([60] * 6), Scripted({1: [0, 1, 0, 1, 0], 4: [0] * 5}), settings)
    entries = list(run.entries(EPOCH_US))
    assert msgspec.json.decode(msgspec.json.encode(entries), type=list[JournalEntry]) == entries
    assert [one.at_us for one in entries] == sorted(one.at_us for one in entries)
    ticks = Journal(entries).ticks
    assert [one.tick for one in ticks] == [1, 2, 3, 4, 5, 6]
    assert [one.at_us - EPOCH_US for one in ticks] == [k * 1_000_000 + 100_000 for k in range(6)]
    lost = [one for one in ticks if one.missing]
    assert lost
    assert all(one.action == "no-change" and not one.partitions for one in lost)
    seen = next(one for one in ticks if not one.missing)
    assert sum(load.arrival_rate for load in seen.partitions) == 60
    assert {load.owner for load in seen.partitions} <= {"payment-0", "payment-1"}
    plans = Journal(entries).plans
    assert [one.epoch for one in plans] == list(range(1, len(plans) + 1))
    assert plans[0].action == "start"
    assert max(one.epoch for one in ticks) == len(plans)


def test_a_workload_in_chunks_gives_the_same_run():
    whole = bursts([120, 30, 200, 80])
    (all_of_it,) = whole.chunks
    cuts = [0, 120, 350, 430]
    chunks = [Arrivals(all_of_it.intended_us[a:b], all_of_it.partition[a:b]) for a, b in itertools.pairwise(cuts)]
    parts = Workload(5, 4.0, [Arrivals(np.empty(0, np.int64), np.empty(0, np.int32)), *chunks])
    one, other = (simulate(each, Wants(2), SimulationSettings()) for each in (whole, parts))
    assert one.events.done_us.tolist() == other.events.done_us.tolist()
    assert list(one.entries()) == list(other.entries())
