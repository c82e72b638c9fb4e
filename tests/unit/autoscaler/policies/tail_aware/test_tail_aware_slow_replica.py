"""Tests of a replica at half the speed of the others, with and without knowledge of it."""

from dataclasses import replace

import numpy as np
import pytest

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings
from autoscaler.ports import Policy
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings
from report.measures import in_sla_share, replica_minutes

DURATION_S = 60.0
LEARNED_S = 10.0
SLOW = 1
"""Number of the slow one among three."""


class Blind:
    """A policy that does not get the rates of slow replicas. hears: whether it gets reports of late events."""

    name = "blind"

    def __init__(self, policy: Policy, hears: bool) -> None:
        self._policy = policy
        self._hears = hears

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the inner decision without the rates of slow replicas."""
        alike = tuple(
            replace(one, service_rate=None, late=one.late if self._hears else None) for one in observation.replicas
        )
        return self._policy.decide(replace(observation, replicas=alike))


def poisson(rate: float, *, partitions: int, seed: int) -> Workload:
    chance = np.random.default_rng(seed)
    intended_us = np.sort(chance.integers(0, int(DURATION_S * 1e6), chance.poisson(rate * DURATION_S)))
    events = Arrivals(intended_us, chance.integers(0, partitions, len(intended_us), dtype=np.int32))
    return Workload.whole(events, partitions=partitions, duration_s=DURATION_S)


def simulated(workload: Workload, *, blind: bool = False, hears: bool = False, maximum: int = 0) -> Run:
    """At least three replicas, of 200, 100 and 200 events/s; later ones repeat these rates."""
    policy = make_policy("tail-aware", guards=GuardSettings(min_replicas=3, max_replicas=maximum))
    settings = SimulationSettings(service=ServiceSettings(speeds=(1.0, 0.5, 1.0)), initial_replicas=3)
    return simulate(workload, Blind(policy, hears) if blind else policy, settings)


def in_sla(run: Run) -> float:
    return in_sla_share(run.latency_us, 0.5)


SEEDS = (1, 2)
"""Random seeds: a policy without the rates may be lucky with one of them."""


def test_a_slow_replica_gets_half_the_load_and_events_are_in_time() -> None:
    """350 events/s for three replicas that serve 500 between them: shared out alike, the slow one could not keep up."""
    kept_blind = []
    for seed in SEEDS:
        workload = poisson(350, partitions=10, seed=seed)
        knows, blind = (simulated(workload, blind=one, maximum=3) for one in (False, True))
        served = np.bincount(knows.events.replica[knows.events.started_us > LEARNED_S * 1e6], minlength=3)
        assert served[SLOW] == pytest.approx(np.delete(served, SLOW).mean() / 2, rel=0.2)
        assert in_sla(knows) >= 0.999
        kept_blind.append(in_sla(blind))
    assert np.mean(kept_blind) < 0.98


def test_a_slow_replica_is_found_by_its_late_events() -> None:
    workloads = [poisson(400, partitions=20, seed=seed) for seed in SEEDS]
    hears, blind = ([simulated(one, blind=True, hears=which) for one in workloads] for which in (True, False))
    assert np.mean(list(map(in_sla, hears))) > max(0.995, np.mean(list(map(in_sla, blind))))


@pytest.mark.parametrize("startup_s", [2.0, 2.3, 2.5])
def test_events_that_wait_for_a_start_do_not_make_a_replica_slow(startup_s: float) -> None:
    """From 80 to 350 events/s at once: ten seconds after it, the two that can serve that are all there are."""
    at_s = np.concatenate([second + (np.arange(n) + 0.5) / n for second, n in enumerate([80] * 20 + [350] * 20)])
    events = Arrivals((at_s * 1e6).astype(np.int64), np.resize(np.arange(10, dtype=np.int32), len(at_s)))
    settings = SimulationSettings(service=ServiceSettings(), startup_s=startup_s)
    run = simulate(Workload.whole(events, partitions=10, duration_s=40.0), make_policy("tail-aware"), settings)
    assert replica_minutes(run.requested, 30_000_000, 10) == pytest.approx(2 * 10 / 60)
