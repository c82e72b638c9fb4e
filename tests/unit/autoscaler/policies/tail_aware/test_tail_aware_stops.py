"""A change that stops the whole group is postponed, but not for ever."""

import numpy as np

from autoscaler.policies.registry import make_policy
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import RebalanceSettings, SimulationSettings
from contracts.rebalance_protocol import RebalanceProtocol

PARTITIONS = 10
STOPS = RebalanceSettings(rebalance_protocol=RebalanceProtocol.EAGER, rebalance_time_s=0.5)


def bursts(sizes: list[int]) -> Workload:
    """One a second, a tenth of a second before a tick, over all partitions alike."""
    at_us = np.repeat(np.arange(len(sizes)) * 1_000_000, sizes)
    events = Arrivals(at_us.astype(np.int64), np.resize(np.arange(PARTITIONS, dtype=np.int32), sum(sizes)))
    return Workload.whole(events, partitions=PARTITIONS, duration_s=float(len(sizes)))


def test_a_change_is_made_once_waiting_has_cost_as_many_late_events() -> None:
    """Bursts grow to 110 events for two minutes, a replica serves 100 in time, and a stop makes a whole burst late."""
    load = bursts([*range(60, 110), *[110] * 120])
    run = simulate(load, make_policy("tail-aware"), SimulationSettings(rebalance=STOPS))
    assert (run.latency_us > 500_000).sum() < 2 * 110, "1,200 if nothing is done"
    assert run.requested[-1][1] == 2
