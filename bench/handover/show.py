"""Results kept as rows, and shown as tables, on a terminal as in the documentation, and as a picture. Milliseconds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench import results
from bench.handover.outcomes import FailoverResult, HandoverResult, Outcome
from bench.handover.setup import PROCESSES
from bench.markdown import Columns, known
from bench.results import Origin

QUESTION: Final = ("steps", "replicas", "partitions", "rate", "quick", "runtime", "heartbeat_s", "launcher")
"""What tells one question from another; a field that a result does not have tells nothing."""
FILES: Final[dict[type[msgspec.Struct], str]] = {
    HandoverResult: "handover",
    FailoverResult: "handover-failover",
}
"""Where the results of a kind are kept, in bench/reference."""


def keep(result: Outcome, origin: Origin, into: Path) -> None:
    """Keep it as a row in the place of the answer that the same question had before."""
    results.keep(FILES[type(result)], [result], origin, into, _question)


def show(result: Outcome, console: Console) -> None:
    """Print a result."""
    console.print(
        f"{result.runtime}, heartbeat {result.heartbeat_s:g} s, {result.replicas} replicas, {result.partitions} "
        f"partitions, {result.rate:g} events/s: {result.wall_s:.0f} s. Latencies in milliseconds.",
        highlight=False,
    )
    if isinstance(result, HandoverResult):
        by_kind = Table(*KINDS, box=None)
        for pair in _by_kind([result]):
            by_kind.add_row(*(cell(pair) for cell in KINDS.values()))
        console.print(by_kind)
    lines = Table(box=None, show_header=False)
    for header, cell in SHOWN[type(result)].items():
        lines.add_row(header, cell(result))
    console.print(lines)
    if isinstance(result, HandoverResult) and (worst := result.figures.worst):
        console.print(
            f"worst: {_ms(worst.latency_s)} ms in partition {worst.partition}, {worst.kind}, {worst.source} → "
            f"{worst.target}: intended {_ms(worst.intended_s)} ms and done {_ms(worst.done_s)} ms after the step; "
            f"the old owner's last {_ms(worst.left_s)}, the new one's first {_ms(worst.first_s)}",
            highlight=False,
        )


def _ms(*values_s: float | None) -> str:
    return " / ".join(known(value, 1e3, ",.0f") for value in values_s)


def _faults(found: Any) -> str:
    counts = (found.lost, found.duplicates, found.order_violations, found.offset_regressions)
    return " / ".join(f"{count:,}" for count in counts)


def _question(row: msgspec.Struct) -> tuple[str | float, ...]:
    return tuple(getattr(row, name, "") for name in QUESTION)


def _group(row: Any) -> str:
    return f"{_runtime(row)}, {row.heartbeat_s:g} s"


def _runtime(row: Any) -> str:
    return f"{row.runtime}{'' if getattr(row, 'launcher', PROCESSES) == PROCESSES else ' as pods'}"


def _size(row: Any) -> str:
    return f"{row.replicas} / {row.partitions} / {row.rate:g}"


def _by_kind(results: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return (result, figures of one kind of step), in order of the names."""
    pairs = [(row, kind) for row in results for kind in row.figures.kinds]
    return sorted(pairs, key=lambda pair: [cell(pair) for cell in KINDS.values()])


FAULTS: Final = "lost / duplicates / disorder / offsets back"
RUNTIMES: Final[Columns] = {
    "runtime": _runtime,
    "heartbeat": lambda row: f"{row.heartbeat_s:g} s",
    "handovers": lambda row: str(row.figures.handovers),
    "moved p99 / p99.9 / max": lambda row: _ms(
        row.figures.moved_p99_s, row.figures.moved_p999_s, row.figures.moved_max_s
    ),
    "others p99 / above quiet": lambda row: _ms(row.figures.unmoved_p99_s, row.figures.unmoved_extra_s),
    "plan → first event, p99": lambda row: _ms(row.figures.plan_to_first_event_s),
    "stall": lambda row: _ms(row.figures.stall_max_s),
    FAULTS: lambda row: _faults(row.figures),
}
KINDS: Final[Columns] = {
    "step, delivery, heartbeat": lambda pair: f"{pair[1].kind}, {_group(pair[0])}",
    "handovers": lambda pair: str(pair[1].handovers),
    "moved p50 / p99 / p99.9 / max": lambda pair: _ms(
        pair[1].moved_p50_s, pair[1].moved_p99_s, pair[1].moved_p999_s, pair[1].moved_max_s
    ),
    "others p99 / max": lambda pair: _ms(pair[1].unmoved_p99_s, pair[1].unmoved_max_s),
    "plan → first event p50 / p99": lambda pair: _ms(pair[1].plan_to_first_event_p50_s, pair[1].plan_to_first_event_s),
    "pause p50 / p99": lambda pair: _ms(pair[1].pause_p50_s, pair[1].pause_p99_s),
}
STEPS: Final[Columns] = {
    "steps": lambda row: f"{row.steps}, {_runtime(row)}",
    "replicas / partitions / events/s": _size,
    "handovers": lambda row: f"{row.figures.handovers:,}",
    "moved p99 / p99.9 / max": RUNTIMES["moved p99 / p99.9 / max"],
    "others p99 / max": lambda row: _ms(row.figures.unmoved_p99_s, row.figures.unmoved_max_s),
    FAULTS: lambda row: _faults(row.figures),
}
FAILOVER: Final[Columns] = {
    "delivery, heartbeat": _group,
    "known deaths: worst": lambda row: f"{len(row.figures.known_deaths_s)}: {_ms(row.figures.known_death_max_s)}",
    "unknown deaths: worst": lambda row: f"{len(row.figures.unknown_deaths_s)}: {_ms(row.figures.unknown_death_max_s)}",
    "SIGTERM: worst": lambda row: f"{row.figures.sigterms}: {_ms(row.figures.sigterm_max_s)}",
    "lost / duplicates": lambda row: f"{row.figures.lost} / {row.figures.duplicates}",
}
SHOWN: Final[dict[type[Outcome], Columns]] = {
    HandoverResult: RUNTIMES,
    FailoverResult: FAILOVER,
}
"""What a terminal shows of each result, a line for each column."""
