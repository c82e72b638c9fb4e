"""Compares scalers on past traffic: share in time, cost, the difference from today with an interval, a lower bound."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from autoscaler.policies.registry import fixed_count
from bench.backtest.current import Current
from bench.backtest.parts import Part, block_edges, parts_of, per_partition, replica_limit, run_part
from bench.matrix import FAILED, Announce, Contender, Job, Row, run, sorted_changes
from loadgen.schedule import Spacing
from loadgen.shapes import IntArray
from loadgen.trace import EventTrace, Trace
from report.measures import INTERVAL_QUANTILES, RESAMPLES, Floats, Interval, per_second_packing

BASE: Final = "w1"
"""Scenario with the defaults of all settings that the user does not state. The trace replaces its load."""
COUNTS: Final = (*range(1, 13), 15, 20, 25, 30, 40, 50, 75, 100)
"""Constant counts among which the cheapest one that meets the SLO is chosen."""
EVERY: Final = 4
"""Settings are tuned on every fourth part, if there are several."""
HOUR_S: Final = 3600
DAY_S: Final = 86_400
BEFORE_S: Final = 300
TINY: Final = 1e-9
"""Denominator in place of 0, for blocks without events."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison that a user asks for, with its conditions."""

    trace: Path
    current: Current
    policies: Sequence[str] = ("tail-aware",)
    set: Mapping[str, Any] = {}
    """Setting of a scenario → value, for all contenders."""
    service_time_s: float
    latency_target_s: float
    percentile: float
    """Share of events that must be in time, for example 0.999."""
    spacings: Sequence[Spacing] = (Spacing.SMOOTH,)
    """Distributions of the events within a second. Two of them give a band."""
    partitions: int
    """Number of partitions, for a trace that does not have it."""
    most: int
    """Maximum number of replicas."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one contender on the whole trace. Pairs are the lowest and the highest value of the band."""

    name: str
    policy: str
    settings: dict[str, Any]
    in_time: tuple[float, float]
    late_per_day: tuple[float, float]
    replica_hours: tuple[float, float]
    cost_change: Interval | None
    """Cost compared with today, as a share: −0.22 is 22 % less. The interval is over blocks. None for today."""
    in_time_change: Interval | None
    """Share in time minus that of today."""


class Worst(msgspec.Struct, frozen=True, kw_only=True):
    """The block in which the first policy has the most late events."""

    name: str
    """Name of the policy."""
    begin_s: int
    end_s: int
    in_time: float
    peak_events_per_s: int
    before_events_per_s: float
    """Mean rate of the five minutes before."""


class Backtest(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a question."""

    trace: str
    events: int
    duration_s: int
    partitions: int
    simulated_s: int
    """Simulated time that is counted. Shorter than `duration_s` if the trace was sampled."""
    lines: tuple[Line, ...]
    packed_replica_hours: float
    """Cost if each second's events were packed alone, with free starts and moves (report.measures)."""
    worst: Worst | None
    failed: tuple[str, ...]
    notes: tuple[str, ...]


def backtest(
    question: Question, trace: Trace | EventTrace, folder: Path, *, processes: int = 0, announce: Announce
) -> Backtest:
    """Answer a question by simulation. Rows are stored in `folder`. Raises InvalidSettingsError."""
    partitions = trace.partitions or question.partitions
    counts = per_partition(trace, partitions)
    parts = parts_of(trace, question.trace.absolute(), folder / "parts")
    run_jobs = partial(run, folder=folder, processes=processes, announce=announce, work=run_part)
    runs, failed = _Runs(question, parts, counts, run_jobs), list[str]()
    fixed = [Contender(policy=f"static-{count}", name=f"fixed {count}") for count in COUNTS if count <= question.most]
    own = [Contender(policy=policy) for policy in question.policies]
    named = [question.current.contender, *own]
    few = ([part for part in parts if part.trace] or parts)[::EVERY]  # nothing can be tuned on a part without events
    chosen = [runs.cheapest(some, few) for some in (fixed, question.current.tuned()) if some]
    contenders = [named[0], *(one for one in chosen if one), *own]
    rows, lines = runs.rows(contenders, parts), []
    counted_s = sum(part.end_s - part.begin_s for part in parts)
    for contender in contenders:
        if reasons := _failed(rows[contender.label]):
            failed.append(f"{contender.label}: {reasons[0]}")
        else:
            lines.append(_line(contender, rows, question, trace.duration_s / counted_s, trace.duration_s / DAY_S))
    packed = per_second_packing(
        counts, service_rate=1 / question.service_time_s, latency_target_s=question.latency_target_s, bursts=False
    )
    return Backtest(
        trace=trace.name,
        events=int(counts.sum()),
        duration_s=trace.duration_s,
        partitions=partitions,
        simulated_s=counted_s,
        lines=tuple(lines),
        packed_replica_hours=float(packed.sum()) / HOUR_S,
        worst=None if failed else _worst(own[0].label, rows, parts, counts),
        failed=tuple(failed),
        notes=question.current.notes,
    )


class _Runs:
    """Runs contenders on parts."""

    def __init__(
        self, question: Question, parts: Sequence[Part], counts: IntArray, run_jobs: Callable[..., dict[Job, Row]]
    ) -> None:
        self._question, self._run, self._partitions = question, run_jobs, counts.shape[1]
        self._starts = {part: counts[max(0, part.begin_s - part.warm_up_s) :][:60].sum(axis=1).mean() for part in parts}

    def rows(self, contenders: Sequence[Contender], parts: Sequence[Part]) -> dict[str, list[list[Row]]]:
        """Return for each contender, by label, the rows of the parts for each spacing."""
        jobs = {
            contender.label: [
                [self._job(contender, part, spacing) for part in parts] for spacing in self._question.spacings
            ]
            for contender in contenders
        }
        found = self._run([job for some in jobs.values() for own in some for job in own])
        return {label: [[found[job] for job in own] for own in some] for label, some in jobs.items()}

    def cheapest(self, contenders: Sequence[Contender], parts: Sequence[Part]) -> Contender | None:
        """Return the cheapest contender that meets the SLO, else the one with the most events in time."""
        rows = self.rows(contenders, parts)
        ranked = []
        for contender in contenders:
            if not _failed(rows[contender.label]):
                blocks = _blocks(rows[contender.label])
                share, spent = _share(blocks), float(blocks[:, 2].sum())
                met = share >= self._question.percentile
                ranked.append(((not met, spent if met else -share), contender))
        return min(ranked, key=lambda pair: pair[0])[1] if ranked else None

    def _job(self, contender: Contender, part: Part, spacing: Spacing) -> Job:
        question = self._question
        capacity = 1 / question.service_time_s
        needed = max(1, min(question.most, ceil(self._starts[part] / capacity)))
        changes = {
            "load.trace": str(part.trace or ""),
            "load.spacing": spacing.value,
            "payment.partitions": self._partitions,
            "autoscaler.max_replicas": question.most,
        }
        limits = changes | dict(question.set) | contender.set
        needed = min(needed, replica_limit(limits, "max_replicas", 0) or needed)  # 0: no limit
        needed = max(needed, replica_limit(limits, "min_replicas", 1))
        initial = {"autoscaler.initial_replicas": fixed_count(contender.policy) or needed}
        settings = sorted_changes(changes | initial, question.set, contender.set)
        return Job(scenario=BASE, policy=contender.policy, changes=settings, how=part.how)


def _line(
    contender: Contender, rows: Mapping[str, list[list[Row]]], question: Question, scale: float, days: float
) -> Line:
    """Return the figures. scale: duration of the trace divided by the time that was simulated and counted."""
    own, today = contender.label, question.current.contender.label
    spacings = [_blocks([some]) for some in rows[own]]
    shares = [_share(blocks) for blocks in spacings]
    costs = [scale * float(blocks[:, 2].sum()) / HOUR_S for blocks in spacings]
    late = [scale * float(blocks[:, 1].sum()) / days for blocks in spacings]
    compared = own != today and not _failed(rows[today])
    pair = (_blocks(rows[own]), _blocks(rows[today])) if compared else None
    return Line(
        name=own,
        policy=contender.policy,
        settings=dict(contender.set),
        in_time=(min(shares), max(shares)),
        late_per_day=(min(late), max(late)),
        replica_hours=(min(costs), max(costs)),
        cost_change=_interval(*pair, lambda a, b: a[..., 2] / b[..., 2] - 1) if pair else None,
        in_time_change=_interval(*pair, lambda a, b: b[..., 1] / b[..., 0] - a[..., 1] / a[..., 0]) if pair else None,
    )


def _failed(rows: Sequence[Sequence[Row]]) -> list[str]:
    return [row[FAILED] for some in rows for row in some if FAILED in row]


def _blocks(rows: Sequence[Sequence[Row]]) -> Floats:
    """Return events, late events and replica-seconds of each block, summed over the spacings: shape (blocks, 3)."""
    tables = [np.concatenate([[row["events"], row["late"], row["replica_s"]] for row in some], axis=1) for some in rows]
    return np.asarray(sum(tables), dtype=np.float64).T


def _share(blocks: Floats) -> float:
    events, late, _ = blocks.sum(axis=0)
    return float(1 - late / events) if events else 1.0


def _interval(own: Floats, today: Floats, figure: Callable[[Floats, Floats], Floats]) -> Interval:
    """Return a figure of two contenders with its 95 % interval, from bootstrap samples of the blocks, paired."""
    total = [np.maximum(table.sum(axis=0), TINY) for table in (own, today)]
    chosen = np.random.default_rng(1).integers(0, len(own), (RESAMPLES, len(own)))
    samples = [np.maximum(table[chosen].sum(axis=1), TINY) for table in (own, today)]
    low, high = np.quantile(figure(*samples), INTERVAL_QUANTILES)
    return Interval(float(figure(*total)), float(low), float(high))


def _worst(name: str, rows: Mapping[str, list[list[Row]]], parts: Sequence[Part], counts: IntArray) -> Worst | None:
    """Return the block with the most late events; None if no event is late."""
    blocks = _blocks(rows[name])
    at = int(blocks[:, 1].argmax())
    events, late, _ = blocks[at]
    if not late:
        return None
    begin_s, end_s = list(block_edges(parts))[at]
    totals = counts.sum(axis=1)
    before = totals[max(0, begin_s - BEFORE_S) : begin_s]
    return Worst(
        name=name,
        begin_s=begin_s,
        end_s=end_s,
        in_time=float(1 - late / events),
        peak_events_per_s=int(totals[begin_s:end_s].max()),
        before_events_per_s=float(before.mean()) if len(before) else 0.0,
    )
