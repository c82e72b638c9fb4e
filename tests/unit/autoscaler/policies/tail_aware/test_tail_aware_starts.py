"""Tests of start-up times, owners during a start, and the scale-down floor."""

import numpy as np

from autoscaler.model import GroupObservation, PartitionLoad, Replica
from autoscaler.policies.registry import make_policy
from autoscaler.policies.tail_aware.policy import TailAware
from autoscaler.policies.tail_aware.starts import PeakFloor, StartUpTimes
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings
from report.measures import in_sla_share, replica_minutes

READY, STARTING = True, False


def observed(at_s: float = 0.0, owners=("payment-0",), **replicas: bool) -> GroupObservation:
    """owners: of partition 0, 1, … replicas: by name, whether they are ready."""
    return GroupObservation(
        at_s=at_s,
        partitions=tuple(PartitionLoad(number, 10.0, 0) for number in range(len(owners))),
        replicas=tuple(Replica(name.replace("_", "-"), ready) for name, ready in replicas.items()),
        assignment=dict(enumerate(owners)),
        service_rate=200.0,
        rebalance_time_s=0.05,
    )


def one_start(late: float, calm: int = 5) -> PeakFloor:
    """After so many ticks at which all were ready."""
    levels, startups = PeakFloor(60.0), StartUpTimes()
    for second in range(calm):
        startups.observe(observed(second - calm, payment_0=READY))
        levels.book(0.0, startups)
    startups.observe(observed(0.0, payment_0=READY, payment_1=STARTING))
    levels.book(late, startups)
    return levels


def second_of(levels: PeakFloor, at_s: float, events: float, *, startup_s: float = 30.0, target_s: float = 0.5) -> None:
    """Ten partitions, evenly; replicas serve 200 events/s, and one for each 140 is kept at most."""
    came, most = np.full((10, 10), events / 100), round(events / 140)
    levels.observe(at_s, came, 0.1, startup_s=startup_s, rate=200.0, target_s=target_s, most=most)


def test_a_replica_is_kept_until_its_idle_time_equals_the_cost_of_a_restart():
    levels = one_start(late=40.0)
    for second in range(30):
        second_of(levels, second, 380.0)
    kept = []
    for second in range(30, 120):
        second_of(levels, second, 140.0)
        kept.append(levels.least(second, 0.25))
    assert kept[0] == 2
    assert 10 <= kept.index(1) <= 13, "40 events at 0.25 s, after the surge"
    assert levels.least(119, 1e6) == 1, "but not longer than keep_s"


def square_waves(low: int, high: int, *, half_s: int, seconds: int) -> Workload:
    """Events/s, evenly over ten partitions."""
    rates = [(low, high)[second // half_s % 2] for second in range(seconds)]
    at_s = np.concatenate([second + (np.arange(rate) + 0.5) / rate for second, rate in enumerate(rates)])
    events = Arrivals((at_s * 1e6).astype(np.int64), np.resize(np.arange(10, dtype=np.int32), len(at_s)))
    return Workload.whole(events, partitions=10, duration_s=float(seconds))


def simulated(workload: Workload, startup_s: float, policy: TailAware | None = None) -> Run:
    settings = SimulationSettings(service=ServiceSettings(), startup_s=startup_s)
    return simulate(workload, policy or make_policy("tail-aware"), settings)


def test_replicas_are_kept_for_demand_that_returns():
    """Six waves of 20 s with starts of 4 s: after the first they are kept, as two would be by who knows."""
    run = simulated(square_waves(80, 350, half_s=20, seconds=240), 4.0)
    late = 1 - in_sla_share(run.latency_us[run.events.intended_us > 60_000_000], 0.5)
    assert late < 0.001
    assert replica_minutes(run.requested, 0, 240.0) < 2.2 * 4
