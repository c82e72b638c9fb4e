"""The numbers of one run: result.json, the one record that reports, comparisons and later readers rely on.

Names and definitions are those of measuring: lengths of time are seconds, shares lie between 0 and 1, percentiles are
nearest-rank. A number that cannot be known (nothing completed, no journal) is null, never zero.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from contracts.journal import AlternativeWeighed
from report import replace_file
from report.measures import percentile_us

RESULT_FILE: Final = "result.json"
RESULT_VERSION: Final = 1
MOST_ROUNDS: Final = 5_000
"""Newest rebalances that a result lists; their distribution is of all."""
EPISODES_IN_JSON: Final = {"episodes": "spells", "episodes_left_out": "spells_left_out"}
"""Field → its name in result.json, which readers rely on."""
REBALANCE_KINDS: Final[dict[str, str]] = {
    "plan": "a plan moved partitions",
    "death": "a plan gave away what a dead replica had",
    "membership": "the group itself, without a plan",
}
"""Kind of round, as the autoscaler's learner tells them apart → what it means."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Time between two steps of the timeline, over every event that passed both."""

    stage: str
    """One of the names in `STAGES`."""
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
    bound_replicas: tuple[int | None, ...] = ()
    """Replicas of the clairvoyant bound in this second; empty where it is not known."""


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


class Cause(StrEnum):
    """Why an event can be late, in the order in which it is asked: the first that holds is the cause; the last does."""

    GENERATOR = "generator-late"
    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"
    REPLICA_DEAD = "replica-dead"
    GROUP_STOPPED = "group-stopped"
    HANDOVER = "handover"
    REPLICA_STARTING = "replica-starting"
    BURST = "burst"
    OVERLOADED = "overloaded"


MEANINGS: Final[dict[Cause, str]] = {
    Cause.GENERATOR: "The generator sent it late; sent when intended, it would have been in time.",
    Cause.UPSTREAM: "It was on its way to Payment for too long: in the order service, or in the broker.",
    Cause.DOWNSTREAM: "Its own service took too long: whatever Payment calls was slow.",
    Cause.REPLICA_DEAD: "Its replica had died or was evicted, and its partition waited for a successor.",
    Cause.GROUP_STOPPED: "The whole group stood still for a rebalance.",
    Cause.HANDOVER: "Its partition was on its way from one replica to another.",
    Cause.REPLICA_STARTING: "A replica that had been asked for was not ready yet.",
    Cause.BURST: "More arrived at once than its replica serves within the target, though on average it keeps up.",
    Cause.OVERLOADED: "Its replica had more to do than it can do, for longer than a burst lasts.",
}
"""Cause → one sentence for the page."""


def cause_title(cause: str) -> str:
    """Return the cause's name as a reader wants it: "replica-dead" is "Replica dead"; unknown ones alike."""
    return cause.replace("-", " ").capitalize()


def cause_meaning(cause: str) -> str:
    """Return its sentence; empty for a cause that this version does not know."""
    return MEANINGS[Cause(cause)] if cause in set(Cause) else ""


class CauseOfLateness(msgspec.Struct, frozen=True, kw_only=True):
    """All late events of one cause."""

    cause: str
    """A `Cause`; text, for what later versions add."""
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
    """Why events were late. Exhaustive and exclusive: `causes` sum up to `late`."""

    late: int
    """Events over the latency target, never done ones included."""
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
    bound_replica_minutes: float | None
    """Of the clairvoyant bound, from the events of this very run: no less is possible."""
    bound_gap_replica_minutes: float | None = None
    """By how much the bound may be too low: seconds in which the search for the least was given up; 0: it is exact."""
    regret: float | None
    """requested / bound − 1."""
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
    """Among events of one customer in one partition; null where customers are not known."""
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
    """One of REBALANCE_KINDS."""
    members: int
    """Replicas of the newest plan."""
    moved: int
    """Partitions whose owner changed."""
    pause_s: float | None
    """Longest time that an event waited after its partition's old owner had done its last, and a plan was written."""
    plan_to_ready_s: float | None
    """From the plan until the last of these was served; null also where no plan caused the round."""


class RebalanceLengths(msgspec.Struct, frozen=True, kw_only=True):
    """The rounds of one delivery and kind with equally many members and moved partitions. Nearest rank."""

    delivery: str
    """How replicas carry out plans: incremental, eager, or the runtime's name."""
    kind: str
    members: int
    moved: int
    rounds: int
    measured: int
    """Rounds in which an event waited: those that the lengths are of."""
    pause_p50_s: float | None = None
    pause_p90_s: float | None = None
    pause_p99_s: float | None = None
    pause_max_s: float | None = None
    ready_p50_s: float | None = None
    """From the plan until all was served again; the ready_… are null where no plan caused the rounds."""
    ready_p90_s: float | None = None
    ready_p99_s: float | None = None
    ready_max_s: float | None = None


class Rebalances(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of a run."""

    delivery: str
    lengths: tuple[RebalanceLengths, ...]
    """By kind, members and moved."""
    rounds: tuple[RebalanceRound, ...]
    """In order of time."""
    rounds_left_out: int = 0
    """Older ones that are not listed."""

    @classmethod
    def of(cls, delivery: str, rounds: Iterable[RebalanceRound]) -> "Rebalances":
        """Return the rounds with the distribution of their lengths."""
        ordered = sorted(rounds, key=lambda one: (one.at_s, one.kind))
        groups: dict[tuple[int, int, int], list[RebalanceRound]] = {}
        for one in ordered:
            groups.setdefault((list(REBALANCE_KINDS).index(one.kind), one.members, one.moved), []).append(one)
        newest = ordered[-MOST_ROUNDS:]
        return cls(
            delivery=delivery,
            lengths=tuple(_lengths(delivery, some) for _, some in sorted(groups.items())),
            rounds=tuple(newest),
            rounds_left_out=len(ordered) - len(newest),
        )


def _lengths(delivery: str, some: list[RebalanceRound]) -> RebalanceLengths:
    """Return how long rounds of one kind with equally many members and moved partitions took."""
    return RebalanceLengths(
        delivery=delivery,
        kind=some[0].kind,
        members=some[0].members,
        moved=some[0].moved,
        rounds=len(some),
        measured=sum(one.pause_s is not None for one in some),
        **_ranks("pause", [one.pause_s for one in some]),
        **_ranks("ready", [one.plan_to_ready_s for one in some]),
    )


def _ranks(name: str, lengths_s: Iterable[float | None]) -> dict[str, float]:
    known_us = np.array([round(length * 1e6) for length in lengths_s if length is not None], np.int64)
    if not len(known_us):
        return {}
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {f"{name}_{rank}_s": percentile_us(known_us, share) / 1e6 for rank, share in ranks.items()}


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
    """One sentence."""
    valid: bool
    """Whether the measurement stands; says nothing about whether the promise was kept."""
    problems: tuple[str, ...]
    """Why it does not stand."""
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
    """Null where nobody counted the effects: somebody's own events."""
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
