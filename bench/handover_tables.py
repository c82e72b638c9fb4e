"""Tables of what handovers cost, for the documentation. Milliseconds unless a column says otherwise."""

from collections.abc import Callable, Sequence
from typing import Final

from bench.figures import BounceRow, DeliveryRow, FailoverRow, GrowthRow, HandoverRow, ScaleRow, load
from bench.markdown import known, table

MIXED: Final = "mixed"


def runtimes() -> str:
    """Return the runtimes side by side, under the same steps."""
    found = [row for row in load(HandoverRow) if row.steps == MIXED]
    rows = [
        (
            row.runtime,
            f"{row.heartbeat_s:g} s",
            str(row.figures.handovers),
            ms(row.figures.moved_p99_s, row.figures.moved_p999_s, row.figures.moved_max_s),
            ms(row.figures.unmoved_p99_s, row.figures.unmoved_extra_s),
            ms(row.figures.plan_to_first_event_s),
            ms(row.figures.stall_max_s),
            zeros(row),
        )
        for row in sorted(found, key=lambda row: (row.heartbeat_s, row.figures.moved_p99_s or 0.0))
    ]
    header = (
        "runtime",
        "heartbeat",
        "handovers",
        "moved p99 / p99.9 / max",
        "others p99 / above quiet",
        "plan → first event, p99",
        "stall",
        "lost / duplicates / disorder / offsets back",
    )
    return table(header, rows, (row.origin for row in found))


def kinds() -> str:
    """Return the kinds of steps of the runtimes that take a plan."""
    found = [row for row in load(HandoverRow) if row.steps == MIXED and row.runtime in {"incremental", "eager"}]
    rows = [
        (
            f"{kind.kind}, {row.runtime}, {row.heartbeat_s:g} s",
            str(kind.handovers),
            ms(kind.moved_p50_s, kind.moved_p99_s, kind.moved_p999_s, kind.moved_max_s),
            ms(kind.unmoved_p99_s, kind.unmoved_max_s),
            ms(kind.plan_to_first_event_p50_s, kind.plan_to_first_event_s),
            ms(kind.pause_p50_s, kind.pause_p99_s),
        )
        for row in found
        for kind in row.figures.kinds
    ]
    header = (
        "step, delivery, heartbeat",
        "handovers",
        "moved p50 / p99 / p99.9 / max",
        "others p99 / max",
        "plan → first event p50 / p99",
        "pause p50 / p99",
    )
    return table(header, sorted(rows), (row.origin for row in found))


def steps() -> str:
    """Return random plans, storms and slow events."""
    found = [row for row in load(HandoverRow) if row.steps != MIXED]
    rows = [
        (
            f"{row.steps}, {row.runtime}",
            f"{row.replicas} / {row.partitions} / {row.rate:g}",
            f"{row.figures.handovers:,}",
            ms(row.figures.moved_p99_s, row.figures.moved_p999_s, row.figures.moved_max_s),
            ms(row.figures.unmoved_p99_s, row.figures.unmoved_max_s),
            zeros(row),
        )
        for row in found
    ]
    header = (
        "steps",
        "replicas / partitions / events/s",
        "handovers",
        "moved p99 / p99.9 / max",
        "others p99 / max",
        "lost / duplicates / disorder / offsets back",
    )
    return table(header, rows, (row.origin for row in found))


def failover() -> str:
    """Return what the end of a replica costs."""
    found = load(FailoverRow)
    rows = [
        (
            f"{row.runtime}, {row.heartbeat_s:g} s",
            f"{len(row.figures.known_deaths_s)}: {ms(row.figures.known_death_max_s)}",
            f"{len(row.figures.unknown_deaths_s)}: {ms(row.figures.unknown_death_max_s)}",
            f"{row.figures.sigterms}: {ms(row.figures.sigterm_max_s)}",
            f"{row.figures.lost} / {row.figures.duplicates}",
        )
        for row in found
    ]
    header = (
        "delivery, heartbeat",
        "known deaths: worst",
        "unknown deaths: worst",
        "SIGTERM: worst",
        "lost / duplicates",
    )
    return table(header, rows, (row.origin for row in found))


def scale() -> str:
    """Return how soon a large group carries out a plan."""
    found = load(ScaleRow)
    rows = [
        (
            row.runtime,
            f"{row.replicas} / {row.partitions} / {row.rate:g}",
            f"{row.plans} × {row.moved}",
            ms(row.applied_p50_s, row.applied_max_s),
            ms(row.pause_p50_s, row.pause_max_s),
            ms(row.figures.moved_p99_s, row.figures.moved_max_s),
        )
        for row in found
    ]
    header = (
        "delivery",
        "replicas / partitions / events/s",
        "plans × partitions moved",
        "carried out p50 / max",
        "pause p50 / max",
        "moved p99 / max",
    )
    return table(header, rows, (row.origin for row in found))


def growth() -> str:
    """Return a topic's growth, and all of it going to one replica."""
    found = load(GrowthRow)
    rows = [
        (
            row.runtime,
            f"{row.partitions_before} → {row.partitions} by {row.step}",
            f"{row.growth_s:.0f} s, {row.rounds} rounds",
            ms(row.stable_p50_s, row.stable_max_s),
            ms(row.stable_after_last_s),
            ms(row.shrink_s),
            f"{100 * row.throughput_share:.1f} %",
            ms(row.quiet.p99_s, row.growing.p99_s),
        )
        for row in found
    ]
    header = (
        "delivery",
        "partitions",
        "growth",
        "stable after each, p50 / max",
        "stable after the last",
        "all to one replica",
        "throughput against quiet",
        "p99 of the first partitions, quiet / growing",
    )
    return table(header, rows, (row.origin for row in found))


def bounce() -> str:
    """Return rolling replacements."""
    found = load(BounceRow)
    rows = [
        (
            f"{row.runtime}, {row.heartbeat_s:g} s",
            str(row.bounces),
            f"{row.late} of {row.bouncing.events:,}",
            ms(row.bouncing.p50_s, row.bouncing.p99_s, row.bouncing.p999_s, row.bouncing.max_s),
            ms(row.quiet.p50_s, row.quiet.p99_s, row.quiet.p999_s, row.quiet.max_s),
        )
        for row in found
    ]
    header = ("delivery, heartbeat", "replaced", "late events", "p50 / p99 / p99.9 / max", "the same when quiet")
    return table(header, rows, (row.origin for row in found))


def delivery() -> str:
    """Return live runs under each way to deliver plans."""
    found = load(DeliveryRow)
    rows = [
        (
            f"{row.scenario}, {row.policy}",
            f"{row.runtime}, {row.heartbeat_s:g} s" + ("" if row.valid else " (invalid)"),
            f"{100 * row.in_sla:.3f}",
            ms(row.p50_s, row.p99_s, row.p999_s, row.max_s),
            known(row.replica_minutes, 1, ".2f"),
            f"{row.scale_ups}/{row.scale_downs}/{row.reassignments}",
            str(row.lost),
        )
        for row in found
    ]
    header = (
        "scenario, policy",
        "runtime, heartbeat",
        "in SLA %",
        "p50 / p99 / p99.9 / max",
        "r-m",
        "ups/downs/reassigns",
        "lost",
    )
    return table(header, rows, (row.origin for row in found))


def ms(*values_s: float | None) -> str:
    """Return seconds as milliseconds."""
    return " / ".join(known(value, 1e3, ",.0f") for value in values_s)


def zeros(row: HandoverRow) -> str:
    """Return what must not happen, counted."""
    found = row.figures
    counts: Sequence[int] = (found.lost, found.duplicates, found.order_violations, found.offset_regressions)
    return " / ".join(f"{count:,}" for count in counts)


HANDOVER_TABLES: Final[dict[str, Callable[[], str]]] = {
    "handover-runtimes": runtimes,
    "handover-kinds": kinds,
    "handover-steps": steps,
    "failover": failover,
    "handover-scale": scale,
    "handover-growth": growth,
    "handover-bounce": bounce,
    "handover-delivery": delivery,
}
