"""The numbers of one run: result.json, the one record that reports, comparisons and later readers rely on.

Names and definitions are those of measuring: lengths of time are seconds, shares lie between 0 and 1, percentiles are
nearest-rank. A number that cannot be known (nothing completed, no journal) is null, never zero.
"""

from pathlib import Path
from typing import Final

import msgspec

from contracts.journal import AlternativeWeighed
from report import replace_file

RESULT_FILE: Final = "result.json"
RESULT_VERSION: Final = 1
EPISODES_IN_JSON: Final = {"episodes": "spells", "episodes_left_out": "spells_left_out"}
"""Field → its name in result.json, which readers rely on."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Time between two steps of the timeline, over every event that passed both."""

    stage: str
    events: int
    p50_s: float | None
    p90_s: float | None
    p95_s: float | None
    p99_s: float | None
    p999_s: float | None
    p9999_s: float | None
    max_s: float | None


STAGES: Final[dict[str, str]] = {
    "sla": "SLA stage: intended → payment done",
    "sending": "placed → accepted by Order",
    "queueing": "accepted → received by Payment",
    "serving": "received → done",
    "shipping": "done → shipped",
    "notifying": "shipped (declined: done) → notified",
    "end-to-end": "intended → notified",
}
"""Stage → what it spans. Payment-only runs have `sla`, `queueing` (from placed) and `serving`."""


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """How late the generator was: placed − intended. A p99 above 5 % of the latency target makes a run invalid."""

    p50_s: float | None
    p99_s: float | None
    max_s: float | None


class TopicRecords(msgspec.Struct, frozen=True, kw_only=True):
    """What one topic held. Duplicates are records whose event was on the topic before."""

    topic: str
    records: int
    duplicates: int
    differing: int
    """Events whose records on this topic do not all say the same (timeline aside)."""


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """Whether every order had each of its effects exactly once. orders = exactly_once + missing + doubled.

    An accepted order must be settled, shipped and notified; a declined one settled and notified. Payments settled
    twice are one effect when all records agree. An effect is *doubled* when two records of shipments.scheduled or of
    notifications.sent carry the same order, when payments disagree, or when a declined order was shipped. *missing*:
    some effect never came. Refused orders (dead letters) are not orders here. Payment-only runs: settled alone counts.
    """

    orders: int
    exactly_once: int
    missing: int
    doubled: int


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One entry for each second of the run; second 0 begins at its start. Latencies belong to the second of intent."""

    arrivals: tuple[int, ...]
    """Events intended in this second."""
    done: tuple[int, ...]
    """Events first completed in this second."""
    p50_s: tuple[float | None, ...]
    p99_s: tuple[float | None, ...]
    max_s: tuple[float | None, ...]
    requested_replicas: tuple[int | None, ...]
    """As the second begins; null without a journal."""
    ready_replicas: tuple[int | None, ...]
    lag: tuple[int | None, ...]
    """Events, at the last tick that saw them in this second; null where none did."""
    packing_replicas: tuple[int | None, ...] = ()
    """Replicas of the per-second packing in this second; empty where it is not known."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """The SLA stage's latency distribution: at share[i] of all events stands the latency latency_s[i]."""

    share: tuple[float, ...]
    latency_s: tuple[float, ...]


class DecisionMade(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that was written."""

    at_s: float
    """Since the start of the run; negative before it."""
    epoch: int
    action: str
    replicas: int
    moved: int
    """Partitions whose owner changed."""
    reason: str
    alternatives: tuple[AlternativeWeighed, ...] = ()
    """What the policy weighed at that tick, the chosen plan first; empty where it follows a rule, or nobody knows."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A replica died, or could not be started."""

    at_s: float
    replica: str
    change: str
    detail: str


class Starts(msgspec.Struct, frozen=True, kw_only=True):
    """How long replicas took from being asked for to ready, those of before the run, too. Nearest rank."""

    replicas: int
    p50_s: float
    p99_s: float
    max_s: float


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
    """Of `report.causes.Cause`; a text, for a later version may have more."""
    events: int
    share: float
    """Of all late events."""
    worst_s: float | None
    """Latency of its worst event; null where none of them was ever done."""


class LateEpisode(msgspec.Struct, frozen=True, kw_only=True):
    """Late events of one cause on one partition, one after the other. All episodes together hold every late event."""

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


class Tail(msgspec.Struct, frozen=True, kw_only=True, rename=EPISODES_IN_JSON):
    """Why events were late. Exhaustive and exclusive: `causes` sum up to `late`, or to `explained`."""

    late: int
    """Events over the latency target, never done ones included."""
    explained: int | None = None
    """Of them, those that have a cause here: of more than a million only so many, at equal distances; null: all."""
    causes: tuple[CauseOfLateness, ...]
    """Most events first."""
    episodes: tuple[LateEpisode, ...]
    """The largest, by time; `episodes_left_out` are not listed."""
    episodes_left_out: int = 0
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
    packing_replica_minutes: float | None
    """Of the least bins that hold each second's own events; more slack than a second is not used."""
    over_packing: float | None
    """requested / packing − 1."""
    moved_partitions: int | None
    rebalance_score: float | None
    """Rscore: work (in replica-seconds of arrivals at its time) that moved, summed over plans, per plan written."""
    largest_up: int | None
    """Replicas that the largest step up added."""
    largest_down: int | None


class Integrity(msgspec.Struct, frozen=True, kw_only=True):
    """What must not be. `suspect` says each that is not 0, in words; empty: none. Null: not known."""

    lost: int | None
    duplicates: int | None
    order_violations_partition: int | None
    order_violations_key: int | None
    """Events done before an earlier one of the same customer, in whichever partitions; null where customers are not
    known. Suspect only where the grouping keeps their order."""
    clock_skew: dict[str, int]
    """Stage → events for which it took less than no time."""
    offset_gaps: int | None
    """Offsets between the first and the last of a partition that no event has."""
    future: int
    """Events with a time after the report was made."""
    suspect: tuple[str, ...]


class RebalanceRound(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions changed hands. Lengths are those that events met; null where none waited, so that nothing shows."""

    at_s: float
    """When the last of them was served again, since the start of the run."""
    kind: str
    """plan: it moved partitions; death: a plan gave away what a dead replica had; membership: the group itself."""
    members: int
    """Replicas of the newest plan."""
    moved: int
    """Partitions whose owner changed."""
    pause_s: float | None
    """Longest time that an event waited after its partition's old owner had done its last, and a plan was written."""
    plan_to_ready_s: float | None
    """From the plan until the last of these was served; null also where no plan caused the round."""


class Rebalances(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of a run."""

    delivery: str
    """How replicas carry out plans: incremental, eager, or the runtime's name."""
    rounds: tuple[RebalanceRound, ...]
    rounds_left_out: int = 0


class Otherwise(msgspec.Struct, frozen=True, kw_only=True):
    """What the same events would have come to under another policy, by replaying them in the simulator."""

    policy: str
    in_sla: float
    replica_minutes: float


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to make the numbers again."""

    command: str
    commit: str
    machine: str
    versions: dict[str, str]
    started_us: int
    """Epoch microseconds of second 0."""
    peak_memory_mib: float | None
    cores_full_s: float | None = None
    """How long, from the first event to the last, all cores of the machine that ran it were busy."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a report says about one run."""

    run: str
    scenario: str
    policy: str
    seed: int
    topology: str
    world: str = "live"
    """live, simulated, or unknown: somebody's own events, of which nothing tells what served them."""
    payment_partitions: int
    latency_target_s: float
    percentile: float
    duration_s: float
    verdict: str
    valid: bool
    """Whether the measurement stands; says nothing about whether the promise was kept."""
    problems: tuple[str, ...]
    events: int
    """Produced and not refused."""
    in_sla: float
    """Share of `events` done within the latency target; what was never done is late."""
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    replica_minutes: float | None
    scale_ups: int | None
    """Null without a journal, as the next three."""
    scale_downs: int | None
    reassignments: int | None
    moved_partitions: int | None
    lost: int | None
    """Produced, not refused, never done. Null where only what was done is told."""
    refused: int | None
    """Produced and answered by a dead letter instead of a payment."""
    dead_letters: int | None
    duplicates: int | None
    """Records beyond the first of their event, over all topics."""
    order_violations: int | None
    """Events that were done before an event that lay ahead of them in the same payment partition."""
    lateness: Lateness
    effects: Effects | None
    """Null where nobody counted the effects: of simulated runs, and of somebody's own events."""
    topics: tuple[TopicRecords, ...]
    stages: tuple[Stage, ...]
    distribution: Distribution
    series: Series
    decisions: tuple[DecisionMade, ...]
    failures: tuple[Failure, ...]
    breakdowns: Breakdowns = Breakdowns()
    tail: Tail | None = None
    """Null where causes cannot be known."""
    heat: HeatMap | None = None
    cost: Cost | None = None
    integrity: Integrity | None = None
    rebalances: Rebalances | None = None
    """Null where nothing is known of plans, or partitions have no owner (share groups)."""
    starts: Starts | None = None
    """Null where no replica was seen to become ready."""
    otherwise: tuple[Otherwise, ...] | None = None
    """Null where this run's events were not replayed."""
    provenance: Provenance
    v: int = RESULT_VERSION

    @property
    def kept(self) -> bool:
        """Whether the promise was kept."""
        return self.in_sla >= self.percentile

    @property
    def journaled(self) -> bool:
        """Whether a journal tells what was requested, planned and paid."""
        return any(value is not None for value in self.series.requested_replicas) or bool(self.decisions)

    @property
    def whole(self) -> bool:
        """Whether no order is known to lack an effect or to have one twice."""
        return self.effects is None or self.effects.exactly_once == self.effects.orders

    def save(self, folder: Path) -> None:
        """Write folder/result.json; a reader never sees half of it."""
        replace_file(folder / RESULT_FILE, msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")

    @classmethod
    def load(cls, folder: Path) -> "Result":
        """Read folder/result.json. Raises OSError or msgspec.DecodeError."""
        return msgspec.json.decode((folder / RESULT_FILE).read_bytes(), type=cls)
