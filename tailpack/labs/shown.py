"""Results on a terminal."""

from rich.console import Console
from rich.table import Table

from bench.handover.outcome import (
    BounceResult,
    FailoverResult,
    Faults,
    GrowthResult,
    HandoverResult,
    Outcome,
    ScaleResult,
)
from bench.handover.stretch import Stretch


def show_handover(result: HandoverResult, console: Console) -> None:
    """Print one row for each kind of step, then what must be zero, then the worst event."""
    figures = result.figures
    table = Table("step", "handovers", "moved p50 / p99 / p99.9 / max", "others p99 / max", "plan → first", box=None)
    for one in figures.kinds:
        moved = (one.moved_p50_s, one.moved_p99_s, one.moved_p999_s, one.moved_max_s)
        table.add_row(
            one.kind,
            str(one.handovers),
            _ms(*moved),
            _ms(one.unmoved_p99_s, one.unmoved_max_s),
            _ms(one.plan_to_first_event_p50_s, one.plan_to_first_event_s),
        )
    _heading(result, console, f"{figures.handovers} handovers, {result.steps}")
    console.print(table)
    console.print(
        f"others in quiet stretches: p99 {_ms(figures.quiet_p99_s)} ms; longest stall {_ms(figures.stall_max_s)} ms; "
        f"{figures.lost} lost, {figures.duplicates} duplicates, {figures.order_violations} out of order, "
        f"{figures.offset_regressions} committed offsets that went back, {figures.unfinished} moves unfinished",
        highlight=False,
    )
    if worst := figures.worst:
        console.print(
            f"worst: {_ms(worst.latency_s)} ms in partition {worst.partition}, {worst.kind}, {worst.source} → "
            f"{worst.target}: intended {_ms(worst.intended_s)} ms and done {_ms(worst.done_s)} ms after the step; "
            f"the old owner's last {_ms(worst.left_s)}, the new one's first {_ms(worst.first_s)}",
            highlight=False,
        )


def show_failover(result: FailoverResult, console: Console) -> None:
    """Print one row for each way to end."""
    figures = result.figures
    table = Table("end of a replica", "times", "worst latency, ms", "each", box=None)
    for what, worst, each in (
        ("SIGKILL, known", figures.known_death_max_s, figures.known_deaths_s),
        ("SIGKILL, unknown", figures.unknown_death_max_s, figures.unknown_deaths_s),
        ("SIGTERM", figures.sigterm_max_s, figures.sigterms_s),
    ):
        table.add_row(what, str(len(each)), _ms(worst), _ms(*each))
    _heading(result, console, f"{figures.kills} kills, {figures.sigterms} stops")
    console.print(table)
    console.print(
        f"{figures.lost} lost, {figures.duplicates} duplicates, {figures.order_violations} out of order, "
        f"{figures.offset_regressions} committed offsets that went back",
        highlight=False,
    )


def show_scale(result: ScaleResult, console: Console) -> None:
    """Print how long the plans took, and what they cost."""
    figures = result.figures
    _heading(result, console, f"{result.plans} plans, each of which moves {result.moved} partitions")
    _lines(
        console,
        ("plan → carried out everywhere, p50 / max", _ms(result.applied_p50_s, result.applied_max_s)),
        ("rounds for one plan, at most", str(result.rounds_max)),
        ("pause of a moved partition, p50 / max", _ms(result.pause_p50_s, result.pause_max_s)),
        ("moved partitions, p99 / max", _ms(figures.moved_p99_s, figures.moved_max_s)),
        ("others, p99 / max", _ms(figures.unmoved_p99_s, figures.unmoved_max_s)),
        ("others in quiet stretches, p99", _ms(figures.quiet_p99_s)),
        ("start of the group", _ms(result.startup_s)),
        ("lost / duplicates / out of order", f"{figures.lost} / {figures.duplicates} / {figures.order_violations}"),
    )


def show_growth(result: GrowthResult, console: Console) -> None:
    """Print how soon the group was stable, and what partitions felt that were there before."""
    _heading(result, console, f"grown from {result.partitions_before} partitions in {result.steps} steps")
    _lines(
        console,
        ("the whole growth, s", f"{result.growth_s:.1f}"),
        ("stable after a growth, p50 / max", _ms(result.stable_p50_s, result.stable_max_s)),
        ("stable after the last", _ms(result.stable_after_last_s)),
        ("rounds", str(result.rounds)),
        ("all to one replica: stable after, rounds", f"{_ms(result.shrink_s)}, {result.shrink_rounds}"),
        ("throughput against the quiet stretch", f"{100 * result.throughput_share:.1f} %"),
        *_stretches(result.quiet, result.growing, "growing"),
        _faults(result.faults),
    )


def show_bounce(result: BounceResult, console: Console) -> None:
    """Print what the events felt."""
    _heading(result, console, f"{result.bounces} replicas replaced")
    _lines(
        console,
        (f"events above {result.latency_target_s:g} s", f"{result.late} of {result.bouncing.events}"),
        *_stretches(result.quiet, result.bouncing, "bouncing"),
        _faults(result.faults),
    )


def _stretches(quiet: Stretch, busy: Stretch, what: str) -> tuple[tuple[str, str], ...]:
    return (
        ("quiet: p50 / p99 / p99.9 / max", _ms(quiet.p50_s, quiet.p99_s, quiet.p999_s, quiet.max_s)),
        (f"{what}: p50 / p99 / p99.9 / max", _ms(busy.p50_s, busy.p99_s, busy.p999_s, busy.max_s)),
        ("events in the poorest second, quiet / then", f"{quiet.worst_second} / {busy.worst_second}"),
    )


def _faults(found: Faults) -> tuple[str, str]:
    return (
        "lost / duplicates / out of order / offsets back",
        f"{found.lost} / {found.duplicates} / {found.order_violations} / {found.offset_regressions}",
    )


def _lines(console: Console, *lines: tuple[str, str]) -> None:
    table = Table(box=None, show_header=False)
    for what, value in lines:
        table.add_row(what, value)
    console.print(table)


def _heading(result: Outcome, console: Console, what: str) -> None:
    console.print(
        f"{result.runtime}, heartbeat {result.heartbeat_s:g} s, {result.replicas} replicas, "
        f"{result.partitions} partitions, {result.rate:g} events/s: {what} in {result.wall_s:.0f} s. Milliseconds.",
        highlight=False,
    )


def _ms(*values_s: float | None) -> str:
    return " / ".join("–" if value is None else f"{1e3 * value:.0f}" for value in values_s)
