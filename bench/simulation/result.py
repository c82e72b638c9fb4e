"""What a simulated run came to, under the names of the live result."""

import msgspec


class SimulationResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Latencies in seconds, nearest rank; None of a run without events."""

    scenario: str
    policy: str
    seed: int
    events: int
    in_sla: float
    """Share of events within the latency target; lost ones are late."""
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    replica_minutes: float
    bound_replica_minutes: float
    """Least replica-minutes that hold each second's own events (report.measures.bound_replica_minutes)."""
    scale_ups: int
    scale_downs: int
    reassignments: int
    moved_partitions: int
    """Changes of owner, summed over all decisions."""
    wall_s: float
    """Duration of the simulation on this machine, policy included."""
    policy_s: float
    """Of it, spent in the policy."""
    lost: int = 0
    duplicates: int = 0
    phase_s: float = 0.0
    """When the first burst comes after the full second."""

    @property
    def regret(self) -> float:
        """Cost above the bound, as a share of it; below 0 where the slack of W across seconds was used."""
        return self.replica_minutes / self.bound_replica_minutes - 1
