"""From evidence to figures. Percentiles are nearest rank, as everywhere (report.measures)."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from bench.handover.evidence import UNKNOWN, Evidence, IntArray, Mask, Served
from bench.handover.outcomes import FailoverFigures, Faults, HandoverFigures, KindFigures, Stretch, WorstEvent
from bench.handover.windows import Window, find_windows, overlapping, stall_us
from report.measures import percentile_us

KNOWN_DEATH = "known death"
UNKNOWN_DEATH = "unknown death"
SIGTERM = "sigterm"


def handovers(evidence: Evidence, *, service_time_s: float) -> HandoverFigures:
    """Return what the steps cost moved and unmoved partitions. service_time_s: of one event, for the pauses."""
    first = evidence.served.first_completions()
    windows = find_windows(evidence)
    by_kind = {kind: [one for one in windows if one.step.kind == kind] for kind in {one.step.kind for one in windows}}
    moved = {
        kind: _events(first, mine, (lambda window: window.moved) if evidence.owned else None)
        for kind, mine in by_kind.items()
    }
    apart = _events(first, windows, lambda window: window.step.apart)
    unmoved = ~np.logical_or.reduce([apart, *moved.values()])
    quiet_p99_s = rank_s(_quiet_us(first, evidence.quiet), 0.99)
    kinds = tuple(
        _kind(
            first,
            mine,
            moved=moved[kind],
            unmoved=unmoved & _events(first, mine),
            quiet_p99_s=quiet_p99_s,
            service_time_s=service_time_s,
        )
        for kind, mine in sorted(by_kind.items())
    )
    unmoved_us = first.latency_us[unmoved & _events(first, windows)]
    return HandoverFigures(
        handovers=sum(one.handovers for one in kinds),
        unfinished=sum(one.unfinished for one in kinds),
        moved_p99_s=_worst(one.moved_p99_s for one in kinds),
        moved_p999_s=_worst(one.moved_p999_s for one in kinds),
        moved_max_s=_worst(one.moved_max_s for one in kinds),
        unmoved_p99_s=rank_s(unmoved_us, 0.99),
        unmoved_max_s=rank_s(unmoved_us, 1.0),
        unmoved_extra_s=_above(rank_s(unmoved_us, 0.99), quiet_p99_s),
        stall_max_s=max((one.stall_max_s for one in kinds), default=0.0),
        plan_to_first_event_s=_worst(one.plan_to_first_event_s for one in kinds),
        quiet_p99_s=quiet_p99_s,
        **msgspec.structs.asdict(faults(evidence)),
        superseded=sum(len(window.superseded) for window in windows),
        events=len(evidence.sent_us),
        kinds=kinds,
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


def stretch(first: Served, from_us: int, to_us: int, *, latency_target_s: float) -> Stretch:
    """Return what the events lived through in [from_us, to_us]. first: first completions only."""
    latency_us = first.latency_us[overlapping(first, from_us, to_us)]
    after_us = first.done_us[(first.done_us >= from_us) & (first.done_us < to_us)] - from_us
    length_s = (to_us - from_us) / 1e6
    by_second = np.bincount(after_us // 1_000_000, minlength=int(length_s))[: int(length_s)]
    return Stretch(
        length_s=length_s,
        events=len(latency_us),
        late=int(np.count_nonzero(latency_us > round(latency_target_s * 1e6))),
        p50_s=rank_s(latency_us, 0.5),
        p99_s=rank_s(latency_us, 0.99),
        p999_s=rank_s(latency_us, 0.999),
        max_s=rank_s(latency_us, 1.0),
        throughput=len(after_us) / length_s if length_s > 0 else 0.0,
        worst_second=int(by_second.min()) if len(by_second) else None,
    )


def faults(evidence: Evidence) -> Faults:
    """Count what must not happen."""
    served, committed = evidence.served, evidence.committed
    first = served.first_completions()
    in_order = (first.offset[first.partition == partition] for partition in np.unique(first.partition))
    back = 0
    if len(committed):
        back = int(np.count_nonzero((committed != UNKNOWN) & (committed < np.maximum.accumulate(committed, axis=0))))
    return Faults(
        lost=int(np.count_nonzero(~np.isin(evidence.sent_us, served.intended_us))),
        duplicates=len(served) - len(first),
        order_violations=sum(int(np.count_nonzero(one < np.maximum.accumulate(one))) for one in in_order),
        offset_regressions=back,
    )


def rank_s(values_us: IntArray, percentile: float) -> float | None:
    """Return a percentile of µs in seconds; None of nothing."""
    return percentile_us(values_us, percentile) / 1e6 if len(values_us) else None


def _kind(
    first: Served,
    mine: Sequence[Window],
    *,
    moved: Mask,
    unmoved: Mask,
    quiet_p99_s: float | None,
    service_time_s: float,
) -> KindFigures:
    moved_us, unmoved_us = first.latency_us[moved], first.latency_us[unmoved]
    found = [one for window in mine for one in window.handovers]
    to_first_us = np.array([one.plan_to_first_event_us for one in found], dtype=np.int64)
    pauses_us = np.array([one.pause_us(service_time_s) for one in found], dtype=np.int64)
    return KindFigures(
        kind=mine[0].step.kind,
        steps=len(mine),
        handovers=len(found),
        unfinished=sum(len(window.missing) for window in mine),
        moved_events=len(moved_us),
        moved_p50_s=rank_s(moved_us, 0.5),
        moved_p99_s=rank_s(moved_us, 0.99),
        moved_p999_s=rank_s(moved_us, 0.999),
        moved_max_s=rank_s(moved_us, 1.0),
        unmoved_p99_s=rank_s(unmoved_us, 0.99),
        unmoved_max_s=rank_s(unmoved_us, 1.0),
        unmoved_extra_s=_above(rank_s(unmoved_us, 0.99), quiet_p99_s),
        stall_max_s=max(stall_us(first, one.step.at_us, one.ended_us) for one in mine) / 1e6,
        plan_to_first_event_p50_s=rank_s(to_first_us, 0.5),
        plan_to_first_event_s=rank_s(to_first_us, 0.99),
        pause_p50_s=rank_s(pauses_us, 0.5),
        pause_p99_s=rank_s(pauses_us, 0.99),
    )


def _events(first: Served, windows: Iterable[Window], among: Callable[[Window], Iterable[int]] | None = None) -> Mask:
    """Mark the events within the windows, of all partitions or of those that `among` names for each window."""
    chosen = np.zeros(len(first), dtype=bool)
    for window in windows:
        rows = overlapping(first, window.step.at_us, window.ended_us)
        chosen[rows if among is None else rows[np.isin(first.partition[rows], list(among(window)))]] = True
    return chosen


def _quiet_us(first: Served, stretches: Iterable[tuple[int, int]]) -> IntArray:
    """Return the latencies of the events that were intended within the stretches."""
    chosen = np.zeros(len(first), dtype=bool)
    for from_us, to_us in stretches:
        chosen |= (first.intended_us >= from_us) & (first.intended_us < to_us)
    return first.latency_us[chosen]


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
    return WorstEvent(
        latency_s=int(first.latency_us[row]) / 1e6,
        kind=handover.kind,
        partition=handover.move.partition,
        source=handover.move.source,
        target=handover.move.target,
        step_at_us=handover.at_us,
        intended_s=(int(first.intended_us[row]) - handover.at_us) / 1e6,
        done_s=(int(first.done_us[row]) - handover.at_us) / 1e6,
        left_s=(handover.left_us - handover.at_us) / 1e6,
        first_s=(handover.first_us - handover.at_us) / 1e6,
    )


def _above(p99_s: float | None, quiet_p99_s: float | None) -> float | None:
    return None if p99_s is None or quiet_p99_s is None else round(p99_s - quiet_p99_s, 6)


def _worst(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
