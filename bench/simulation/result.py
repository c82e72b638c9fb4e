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
    priced_minutes: float
    """The same, each replica at the price of its class (`payment.classes`)."""
    packing_replica_minutes: float
    """Least replica-minutes that hold each second's own events (report.measures.packing_replica_minutes)."""
    optimum_replica_minutes: float | None = None
    """Of the cheapest schedule of counts and owners for these events (autoscaler.optimum); None: not looked for."""
    optimum_lower: float | None = None
    """Below which no schedule keeps the promise; None likewise."""
    kept: bool | None = None
    """Whether the run keeps the promise; None: not asked."""
    scale_ups: int
    scale_downs: int
    reassignments: int
    replicas_added: int = 0
    """Over all scale-ups: what a paper may count as ups."""
    replicas_removed: int = 0
    """Over all scale-downs, likewise."""
    moved_partitions: int
    """Changes of owner, summed over all decisions."""
    wall_s: float
    """Duration of the simulation on this machine, policy included."""
    policy_s: float
    """Of it, spent in the policy."""
    lost: int = 0
    duplicates: int = 0
    phase_s: float = 0.0
    """From the first burst, or a whole second of the workload, to the next tick."""

    @property
    def regret(self) -> float | None:
        """Cost above the optimum, as a share of it; None where that is not known, or the run breaks the promise."""
        best = self.optimum_replica_minutes
        return self.replica_minutes / best - 1 if best and self.optimum_lower is not None and self.kept else None

    @property
    def plan_changes(self) -> int:
        """Decisions that changed the count or an owner."""
        return self.scale_ups + self.scale_downs + self.reassignments
