"""All figures of one run: result.json, which reports, comparisons and notebooks read.

Durations are in seconds, shares lie between 0 and 1, percentiles are nearest-rank. A figure that cannot be known
(nothing completed, no journal) is null, never zero.
"""

from pathlib import Path
from typing import Final

import msgspec

from contracts.journal import PlanAlternative
from report import replace_file

RESULT_FILE: Final = "result.json"
RESULT_VERSION: Final = 1
EPISODE_JSON_KEYS: Final = {"episodes": "spells", "episodes_left_out": "spells_left_out"}
REBALANCE_JSON_KEYS: Final = {
    "rebalance_protocol": "delivery", "records": "rounds", "records_left_out": "rounds_left_out",
}  # fmt: skip
"""Field → its key in result.json; other fields have their own names."""


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
"""Stage → its begin and end. Payment-only runs have `sla`, `queueing` (from placed) and `serving`."""


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """Lateness of the generator: send time minus scheduled time. A p99 above 5 % of the target makes a run invalid."""

    p50_s: float | None
    p99_s: float | None
    max_s: float | None


class TopicRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one topic. Duplicates are further records of the same event."""

    topic: str
    records: int
    duplicates: int
    differing: int
    """Events whose records differ, apart from their timelines."""


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """Orders by their effects: orders = exactly_once + missing + doubled.

    An accepted order must be settled, shipped and notified; a declined one settled and notified. Payments settled
    twice are one effect if all records agree. An effect is *doubled* if two records of shipments.scheduled or of
    notifications.sent carry the same order, if payments disagree, or if a declined order was shipped. *missing*:
    orders that lack an effect. Refused orders (dead letters) do not count. Payment-only runs: only settled counts.
    """

    orders: int
    exactly_once: int
    missing: int
    doubled: int


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One entry for each second of the run. A latency belongs to the second in which its event was scheduled."""

    arrivals: tuple[int, ...]
    """Events scheduled in this second."""
    done: tuple[int, ...]
    """Events completed in this second."""
    p50_s: tuple[float | None, ...]
    p99_s: tuple[float | None, ...]
    max_s: tuple[float | None, ...]
    requested_replicas: tuple[int | None, ...]
    """Replicas at the beginning of the second."""
    ready_replicas: tuple[int | None, ...]
    lag: tuple[int | None, ...]
    """Unserved events in the topic, at the last tick of the second."""
    packing_replicas: tuple[int | None, ...] = ()
    """Replicas of the per-second packing; empty if unknown."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Latency distribution: the share share[i] of all events has a latency of at most latency_s[i]."""

    share: tuple[float, ...]
    latency_s: tuple[float, ...]


class PlanDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that was written."""

    at_s: float
    """Seconds since the start of the run; negative before it."""
    epoch: int
    action: str
    replicas: int
    moved: int
    """Partitions that changed their owner."""
    reason: str
    alternatives: tuple[PlanAlternative, ...] = ()
    """Plans that the policy compared, the chosen one first."""


class NoChange(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive ticks that changed nothing, all for the same reason."""

    at_s: float
    """Time of the first one, in seconds since the start of the run; negative before it."""
    ticks: int
    reason: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that died or could not be started."""

    at_s: float
    replica: str
    change: str
    detail: str


class StartupTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Time from the request of a replica until it was ready."""

    replicas: int
    p50_s: float
    p99_s: float
    max_s: float


class Breakdown(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one partition, one replica or one plan."""

    name: str
    events: int
    late: int
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None


class Breakdowns(msgspec.Struct, frozen=True, kw_only=True):
    """All completed events by partition, by replica and by plan."""

    partitions: tuple[Breakdown, ...] = ()
    replicas: tuple[Breakdown, ...] = ()
    epochs: tuple[Breakdown, ...] = ()


class CauseOfLateness(msgspec.Struct, frozen=True, kw_only=True):
    """All late events of one cause."""

    cause: str
    """A value of `report.causes.Cause`; later versions may have more."""
    events: int
    share: float
    """Share of all late events."""
    worst_s: float | None
    """Highest latency of a completed event."""


class LateEpisode(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive late events of one cause on one partition. Each late event belongs to one episode."""

    cause: str
    partition: int | None
    replica: str | None
    """Replica that served them."""
    epoch: int | None
    """Plan under which they were served."""
    from_s: float
    """Scheduled time of the first event, since the start of the run."""
    until_s: float
    events: int
    worst_s: float | None
    why: str
    """One sentence with the figures of the cause."""


class Tail(msgspec.Struct, frozen=True, kw_only=True, rename=EPISODE_JSON_KEYS):
    """Causes of late events. Each late event has one cause. `causes` add up to `explained`; if null, to `late`."""

    late: int
    """Events over the latency target or never completed."""
    explained: int | None = None
    """Size of the sample with causes, for more than a million late events; null: all late events have a cause."""
    causes: tuple[CauseOfLateness, ...]
    """Largest first."""
    episodes: tuple[LateEpisode, ...]
    """The largest episodes, by time; `episodes_left_out` are not listed."""
    episodes_left_out: int = 0
    by_second: dict[str, tuple[int, ...]] = {}
    """Cause → late events of each second of the run."""


class HeatMap(msgspec.Struct, frozen=True, kw_only=True):
    """Worst latency of each partition in each cell of time."""

    cell_s: float
    partitions: tuple[int, ...]
    max_s: tuple[tuple[float | None, ...], ...]
    """One row per partition, one entry per cell; null: no event."""
    owners: tuple[tuple[str | None, ...], ...] = ()
    """Replica that served the last event of the cell."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of the run, in replica-minutes, and its reassignments."""

    requested_replica_minutes: float | None
    ready_replica_minutes: float | None
    packing_replica_minutes: float | None
    """Cost of the per-second packing."""
    over_packing: float | None
    """requested / packing − 1."""
    moved_partitions: int | None
    rebalance_score: float | None
    """Rscore: mean load that a plan moves, in replicas."""
    largest_up: int | None
    """Replicas that the largest scale-up added."""
    largest_down: int | None


class Integrity(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of the run; each value should be 0. `suspect` describes each value above 0."""

    lost: int | None
    duplicates: int | None
    order_violations_partition: int | None
    order_violations_key: int | None
    """Events completed before an earlier event of the same customer; an error only if the partitioner keeps order."""
    clock_skew: dict[str, int]
    """Stage → events with a negative duration of this stage."""
    offset_gaps: int | None
    """Missing offsets between the first and the last event of a partition."""
    future: int
    """Events with a timestamp after the time of the report."""
    suspect: tuple[str, ...]


class RebalanceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A change of owners, as observed from events. Durations are null if no event waited."""

    at_s: float
    """Time at which the last partition was served again, in seconds since the start of the run."""
    kind: str
    """plan, death (a plan replaces a dead replica) or membership (without a plan)."""
    members: int
    """Replicas of the newest plan."""
    moved: int
    """Partitions that changed their owner."""
    pause_s: float | None
    """Longest wait of an event since the plan, or since the previous owner's last event if later."""
    plan_to_ready_s: float | None
    """Time from the plan until the last event that had waited was served."""


class Rebalances(msgspec.Struct, frozen=True, kw_only=True, rename=REBALANCE_JSON_KEYS):
    """All rebalances of a run."""

    rebalance_protocol: str
    """Rebalance protocol: incremental, eager, or the name of the runtime that replaces it."""
    records: tuple[RebalanceRecord, ...]
    records_left_out: int = 0


class OtherPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Simulated figures of another policy for the same events."""

    policy: str
    in_sla: float
    replica_minutes: float


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Origin of the figures."""

    command: str
    commit: str
    machine: str
    versions: dict[str, str]
    started_us: int
    """Start of second 0, µs since 1970."""
    peak_memory_mib: float | None
    cores_full_s: float | None = None
    """Seconds in which all cores of the machine were busy, between the first and the last event."""
    interventions: tuple[str, ...] = ()
    """Actions of an operator on the live page, each with the time of the run."""


class Result(msgspec.Struct, frozen=True, kw_only=True, rename={"other_policies": "otherwise"}):
    """All figures of one run."""

    run: str
    scenario: str
    policy: str
    seed: int
    topology: str
    world: str = "live"
    """live, simulated, or unknown (external events)."""
    payment_partitions: int
    latency_target_s: float
    percentile: float
    duration_s: float
    verdict: str
    valid: bool
    """Whether the measurement is valid. A valid run may not meet its SLO."""
    problems: tuple[str, ...]
    """Reasons why the measurement is not valid, one clause each."""
    events: int
    """Events produced and not refused."""
    in_sla: float
    """Share of `events` that were completed within the latency target."""
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    replica_minutes: float | None
    scale_ups: int | None
    """Null without a journal, like the next three fields."""
    scale_downs: int | None
    reassignments: int | None
    moved_partitions: int | None
    lost: int | None
    """Events produced, not refused and never completed."""
    refused: int | None
    """Events written to the dead-letter topic instead of being completed."""
    dead_letters: int | None
    """Records on the dead-letter topic; an event may have several."""
    duplicates: int | None
    """Repeated records, over all topics."""
    order_violations: int | None
    """Events completed before an earlier event of their partition."""
    lateness: Lateness
    effects: Effects | None
    """Null for simulated runs and external events."""
    topics: tuple[TopicRecords, ...]
    stages: tuple[Stage, ...]
    distribution: Distribution
    series: Series
    decisions: tuple[PlanDecision, ...]
    no_changes: tuple[NoChange, ...] = ()
    failures: tuple[Failure, ...]
    breakdowns: Breakdowns = Breakdowns()
    tail: Tail | None = None
    """Null if the events do not record which replica received them, and when."""
    heat: HeatMap | None = None
    cost: Cost | None = None
    integrity: Integrity | None = None
    rebalances: Rebalances | None = None
    """Null without plans or owners."""
    starts: StartupTimes | None = None
    """Null if the journal has no replica that became ready."""
    other_policies: tuple[OtherPolicy, ...] | None = None
    """Null if other policies were not simulated."""
    provenance: Provenance
    v: int = RESULT_VERSION

    @property
    def slo_met(self) -> bool:
        """Whether the run met its SLO."""
        return self.in_sla >= self.percentile

    @property
    def has_journal(self) -> bool:
        """Whether the run has a journal: requested replicas, or plans."""
        return any(value is not None for value in self.series.requested_replicas) or bool(self.decisions)

    @property
    def effects_complete(self) -> bool:
        """Whether each order had each effect exactly once, as far as effects are known."""
        return self.effects is None or self.effects.exactly_once == self.effects.orders

    def save(self, folder: Path) -> None:
        """Write folder/result.json atomically."""
        replace_file(folder / RESULT_FILE, msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")

    @classmethod
    def load(cls, folder: Path) -> "Result":
        """Read folder/result.json. Raises OSError or msgspec.DecodeError."""
        return msgspec.json.decode((folder / RESULT_FILE).read_bytes(), type=cls)
