"""The parts of a result that explain it: where events were served, why they were late, what it cost, what is amiss."""

import msgspec


class Breakdown(msgspec.Struct, frozen=True, kw_only=True):
    """The SLA stage of the events of one partition, one replica or one plan epoch."""

    name: str
    events: int
    late: int
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None


class Breakdowns(msgspec.Struct, frozen=True, kw_only=True):
    """Where the events were served. Each list covers every event that was done."""

    partitions: tuple[Breakdown, ...] = ()
    replicas: tuple[Breakdown, ...] = ()
    epochs: tuple[Breakdown, ...] = ()


class CauseOfLateness(msgspec.Struct, frozen=True, kw_only=True):
    """All late events of one cause."""

    cause: str
    """One of the names in `report.causes`."""
    events: int
    share: float
    """Of all late events."""
    worst_s: float | None
    """Latency of its worst event; null where none of them was ever done."""


class LateSpell(msgspec.Struct, frozen=True, kw_only=True):
    """Late events of one cause on one partition, one after the other. Spells of all causes cover every late event."""

    cause: str
    partition: int | None
    replica: str | None
    """That served them; null where nobody did."""
    epoch: int | None
    """Of the plan under which they were served."""
    from_s: float
    """Intended time of the first, since the start of the run."""
    until_s: float
    events: int
    worst_s: float | None
    why: str
    """One sentence with the figures that tell the cause."""


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """Why events were late. Exhaustive and exclusive: `causes` sum up to `late`."""

    late: int
    """Events over the latency target, never done ones included."""
    causes: tuple[CauseOfLateness, ...]
    """Most events first."""
    spells: tuple[LateSpell, ...]
    """The largest, by time; `spells_left_out` are not listed."""
    spells_left_out: int = 0
    by_second: dict[str, tuple[int, ...]] = {}
    """Cause → late events intended in each second of the run."""


class HeatMap(msgspec.Struct, frozen=True, kw_only=True):
    """Worst latency of each partition in each cell of time."""

    cell_s: float
    partitions: tuple[int, ...]
    max_s: tuple[tuple[float | None, ...], ...]
    """One row for each of `partitions`, one entry for each cell since the start of the run; null: no event."""
    owners: tuple[tuple[str | None, ...], ...] = ()
    """Replica that served the cell's last event, in the same shape."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What the run cost, beside what it could not have cost less than. Null: not known."""

    requested_replica_minutes: float | None
    ready_replica_minutes: float | None
    bound_replica_minutes: float | None
    """Of the clairvoyant bound, from the events of this very run: no less is possible."""
    bound_gap_replica_minutes: float | None = None
    """By how much the bound may be too low: seconds in which the search for the least was given up; 0: it is exact."""
    regret: float | None
    """requested / bound − 1."""
    moved_partitions: int
    rebalance_score: float | None
    """Rscore: work (in replica-seconds of arrivals at its time) that moved, summed over plans, per plan written."""
    largest_up: int
    """Replicas that the largest step up added."""
    largest_down: int


class Integrity(msgspec.Struct, frozen=True, kw_only=True):
    """What must not be. `suspect` says each that is not 0, in words; empty: none."""

    lost: int
    duplicates: int
    order_violations_partition: int
    order_violations_key: int | None
    """Among events of one customer in one partition; null where customers are not known."""
    clock_skew: dict[str, int]
    """Stage → events for which it took less than no time."""
    offset_gaps: int
    """Offsets between the first and the last of a partition that no event has."""
    future: int
    """Events with a time after the report was made."""
    suspect: tuple[str, ...]
