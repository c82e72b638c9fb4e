"""Replicas that take time to start are kept if their demand returns."""

import numpy as np

from autoscaler.policies.registry import make_policy
from autoscaler.policies.tail_aware.policy import TailAware
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings
from report.measures import in_sla_share, replica_minutes


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
