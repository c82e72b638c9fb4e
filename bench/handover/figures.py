"""Compute the figures of the benchmarks from the evidence. Times are in seconds; None: nothing was measured."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from bench.benchmark import Row
from bench.handover.evidence import UNKNOWN, Evidence, IntArray, first_completions
from bench.handover.windows import Window, find_windows, stall_us, under_way
from report.measures import percentile_us

KNOWN_DEATH: Final = "known death"
UNKNOWN_DEATH: Final = "unknown death"
SIGTERM: Final = "sigterm"
TIMES: Final = tuple(f"{time}_{rank}_s" for time in ("taken", "ownerless", "pause") for rank in ("p50", "p99"))
COSTS: Final = ("unmoved_extra_s", "lost", "duplicates")
MOVED: Final = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}


def handovers(evidence: Evidence) -> Row:
    """Return the latencies of events in the windows of the steps, for moved and for unmoved partitions.

    A partition is taken when its new owner reports it. Before that, it is ownerless for a time.

    moved_…: highest value of any kind of step. unmoved_extra_s: p99 latency of unmoved partitions minus p99 latency in
    quiet periods. stall_max_s: longest time without a finished event while an event waited. unfinished: planned moves
    after which the new owner finished no event.
    """
    first, windows = first_completions(evidence.served), find_windows(evidence)
    latency_us = first["done_us"] - first["intended_us"]
    unmoved = ~under_way(first, windows, moved=True)
    quiet = np.zeros(len(first), dtype=bool)
    for from_us, to_us in evidence.quiet:
        quiet |= (first["intended_us"] >= from_us) & (first["intended_us"] < to_us)
    quiet_p99_s = rank_s(latency_us[quiet], 0.99)

    def common_figures(some: Sequence[Window]) -> Row:
        unmoved_us = latency_us[unmoved & under_way(first, some)]
        p99_s = rank_s(unmoved_us, 0.99)
        return {
            "handovers": sum(len(window.handovers) for window in some),
            "unfinished": sum(len(window.missing) for window in some),
            "unmoved_p99_s": p99_s,
            "unmoved_max_s": rank_s(unmoved_us, 1.0),
            "unmoved_extra_s": None if p99_s is None or quiet_p99_s is None else round(p99_s - quiet_p99_s, 6),
            "stall_max_s": max((stall_us(first, each.step.at_us, each.ended_us) for each in some), default=0) / 1e6,
        }

    def of_kind(kind: str) -> Row:
        some = [window for window in windows if window.step.kind == kind]
        moved_us = latency_us[under_way(first, some, moved=True)]
        to_first_us = [handover.plan_to_first_event_us for window in some for handover in window.handovers]
        pauses_us = [handover.pause_us for window in some for handover in window.handovers]
        return {
            "kind": kind,
            "steps": len(some),
            "moved_events": len(moved_us),
            **{f"moved_{name}_s": rank_s(moved_us, q) for name, q in MOVED.items()},
            "plan_to_first_event_p50_s": rank_s(to_first_us, 0.5),
            "plan_to_first_event_s": rank_s(to_first_us, 0.99),
            "pause_p50_s": rank_s(pauses_us, 0.5),
            "pause_p99_s": rank_s(pauses_us, 0.99),
            **common_figures(some),
        }

    kinds = [of_kind(kind) for kind in sorted({window.step.kind for window in windows})]
    worst = ("moved_p99_s", "moved_p999_s", "moved_max_s", "plan_to_first_event_s")
    times = takings(evidence) | {"pause": [handover.pause_us for window in windows for handover in window.handovers]}
    return {
        **{f"{name}_{rank}_s": rank_s(each, MOVED[rank]) for name, each in times.items() for rank in ("p50", "p99")},
        **{name: max((row[name] for row in kinds if row[name] is not None), default=None) for name in worst},
        **common_figures(windows),
        "quiet_p99_s": quiet_p99_s,
        **faults(evidence),
        "events": int(evidence.ends.sum()),
        "kinds": kinds,
    }


def takings(evidence: Evidence) -> dict[str, list[int]]:
    """Return the times until the new owners of planned moves report them, and the times without any owner, µs."""
    taken_us, ownerless_us = list[int](), list[int]()
    for step in evidence.steps:
        before = {one.replica: one.partitions for one in evidence.claims if one.at_us < step.at_us}
        within = [one for one in evidence.claims if step.at_us <= one.at_us <= step.until_us]
        for partition, owner in (step.moves or {}).items():
            old = [name for name, owned in before.items() if partition in owned]
            gone = [one.at_us for one in within if one.replica in old and partition not in one.partitions]
            came = [one.at_us for one in within if one.replica == owner and partition in one.partitions]
            taken_us += [at_us - step.at_us for at_us in came[:1]]
            ownerless_us += [max(0, came[0] - gone[0])] if came and gone else []
    return {"taken": taken_us, "ownerless": ownerless_us}


def failover(evidence: Evidence) -> Row:
    """Return the worst latency of any event after the end of a replica, by kind of end.

    A known death is a SIGKILL, followed by a plan with an eviction. After an unknown death, a SIGKILL without a plan,
    the replica's session must time out.
    """
    first, windows = first_completions(evidence.served), find_windows(evidence)

    def worst_s(kind: str) -> list[float]:
        masks = [under_way(first, [window]) for window in windows if window.step.kind == kind]
        return [int((first["done_us"] - first["intended_us"])[rows].max(initial=0)) / 1e6 for rows in masks]

    known, unknown, sigterms = map(worst_s, (KNOWN_DEATH, UNKNOWN_DEATH, SIGTERM))
    return {
        "known_death_max_s": max(known, default=None),
        "unknown_death_max_s": max(unknown, default=None),
        "sigterm_max_s": max(sigterms, default=None),
        "kills": len(known) + len(unknown),
        "sigterms": len(sigterms),
        "unfinished": sum(len(window.missing) for window in windows),
        "events": int(evidence.ends.sum()),
        **faults(evidence),
    }


def faults(evidence: Evidence) -> dict[str, int]:
    """Count violations of the guarantees.

    lost: events in the broker that no replica finished. duplicates: completions beyond the first of each event.
    order_violations: events first completed after a later event of their partition.
    offset_regressions: committed offsets that were lower than an earlier one.
    """
    served, committed = evidence.served, evidence.committed
    first = first_completions(served)
    ordered = (first["offset"][first["partition"] == partition] for partition in np.unique(first["partition"]))
    back = (committed != UNKNOWN) & (committed < np.maximum.accumulate(committed, axis=0))
    return {
        "lost": int(evidence.ends.sum()) - len(first),
        "duplicates": len(served) - len(first),
        "order_violations": sum(int(np.count_nonzero(offsets < np.maximum.accumulate(offsets))) for offsets in ordered),
        "offset_regressions": int(np.count_nonzero(back)),
    }


def rank_s(values_us: IntArray | Sequence[int], percentile: float) -> float | None:
    """Return a percentile in seconds; None without values."""
    return percentile_us(np.asarray(values_us, dtype=np.int64), percentile) / 1e6 if len(values_us) else None
