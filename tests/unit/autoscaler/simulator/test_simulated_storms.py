"""Properties of runs with random, frequent plans: no event is lost, overtaken or served by an unpaid replica."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.autoscaler.simulator.worlds import decision

from autoscaler.model import Action, Decision
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import Failure, RebalanceSettings, SimulationSettings
from contracts.rebalance_protocol import RebalanceProtocol

PARTITIONS = 3
DURATION_S = 4.0


class Storm:
    """A policy with a random plan, or none, at each tick. Every plan replaces dead replicas."""

    name = "storm"

    def __init__(self, plans):
        self.plans = iter(plans)
        self.last = decision((0,) * PARTITIONS)

    def decide(self, observation):
        wanted = next(self.plans, None)
        if wanted is None and observation.replicas:
            return Decision(Action.NO_CHANGE, self.last.plan, "calm")
        if wanted is not None:
            owners, counts_only = wanted
            self.last = decision(None if counts_only else owners, replicas=owners, action=Action.UP)
        return self.last


plan = st.none() | st.tuples(st.tuples(*[st.integers(0, 3)] * PARTITIONS), st.booleans())
events = st.lists(st.tuples(st.integers(0, 3_999_999), st.integers(0, PARTITIONS - 1)), max_size=150).map(sorted)
simulations = st.builds(
    SimulationSettings,
    rebalance=st.just(RebalanceSettings()),
    startup_s=st.sampled_from([0.0, 0.3, None]),
    decision_interval_s=st.sampled_from([0.05, 0.25]),
    initial_replicas=st.integers(1, 3),
    failures=st.lists(st.builds(Failure, st.floats(0, 3.9), st.booleans()), max_size=2).map(tuple),
    session_s=st.just(0.5),
    observation_loss=st.sampled_from([0.0, 0.3]),
    observation_delay_s=st.sampled_from([0.0, 0.33]),
    seed=st.integers(0, 5),
)
rebalance_settings = st.builds(
    dict,
    pause_s=st.sampled_from([0.0, 0.05, 0.4]),
    rebalance_time_s=st.sampled_from([0.0, 0.1, 1.0]),
    heartbeat_s=st.sampled_from([0.0, 0.5]),
)


def run_of(rebalance_protocol, events, plans, simulation, how):
    times = np.array([at for at, _ in events], np.int64)
    places = np.array([partition for _, partition in events], np.int32)
    workload = Workload.whole(Arrivals(times, places), partitions=PARTITIONS, duration_s=DURATION_S)
    simulation = replace(simulation, rebalance=RebalanceSettings(rebalance_protocol=rebalance_protocol, **how))
    return simulate(workload, Storm(plans), simulation)


@pytest.mark.parametrize("rebalance_protocol", RebalanceProtocol)
@settings(max_examples=40, deadline=None)
@given(events=events, plans=st.lists(plan, max_size=40), simulation=simulations, how=rebalance_settings)
def test_every_event_is_served_once_in_order_by_a_paid_replica(rebalance_protocol, events, plans, simulation, how):
    run = run_of(rebalance_protocol, events, plans, simulation, how)
    served = run.events
    assert len(run.latency_us) == len(served.done_us) == len(events)
    assert (served.started_us >= served.intended_us).all()
    assert (served.done_us - served.started_us == 5000).all()
    for replica in np.unique(served.replica):
        busy = np.sort(served.started_us[served.replica == replica])
        assert (np.diff(busy) >= 5000).all(), "one event at a time"
    assert all(count >= 0 for _, count in run.requested)
    assert [at for at, _ in run.requested] == sorted({at for at, _ in run.requested})
    for number, (from_us, until_us) in enumerate(lives(run)):
        own = served.replica == number
        assert (served.started_us[own] >= from_us).all()
        assert (served.done_us[own] <= until_us).all(), "only paid replicas serve"
    for partition in range(PARTITIONS) if rebalance_protocol is not RebalanceProtocol.SHARE else ():
        own = served.partition == partition
        assert (served.started_us[own][1:] >= served.done_us[own][:-1]).all(), "the order of a partition is kept"
    assert sorted(entry.at_us for entry in run.entries()) == [entry.at_us for entry in run.entries()]


def lives(run):
    """Return (from, until) of each replica by number, µs."""
    spans, open_ = [], {}
    for change in run.replica_changes:
        if change.change.value == "requested":
            open_[change.replica] = len(spans)
            spans.append((change.at_us, 1 << 62))
        elif change.change.value in ("left", "died"):
            number = open_.pop(change.replica)
            spans[number] = (spans[number][0], change.at_us)
    return spans
