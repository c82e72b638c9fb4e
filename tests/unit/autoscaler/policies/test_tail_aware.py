"""Tail-aware, seen from outside: it keeps the latency target with few replicas, whatever the load does."""

import re
from dataclasses import replace

import numpy as np
import pytest

from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings
from autoscaler.policies.tail_aware import arrivals
from autoscaler.policies.tail_aware.memory import ServiceRateCorrection
from autoscaler.ports import Policy, urgent_of
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.settings import RebalanceSettings, ServiceSettings, SimulationSettings
from bench.simulation.sent_events import replica_minutes
from contracts.rebalance_protocol import RebalanceProtocol
from report.measures import in_sla_share

SEEDS = (1, 2)
"""Random seeds: a policy without the rates may be lucky with one of them."""


def workload(at_s: np.ndarray, *, seconds: int, partitions: int = 10) -> Workload:
    """Return events at these times, to the partitions in turn."""
    at_us = (at_s * 1e6).astype(np.int64)
    events = Arrivals(at_us, np.resize(np.arange(partitions, dtype=np.int32), len(at_us)))
    return Workload.whole(events, partitions=partitions, duration_s=float(seconds))


def evenly(rates: list[int]) -> Workload:
    """Return events that are spread evenly over each second. rates: events of each second."""
    at_s = np.concatenate([second + (np.arange(rate) + 0.5) / rate for second, rate in enumerate(rates)])
    return workload(at_s, seconds=len(rates))


def bursts(sizes: list[int], *, offset_s: float = 0.0, partitions: int = 10) -> Workload:
    """Return one burst a second, `offset_s` after its beginning. sizes: events of each burst."""
    at_s = np.repeat(np.arange(len(sizes)) + offset_s, sizes)
    return workload(at_s, seconds=len(sizes), partitions=partitions)


def poisson(rate: float, *, seconds: int = 60, partitions: int, seed: int) -> Workload:
    chance = np.random.default_rng(seed)
    at_us = np.sort(chance.integers(0, seconds * 1_000_000, chance.poisson(rate * seconds)))
    events = Arrivals(at_us, chance.integers(0, partitions, len(at_us), dtype=np.int32))
    return Workload.whole(events, partitions=partitions, duration_s=float(seconds))


def simulated(load: Workload, policy: Policy | None = None, service: ServiceSettings | None = None, **more: int) -> Run:
    settings = SimulationSettings(service=service or ServiceSettings(), **more)  # type: ignore[arg-type]
    return simulate(load, policy or make_policy("tail-aware"), settings)


def in_sla(run: Run) -> float:
    return in_sla_share(run.latency_us, 0.5)


def test_a_very_large_group_is_planned_by_one_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MAX_CELLS", 1)
    assert in_sla(simulated(evenly([100] * 30))) == 1.0


def replicas_from(run: Run, from_s: int, seconds: int) -> float:
    """Return the mean count of replicas that were paid for in these seconds."""
    return replica_minutes(run.requested, from_s * 1_000_000, seconds) * 60 / seconds


def test_even_arrivals_need_half_the_replicas_that_bursts_need() -> None:
    assert replicas_from(simulated(bursts([160] * 60)), 40, 20) == pytest.approx(2)
    assert replicas_from(simulated(evenly([160] * 60)), 40, 20) == pytest.approx(1)
    assert simulated(bursts([90] * 60)).changes == (), "one replica serves such a burst in time"


def test_a_partition_above_the_service_rate_gets_a_replica_of_its_own_and_no_more() -> None:
    at_s = np.sort(np.concatenate([np.arange(0, 40, 1 / 300), np.arange(0, 40, 1 / 20)]))
    partition = np.resize(np.array([0] * 15 + [1], np.int32), len(at_s))
    events = Arrivals((at_s * 1e6).astype(np.int64), partition)
    run = simulated(Workload.whole(events, partitions=2, duration_s=40.0))
    assert replicas_from(run, 30, 10) == pytest.approx(2)


def test_a_step_is_answered_within_a_tenth_of_a_second_and_replicas_stop_only_at_ticks() -> None:
    """Bursts half a second after each tick, four times as many events from second 15 to 30."""
    run = simulated(bursts([80] * 15 + [320] * 15 + [80] * 30, offset_s=0.6, partitions=4))
    up = next(change for change in run.changes if change.at_s > 14)
    assert (up.action, up.at_s) == (Action.UP, pytest.approx(15.7))
    assert in_sla(run) > 0.99
    down_s = [change.at_s for change in run.changes if change.action is Action.DOWN]
    assert [at_s % 1 for at_s in down_s] == pytest.approx([0.1] * len(down_s))
    assert down_s


def test_guards_pass_urgency_and_other_policies_decide_only_at_ticks() -> None:
    assert urgent_of(make_policy("tail-aware", guards=GuardSettings(max_replicas=3))) is not None
    assert urgent_of(make_policy("algorithm-2", guards=GuardSettings(max_replicas=3))) is None


def test_replicas_are_kept_for_demand_that_returns() -> None:
    """Six waves of 20 s with starts of 4 s: after the first they are kept, as two would be by who knows."""
    run = simulated(evenly(([80] * 20 + [350] * 20) * 6), startup_s=4)
    assert in_sla_share(run.latency_us[run.events.intended_us > 60_000_000], 0.5) > 0.999
    assert replicas_from(run, 0, 240) < 2.2


def test_a_change_that_stops_the_group_is_made_once_waiting_has_cost_as_many_late_events() -> None:
    """Bursts grow to 110 events for two minutes, a replica serves 100 in time, and a stop makes a whole burst late."""
    stops = RebalanceSettings(rebalance_protocol=RebalanceProtocol.EAGER, rebalance_time_s=0.5)
    load = bursts([*range(60, 110), *[110] * 120])
    run = simulate(load, make_policy("tail-aware"), SimulationSettings(rebalance=stops))
    assert (run.latency_us > 500_000).sum() < 2 * 110, "1,200 if nothing is done"
    assert run.requested[-1][1] == 2


@pytest.mark.parametrize("startup_s", [2.0, 2.3, 2.5])
def test_events_that_wait_for_a_start_do_not_make_a_replica_slow(startup_s: float) -> None:
    """From 80 to 350 events/s at once: ten seconds after it, the two that can serve that are all there are."""
    run = simulated(evenly([80] * 20 + [350] * 20), startup_s=startup_s)  # type: ignore[arg-type]
    assert replicas_from(run, 30, 10) == pytest.approx(2)


def test_few_replicas_start_at_once_where_starts_slow_each_other() -> None:
    """Three surges from 20 to 110 events/s; a replica serves 50. Ten that start together come too late."""
    surge = [*[20] * 10, 40, 70, *[110] * 11, 70, 40]
    slow = ServiceSettings(service_time_s=0.02)
    run = simulated(evenly(surge * 3), service=slow, startup_s=0.3, startup_each_s=0.15)  # type: ignore[arg-type]
    assert in_sla(run) > 0.999
    assert max(change.replicas for change in run.changes) <= 5
    assert replicas_from(run, 0, 75) < 2.2


class Blind:
    """A policy that does not get the rates of slow replicas. hears: whether it gets reports of late events."""

    name = "blind"

    def __init__(self, policy: Policy, hears: bool) -> None:
        self._policy = policy
        self._hears = hears

    def decide(self, seen: GroupObservation) -> Decision:
        """Return the inner decision without the rates of slow replicas."""
        alike = [replace(one, service_rate=None, late=one.late if self._hears else None) for one in seen.replicas]
        return self._policy.decide(replace(seen, replicas=tuple(alike)))


def with_a_slow_one(load: Workload, *, maximum: int = 0, hears: bool | None = None) -> Run:
    """At least three replicas of 200, 100 and 200 events/s. hears: None if the policy knows the rates, else `Blind`."""
    policy = make_policy("tail-aware", guards=GuardSettings(min_replicas=3, max_replicas=maximum))
    service = ServiceSettings(speeds=(1.0, 0.5, 1.0))
    return simulated(load, policy if hears is None else Blind(policy, hears), service, initial_replicas=3)


def test_a_slow_replica_gets_half_the_load_and_events_are_in_time() -> None:
    """350 events/s for three replicas that serve 500 between them: shared out alike, the slow one could not keep up."""
    loads = [poisson(350, partitions=10, seed=seed) for seed in SEEDS]
    for run in (with_a_slow_one(load, maximum=3) for load in loads):
        fast, slow, other = np.bincount(run.events.replica[run.events.started_us > 10_000_000], minlength=3)
        assert slow == pytest.approx((fast + other) / 4, rel=0.2)
        assert in_sla(run) >= 0.999
    assert np.mean([in_sla(with_a_slow_one(load, maximum=3, hears=False)) for load in loads]) < 0.98


def test_replicas_that_are_slower_than_reported_are_found_by_their_late_events() -> None:
    """Two replicas serve bursts of 220 events in time at the reported service rate, which is 15 % too high."""
    hears, blind = (
        in_sla(simulated(bursts([220] * 120), Blind(make_policy("tail-aware"), which), service_rate_error=0.15))  # type: ignore[arg-type]
        for which in (True, False)
    )
    assert hears > 0.98
    assert blind < 0.95


def test_the_assumed_service_rate_is_lowered_only_for_the_replica_with_unexplained_late_events() -> None:
    correction = ServiceRateCorrection(allowed_share=0.001)
    for _ in range(10):
        for name, explained in (("fast", 20.0), ("other", 20.0), ("slow", 0.0)):
            correction.learn(name, reported=20.0, explained=explained, events=100.0)
    assert correction.factor("slow") == pytest.approx(0.61, abs=0.02)
    assert correction.factor("fast") == correction.factor() == 1.0, "a new replica counts as most others do"
    for _ in range(2_000):
        correction.learn("slow", reported=0.0, explained=0.0, events=100.0)
    assert correction.factor("slow") == 1.0


class Noted:
    """The policy, with the reasons of its decisions."""

    name = "noted"

    def __init__(self) -> None:
        self._policy = make_policy("tail-aware")
        self.reasons: list[str] = []

    def decide(self, seen: GroupObservation) -> Decision:
        """Return the inner decision."""
        decision = self._policy.decide(seen)
        self.reasons.append(decision.reason)
        return decision


def test_a_decision_says_when_a_start_comes_too_late_for_the_slo() -> None:
    """From 80 to 700 events/s at once, which needs four replicas of 200 events/s; a start takes 5 s."""
    noted, calm = Noted(), Noted()
    simulated(evenly([80] * 20 + [700] * 20), noted, startup_s=5)
    simulated(evenly([80] * 40), calm, startup_s=5)
    first = next(reason for reason in noted.reasons if "out of reach" in reason)
    needs = re.search(r"; out of reach: needs (\d+) replicas 5 s earlier", first)
    assert needs
    assert int(needs[1]) >= 4
    assert not any("out of reach" in reason for reason in calm.reasons)
