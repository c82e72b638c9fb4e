"""Tests of a limit behind all replicas."""

import numpy as np
import pytest

from autoscaler.policies.registry import make_policy
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings
from report.measures import replica_minutes


def test_a_limit_leaves_no_service_rate_correction() -> None:
    """Twice what the limit lets through for 20 s, then no limit: at 330 events/s two replicas serve on."""
    rates = [160] * 10 + [400] * 20 + [330] * 30
    at_s = np.concatenate([second + (np.arange(rate) + 0.5) / rate for second, rate in enumerate(rates)])
    events = Arrivals((at_s * 1e6).astype(np.int64), np.resize(np.arange(10, dtype=np.int32), len(at_s)))
    limited = ServiceSettings(shared_limits=(200.0, 1e6), shared_limit_s=30.0)
    workload = Workload.whole(events, partitions=10, duration_s=60.0)
    run = simulate(workload, make_policy("tail-aware"), SimulationSettings(service=limited))
    assert replica_minutes(run.requested, 45_000_000, 15) == pytest.approx(2 * 15 / 60)
