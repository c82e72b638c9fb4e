"""What the experiments print with --json and keep as rows. Lengths of time in seconds; null: nothing was measured."""

from typing import Any

import msgspec

from bench.handover.setup import Question


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """What must not happen, counted."""

    lost: int
    """Events that the broker took and nobody finished."""
    duplicates: int
    """Completions of an event that had been completed before."""
    order_violations: int
    """Events finished after a later one of their partition; repeats do not count again."""
    offset_regressions: int
    """How often a committed offset was below one seen before."""


class Latencies(msgspec.Struct, frozen=True, kw_only=True):
    """Events in the windows of some steps."""

    handovers: int
    unfinished: int
    """Planned moves whose new owner was never seen."""
    moved_p99_s: float | None
    moved_p999_s: float | None
    moved_max_s: float | None
    unmoved_p99_s: float | None
    unmoved_max_s: float | None
    unmoved_extra_s: float | None
    """p99 of partitions that stay, within the windows, minus the p99 of quiet stretches."""
    stall_max_s: float
    """Longest time in which nobody finished an event although one was waiting."""
    plan_to_first_event_s: float | None
    """99th percentile."""


class KindFigures(Latencies, frozen=True, kw_only=True):
    """All steps of one kind, pooled."""

    kind: str
    steps: int
    moved_events: int
    moved_p50_s: float | None
    plan_to_first_event_p50_s: float | None
    pause_p50_s: float | None
    pause_p99_s: float | None
    """From the last event finished at the old owner to the first one started at the new one, an event waiting."""


class WorstEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The slowest event of a moved partition, and what happened around it. Times in seconds after the step."""

    latency_s: float
    kind: str
    partition: int
    source: str
    target: str
    step_at_us: int
    """When the step was, µs since the epoch."""
    intended_s: float
    done_s: float
    left_s: float
    """Last event finished at the old owner."""
    first_s: float
    """First event finished at the new owner."""


class HandoverFigures(Latencies, frozen=True, kw_only=True):
    """One experiment. What stands for the moved partitions is the worst of the kinds."""

    quiet_p99_s: float | None
    lost: int
    duplicates: int
    order_violations: int
    offset_regressions: int
    superseded: int
    """Planned moves that a later plan overtook before their first event: no handovers."""
    events: int
    kinds: tuple[KindFigures, ...]
    worst: WorstEvent | None


class FailoverFigures(Faults, frozen=True, kw_only=True):
    """Worst latency of any event after the end of a replica, by how it ended."""

    known_death_max_s: float | None
    """SIGKILL, and whoever started the process saw it end and said so."""
    unknown_death_max_s: float | None
    """SIGKILL, and nobody said so: the session has to time out."""
    sigterm_max_s: float | None
    """SIGTERM of a replica that holds partitions."""
    known_deaths_s: tuple[float, ...]
    """Worst latency of each, in order."""
    unknown_deaths_s: tuple[float, ...]
    sigterms_s: tuple[float, ...]
    kills: int
    sigterms: int
    unfinished: int
    events: int


class Outcome(Question, frozen=True, kw_only=True):
    """How an experiment was done and whether it counts."""

    lateness_p99_s: float
    """Of the generator."""
    lateness_max_s: float
    valid: bool
    """The generator was on time, and every step came to its end."""
    problem: str
    """Why not; empty where valid."""
    interrupted: bool
    wall_s: float

    def to_json(self) -> bytes:
        """Return one flat JSON object: the figures stand beside the rest."""
        flat: dict[str, Any] = msgspec.to_builtins(self)
        return msgspec.json.encode(flat.pop("figures", {}) | flat)


class HandoverResult(Outcome, frozen=True, kw_only=True):
    """`tailpack bench handover`."""

    steps: str
    """What was done: mixed, random, slow-event."""
    figures: HandoverFigures


class FailoverResult(Outcome, frozen=True, kw_only=True):
    """`tailpack bench failover`."""

    figures: FailoverFigures
