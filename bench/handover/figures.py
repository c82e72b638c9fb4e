"""The figures of an experiment on handovers, as `tailpack bench handover --json` prints them. Seconds; null: none."""

import msgspec


class KindFigures(msgspec.Struct, frozen=True, kw_only=True):
    """All steps of one kind, pooled."""

    kind: str
    steps: int
    handovers: int
    unfinished: int
    """Planned moves whose new owner was never seen."""
    moved_events: int
    moved_p50_s: float | None
    moved_p99_s: float | None
    moved_p999_s: float | None
    moved_max_s: float | None
    unmoved_p99_s: float | None
    unmoved_max_s: float | None
    unmoved_extra_s: float | None
    stall_max_s: float
    plan_to_first_event_p50_s: float | None
    plan_to_first_event_s: float | None
    """99th percentile."""
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


class HandoverFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment. The headline of moved partitions is the worst of the kinds."""

    moved_p99_s: float | None
    moved_p999_s: float | None
    moved_max_s: float | None
    unmoved_p99_s: float | None
    unmoved_max_s: float | None
    unmoved_extra_s: float | None
    """p99 of partitions that stay, within the windows, minus the p99 of quiet stretches."""
    quiet_p99_s: float | None
    stall_max_s: float
    plan_to_first_event_s: float | None
    lost: int
    duplicates: int
    order_violations: int
    offset_regressions: int
    handovers: int
    unfinished: int
    superseded: int
    """Planned moves that a later plan overtook before their first event: no handovers."""
    events: int
    kinds: tuple[KindFigures, ...]
    worst: WorstEvent | None
