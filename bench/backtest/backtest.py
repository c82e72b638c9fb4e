"""Compares scalers on past traffic: share in time, cost, the difference from today with an interval, a lower bound."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from bench.backtest.contenders import (
    EVERY,
    Question,
    Runs,
    block_table,
    failures,
    likely_counts,
    share_in_time,
)
from bench.backtest.parts import BOUND, Part, block_edges, parts_of, per_partition, run_part
from bench.jobs import Announce, Row, run
from bench.matrix import Contender
from loadgen.shapes import IntArray
from loadgen.trace import EventTrace, Trace
from report.measures import INTERVAL_QUANTILES, RESAMPLES, Floats, Interval, per_second_packing

HOUR_S: Final = 3600
DAY_S: Final = 86_400
BEFORE_S: Final = 300
TINY: Final = 1e-9
"""Denominator in place of 0, for blocks without events."""


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


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """A proven lower bound on the cost of all policies that meet the SLO."""

    replica_hours: float
    method: str


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the trace with its events/s, and the mean replicas and the share in time of each line, in order."""

    begin_s: int
    end_s: int
    events_per_s: float
    replicas: tuple[float, ...]
    in_time: tuple[float, ...]


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
    """Cost if each second's events were packed alone, with free starts and moves (report.measures). It is no bound:
    a policy may let a queue of one second wait for the next."""
    bound: Bound | None
    """None: no bound is known, for the reason in `notes`."""
    blocks: tuple[Block, ...]
    service_time_s: float
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
    runs, failed = Runs(question, parts, counts, run_jobs), list[str]()
    own, named = question.policies, [question.current.contender, *question.policies]
    few = ([part for part in parts if part.trace] or parts)[::EVERY]  # nothing can be tuned on a part without events
    fixed, tuned = likely_counts(question, counts), question.current.tuned()
    bound = Contender(policy=BOUND, set={"payment.runtime": "", "payment.rebalance_protocol": "incremental"})
    # while the first job compiles the policy, the others use the other cores
    runs.compute([(own, few[:1]), ([bound], parts), (tuned, few), (fixed, few), (named, parts)])
    chosen = [runs.cheapest(fixed, few), runs.cheapest(tuned, few)]
    contenders = [named[0], *(one for one in chosen if one), *own]
    rows, lines = runs.rows(contenders, parts), []
    scale = trace.duration_s / (counted_s := sum(part.end_s - part.begin_s for part in parts))
    for contender in contenders:
        if reasons := failures(rows[contender.label]):
            failed.append(f"{contender.label}: {reasons[0]}")
        else:
            lines.append(_line(contender, rows, question, scale, trace.duration_s / DAY_S))
    packed = per_second_packing(
        counts, service_rate=1 / question.service_time_s, latency_target_s=question.latency_target_s, bursts=False
    )
    bounds = runs.rows([bound], parts)[bound.label]
    unknown = failures(bounds)[:1]
    return Backtest(
        trace=trace.name,
        events=int(counts.sum()),
        duration_s=trace.duration_s,
        partitions=partitions,
        simulated_s=counted_s,
        lines=tuple(lines),
        packed_replica_hours=float(packed.sum()) / HOUR_S,
        bound=None if unknown else _bound(bounds, scale),
        blocks=tuple(_chart(rows, [line.name for line in lines], parts, counts)),
        service_time_s=question.service_time_s,
        worst=None if failed else _worst(own[0].label, rows, parts, counts),
        failed=tuple(failed),
        notes=(*question.current.notes, *unknown),
    )


def _bound(rows: Sequence[Sequence[Row]], scale: float) -> Bound:
    """Return the lowest bound of the spacings. A part without events has the minimum of replicas."""
    hours = min(sum(row["replica_s"][0] for row in some) for some in rows) * scale / HOUR_S
    return Bound(replica_hours=hours, method=next(row["method"] for some in rows for row in some if "method" in row))


def _chart(
    rows: Mapping[str, list[list[Row]]], names: Sequence[str], parts: Sequence[Part], counts: IntArray
) -> Iterator[Block]:
    tables = [block_table(rows[name]) for name in names]
    for place, (begin_s, end_s) in enumerate(block_edges(parts)):
        yield Block(
            begin_s=begin_s,
            end_s=end_s,
            events_per_s=float(counts[begin_s:end_s].sum()) / (end_s - begin_s),
            replicas=tuple(
                float(table[place, 2]) / (end_s - begin_s) / len(rows[name])
                for name, table in zip(names, tables, strict=True)
            ),
            in_time=tuple(share_in_time(table[place : place + 1]) for table in tables),
        )


def _line(
    contender: Contender, rows: Mapping[str, list[list[Row]]], question: Question, scale: float, days: float
) -> Line:
    """Return the figures. scale: duration of the trace divided by the time that was simulated and counted."""
    own, today = contender.label, question.current.contender.label
    spacings = [block_table([some]) for some in rows[own]]
    shares = [share_in_time(blocks) for blocks in spacings]
    costs = [scale * float(blocks[:, 2].sum()) / HOUR_S for blocks in spacings]
    late = [scale * float(blocks[:, 1].sum()) / days for blocks in spacings]
    compared = own != today and not failures(rows[today])
    pair = (block_table(rows[own]), block_table(rows[today])) if compared else None
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


def _interval(own: Floats, today: Floats, figure: Callable[[Floats, Floats], Floats]) -> Interval:
    """Return a figure of two contenders with its 95 % interval, from bootstrap samples of the blocks, paired."""
    total = [np.maximum(table.sum(axis=0), TINY) for table in (own, today)]
    chosen = np.random.default_rng(1).integers(0, len(own), (RESAMPLES, len(own)))
    samples = [np.maximum(table[chosen].sum(axis=1), TINY) for table in (own, today)]
    low, high = np.quantile(figure(*samples), INTERVAL_QUANTILES)
    return Interval(float(figure(*total)), float(low), float(high))


def _worst(name: str, rows: Mapping[str, list[list[Row]]], parts: Sequence[Part], counts: IntArray) -> Worst | None:
    """Return the block with the most late events; None if no event is late."""
    blocks = block_table(rows[name])
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
