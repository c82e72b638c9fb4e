"""Evidence to figures. Percentiles are nearest rank, as everywhere (report.measures)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.handover import faults
from bench.handover.evidence import Evidence, IntArray, Served
from bench.handover.figures import HandoverFigures, KindFigures, WorstEvent
from bench.handover.windows import Handover, Mask, Window, find_windows, overlapping, stall_us
from report.measures import percentile_us


@dataclass(frozen=True, slots=True)
class _Touched:
    """Events of some steps: of partitions they moved, and of partitions that no step was moving just then."""

    moved: Mask
    unmoved: Mask


def judge(evidence: Evidence, *, service_time_s: float) -> HandoverFigures:
    """Return the figures of one experiment. service_time_s: what serving one event takes, for the pauses."""
    first = evidence.served.first_completions()
    found = find_windows(evidence)
    by_kind = {kind: [one for one in found if one.step.kind == kind] for kind in {one.step.kind for one in found}}
    moved = {kind: _moved(first, mine, owned=evidence.owned) for kind, mine in by_kind.items()}
    anyhow = np.logical_or.reduce([_apart(first, found), *moved.values()])
    quiet_p99_us = _percentile(_quiet(first, evidence.quiet), 0.99)
    kinds = []
    for kind, mine in sorted(by_kind.items()):
        touched = _Touched(moved[kind], _within(first, mine) & ~anyhow)
        kinds.append(_kind(first, mine, touched, quiet_p99_us, service_time_s))
    unmoved_us = first.latency_us[_within(first, found) & ~anyhow]
    return HandoverFigures(
        moved_p99_s=_worst(one.moved_p99_s for one in kinds),
        moved_p999_s=_worst(one.moved_p999_s for one in kinds),
        moved_max_s=_worst(one.moved_max_s for one in kinds),
        unmoved_p99_s=seconds(_percentile(unmoved_us, 0.99)),
        unmoved_max_s=seconds(_percentile(unmoved_us, 1.0)),
        unmoved_extra_s=_extra(_percentile(unmoved_us, 0.99), quiet_p99_us),
        quiet_p99_s=seconds(quiet_p99_us),
        stall_max_s=max((one.stall_max_s for one in kinds), default=0.0),
        plan_to_first_event_s=_worst(one.plan_to_first_event_s for one in kinds),
        lost=faults.lost(evidence.sent_us, evidence.served),
        duplicates=faults.duplicates(evidence.served),
        order_violations=faults.order_violations(evidence.served),
        offset_regressions=faults.offset_regressions(evidence.committed),
        handovers=sum(one.handovers for one in kinds),
        unfinished=sum(one.unfinished for one in kinds),
        events=len(evidence.sent_us),
        superseded=sum(len(window.superseded) for window in found),
        kinds=tuple(kinds),
        worst=_worst_event(first, found),
    )


def seconds(us: int | None) -> float | None:
    """Return µs as seconds; None stays None."""
    return None if us is None else us / 1e6


def _kind(
    first: Served, mine: Sequence[Window], touched: _Touched, quiet_p99_us: int | None, service_time_s: float
) -> KindFigures:
    moved_us, unmoved_us = first.latency_us[touched.moved], first.latency_us[touched.unmoved]
    handovers = [one for window in mine for one in window.handovers]
    to_first_us = _column(one.plan_to_first_event_us for one in handovers)
    pauses_us = _column(one.pause_us(service_time_s) for one in handovers)
    return KindFigures(
        kind=mine[0].step.kind,
        steps=len(mine),
        handovers=len(handovers),
        unfinished=sum(len(window.missing) for window in mine),
        moved_events=len(moved_us),
        moved_p50_s=seconds(_percentile(moved_us, 0.5)),
        moved_p99_s=seconds(_percentile(moved_us, 0.99)),
        moved_p999_s=seconds(_percentile(moved_us, 0.999)),
        moved_max_s=seconds(_percentile(moved_us, 1.0)),
        unmoved_p99_s=seconds(_percentile(unmoved_us, 0.99)),
        unmoved_max_s=seconds(_percentile(unmoved_us, 1.0)),
        unmoved_extra_s=_extra(_percentile(unmoved_us, 0.99), quiet_p99_us),
        stall_max_s=max(stall_us(first, one.step.at_us, one.ended_us) for one in mine) / 1e6,
        plan_to_first_event_p50_s=seconds(_percentile(to_first_us, 0.5)),
        plan_to_first_event_s=seconds(_percentile(to_first_us, 0.99)),
        pause_p50_s=seconds(_percentile(pauses_us, 0.5)),
        pause_p99_s=seconds(_percentile(pauses_us, 0.99)),
    )


def _within(first: Served, mine: Iterable[Window]) -> Mask:
    chosen = np.zeros(len(first), dtype=bool)
    for window in mine:
        chosen[overlapping(first, window.step.at_us, window.ended_us)] = True
    return chosen


def _moved(first: Served, mine: Iterable[Window], *, owned: bool) -> Mask:
    """Events in windows of partitions that these steps moved; without owners, every partition is touched."""
    chosen = np.zeros(len(first), dtype=bool)
    for window in mine:
        rows = overlapping(first, window.step.at_us, window.ended_us)
        touched = np.isin(first.partition[rows], window.moved) if owned else np.ones(len(rows), dtype=bool)
        chosen[rows[touched]] = True
    return chosen


def _apart(first: Served, found: Iterable[Window]) -> Mask:
    """Events of partitions that suffered for a reason of their own."""
    chosen = np.zeros(len(first), dtype=bool)
    for window in found:
        rows = overlapping(first, window.step.at_us, window.ended_us)
        chosen[rows[np.isin(first.partition[rows], window.step.apart)]] = True
    return chosen


def _quiet(first: Served, stretches: Iterable[tuple[int, int]]) -> IntArray:
    """Latencies of the events that were intended within the stretches."""
    chosen = np.zeros(len(first), dtype=bool)
    for from_us, to_us in stretches:
        chosen |= (first.intended_us >= from_us) & (first.intended_us < to_us)
    return first.latency_us[chosen]


def _worst_event(first: Served, found: Sequence[Window]) -> WorstEvent | None:
    worst: tuple[int, int, Window, Handover] | None = None
    for window in found:
        rows = overlapping(first, window.step.at_us, window.ended_us)
        for one in window.handovers:
            mine = rows[first.partition[rows] == one.move.partition]
            row = int(mine[np.argmax(first.latency_us[mine])])
            if worst is None or first.latency_us[row] > worst[0]:
                worst = (int(first.latency_us[row]), row, window, one)
    if worst is None:
        return None
    latency_us, row, window, handover = worst
    at_us = window.step.at_us
    return WorstEvent(
        latency_s=latency_us / 1e6,
        kind=window.step.kind,
        partition=handover.move.partition,
        source=handover.move.source,
        target=handover.move.target,
        step_at_us=at_us,
        intended_s=(int(first.intended_us[row]) - at_us) / 1e6,
        done_s=(int(first.done_us[row]) - at_us) / 1e6,
        left_s=(handover.left_us - at_us) / 1e6,
        first_s=(handover.first_us - at_us) / 1e6,
    )


def _column(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _percentile(values_us: IntArray, percentile: float) -> int | None:
    return percentile_us(values_us, percentile) if len(values_us) else None


def _extra(p99_us: int | None, quiet_p99_us: int | None) -> float | None:
    return None if p99_us is None or quiet_p99_us is None else (p99_us - quiet_p99_us) / 1e6


def _worst(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
