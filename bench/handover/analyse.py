"""From evidence to figures. Percentiles are nearest rank, as everywhere (report.measures)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from bench.handover.evidence import UNKNOWN, Evidence, IntArray, Mask, Served
from bench.handover.outcomes import FailoverFigures, Faults, HandoverFigures, KindFigures, WorstEvent
from bench.handover.windows import Window, find_windows, overlapping, stall_us
from report.measures import percentile_us

KNOWN_DEATH = "known death"
UNKNOWN_DEATH = "unknown death"
SIGTERM = "sigterm"


def handovers(evidence: Evidence) -> HandoverFigures:
    """Return what the steps cost moved and unmoved partitions."""
    first = evidence.served.first_completions()
    windows = find_windows(evidence)
    kinds = sorted({one.step.kind for one in windows})
    by_kind = {kind: [one for one in windows if one.step.kind == kind] for kind in kinds}
    moved = {
        kind: _events(first, mine, (lambda window: window.moved) if evidence.owned else None)
        for kind, mine in by_kind.items()
    }
    apart = _events(first, windows, lambda window: window.step.apart)
    unmoved = ~np.logical_or.reduce([apart, *moved.values()])
    quiet = np.zeros(len(first), dtype=bool)
    for from_us, to_us in evidence.quiet:
        quiet |= (first.intended_us >= from_us) & (first.intended_us < to_us)
    quiet_p99_s = rank_s(first.latency_us[quiet], 0.99)

    def latencies(mine: Sequence[Window]) -> dict[str, Any]:
        """What all kinds have in common: the partitions that stay."""
        unmoved_us = first.latency_us[unmoved & _events(first, mine)]
        p99_s = rank_s(unmoved_us, 0.99)
        return {
            "handovers": sum(len(window.handovers) for window in mine),
            "unfinished": sum(len(window.missing) for window in mine),
            "unmoved_p99_s": p99_s,
            "unmoved_max_s": rank_s(unmoved_us, 1.0),
            "unmoved_extra_s": None if p99_s is None or quiet_p99_s is None else round(p99_s - quiet_p99_s, 6),
            "stall_max_s": max((stall_us(first, one.step.at_us, one.ended_us) for one in mine), default=0) / 1e6,
        }

    def of_kind(kind: str, mine: Sequence[Window]) -> KindFigures:
        moved_us = first.latency_us[moved[kind]]
        found = [one for window in mine for one in window.handovers]
        to_first_us = [one.plan_to_first_event_us for one in found]
        pauses_us = [one.pause_us for one in found]
        return KindFigures(
            **latencies(mine),
            kind=kind,
            steps=len(mine),
            moved_events=len(moved_us),
            moved_p50_s=rank_s(moved_us, 0.5),
            moved_p99_s=rank_s(moved_us, 0.99),
            moved_p999_s=rank_s(moved_us, 0.999),
            moved_max_s=rank_s(moved_us, 1.0),
            plan_to_first_event_p50_s=rank_s(to_first_us, 0.5),
            plan_to_first_event_s=rank_s(to_first_us, 0.99),
            pause_p50_s=rank_s(pauses_us, 0.5),
            pause_p99_s=rank_s(pauses_us, 0.99),
        )

    figures = tuple(of_kind(*pair) for pair in by_kind.items())
    return HandoverFigures(
        **latencies(windows),
        **msgspec.structs.asdict(faults(evidence)),
        moved_p99_s=_worst(one.moved_p99_s for one in figures),
        moved_p999_s=_worst(one.moved_p999_s for one in figures),
        moved_max_s=_worst(one.moved_max_s for one in figures),
        plan_to_first_event_s=_worst(one.plan_to_first_event_s for one in figures),
        quiet_p99_s=quiet_p99_s,
        superseded=sum(len(window.superseded) for window in windows),
        events=len(evidence.sent_us),
        kinds=figures,
        worst=_worst_event(first, windows),
    )


def failover(evidence: Evidence) -> FailoverFigures:
    """Return what the ends of replicas cost the events of all partitions."""
    first = evidence.served.first_completions()
    windows = find_windows(evidence)
    worst_s: dict[str, list[float]] = {KNOWN_DEATH: [], UNKNOWN_DEATH: [], SIGTERM: []}
    for window in windows:
        if window.step.kind in worst_s:
            latency_us = first.latency_us[overlapping(first, window.step.at_us, window.ended_us)]
            worst_s[window.step.kind].append(int(latency_us.max(initial=0)) / 1e6)
    known, unknown, sigterms = worst_s.values()
    return FailoverFigures(
        known_death_max_s=max(known, default=None),
        unknown_death_max_s=max(unknown, default=None),
        sigterm_max_s=max(sigterms, default=None),
        known_deaths_s=tuple(known),
        unknown_deaths_s=tuple(unknown),
        sigterms_s=tuple(sigterms),
        kills=len(known) + len(unknown),
        sigterms=len(sigterms),
        unfinished=sum(len(window.missing) for window in windows),
        events=len(evidence.sent_us),
        **msgspec.structs.asdict(faults(evidence)),
    )


def faults(evidence: Evidence) -> Faults:
    """Count what must not happen."""
    served, committed = evidence.served, evidence.committed
    first = served.first_completions()
    in_order = (first.offset[first.partition == partition] for partition in np.unique(first.partition))
    back = (committed != UNKNOWN) & (committed < np.maximum.accumulate(committed, axis=0))
    return Faults(
        lost=int(np.count_nonzero(~np.isin(evidence.sent_us, served.intended_us))),
        duplicates=len(served) - len(first),
        order_violations=sum(int(np.count_nonzero(one < np.maximum.accumulate(one))) for one in in_order),
        offset_regressions=int(np.count_nonzero(back)),
    )


def rank_s(values_us: IntArray | Sequence[int], percentile: float) -> float | None:
    """Return a percentile of µs in seconds; None of nothing."""
    return percentile_us(np.asarray(values_us, dtype=np.int64), percentile) / 1e6 if len(values_us) else None


def _events(first: Served, windows: Iterable[Window], among: Callable[[Window], Iterable[int]] | None = None) -> Mask:
    """Mark the events within the windows, of all partitions or of those that `among` names for each window."""
    chosen = np.zeros(len(first), dtype=bool)
    for window in windows:
        rows = overlapping(first, window.step.at_us, window.ended_us)
        chosen[rows if among is None else rows[np.isin(first.partition[rows], list(among(window)))]] = True
    return chosen


def _worst_event(first: Served, windows: Iterable[Window]) -> WorstEvent | None:
    candidates = []
    for window in windows:
        rows = overlapping(first, window.step.at_us, window.ended_us)
        for one in window.handovers:
            mine = rows[first.partition[rows] == one.move.partition]
            candidates.append((int(mine[np.argmax(first.latency_us[mine])]), one))
    if not candidates:
        return None
    row, handover = max(candidates, key=lambda one: first.latency_us[one[0]])
    step, move = handover.step, handover.move

    def after_s(moment_us: int) -> float:
        return (int(moment_us) - step.at_us) / 1e6

    return WorstEvent(
        latency_s=int(first.latency_us[row]) / 1e6,
        kind=step.kind,
        partition=move.partition,
        source=move.source,
        target=move.target,
        step_at_us=step.at_us,
        intended_s=after_s(first.intended_us[row]),
        done_s=after_s(first.done_us[row]),
        left_s=after_s(handover.left_us),
        first_s=after_s(handover.first_us),
    )


def _worst(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
