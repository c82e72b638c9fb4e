"""Simulations that read as a story: times in milliseconds, 10 ms to serve an event, plans as owners."""

import numpy as np

from autoscaler.model import Action, Decision, Plan
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Simulation
from autoscaler.simulator.settings import RebalanceSettings, ServiceSettings, SimulationSettings

TEN_MS = ServiceSettings(service_time_s=0.01)


def workload_of(events_ms, *, partitions=2, duration_s=10.0):
    """Return a workload. events_ms: (intended ms, partition) for each event, in order of time."""
    times = np.array([at for at, _ in events_ms], dtype=float) * 1000
    places = np.array([partition for _, partition in events_ms], dtype=np.int32)
    return Workload.whole(
        Arrivals(times.round().astype(np.int64), places), partitions=partitions, duration_s=duration_s
    )


def decision(owners, replicas=None, action=Action.REASSIGN):
    """Return a decision. owners: replica ordinal by partition; None: the group places `replicas` (ordinals) itself."""
    ordinals = sorted({*(owners or ()), *(replicas or ())})
    assignment = None if owners is None else {p: f"payment-{owner}" for p, owner in enumerate(owners)}
    return Decision(action, Plan(tuple(f"payment-{one}" for one in ordinals), assignment), "because")


class Story:
    """A simulation that a test advances step by step."""

    def __init__(self, events_ms, *, partitions=2, settings=None, **how):
        """how: fields of RebalanceSettings or SimulationSettings."""
        of_rebalance = {name: how.pop(name) for name in tuple(how) if name in RebalanceSettings.__dataclass_fields__}
        how = {"service": TEN_MS, "startup_s": 0.0} | how
        self.settings = SimulationSettings(rebalance=RebalanceSettings(**of_rebalance), **how)
        self.simulation = Simulation(workload_of(events_ms, partitions=partitions), self.settings)
        self.group = self.simulation.group

    def at(self, ms):
        self.simulation.advance(round(ms * 1000))
        return self

    def plan(self, owners, replicas=None, action=Action.REASSIGN):
        self.group.apply(decision(owners, replicas, action))
        return self

    def observe(self):
        return self.group.observe()

    def names(self):
        return self.observe().replica_names

    def lags(self):
        return [load.lag for load in self.observe().partitions]

    def served(self):
        """Run to the end; return (started ms, replica number) of each event."""
        self.simulation.finish_changes()
        self.simulation.drain()
        events = self.simulation.outcomes.events()
        return list(zip((events.started_us / 1000).tolist(), events.replica.tolist(), strict=True))

    def paid_ms(self):
        """Return (ms, replicas paid for) for each step."""
        return [(at / 1000, count) for at, count in self.group.members.requested]
