"""The rows of the page's tables: texts only."""

from typing import Final

import numpy as np

from report.causes import Cause, title
from report.page.drawing.scales import clock
from report.page.happenings import Tenures
from report.page.reduction import bucket, floats, reduce
from report.page.traces import PANELS, late_by_second, series
from report.result import STAGES, Breakdown, Cost, Integrity, Result
from report.wording import count, duration, minutes, moment, several, share

Rows = list[list[str]]
Columns = list[tuple[str, str]]
STAGE_COLUMNS: Final[Columns] = [
    ("stage", ""), *((name, "number") for name in ("p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "events")),
]  # fmt: skip
BREAKDOWN_COLUMNS: Final[Columns] = [
    ("", ""), *((name, "number") for name in ("events", "late", "in time", "p50", "p99", "p99.9", "max")),
]  # fmt: skip
STRETCHES: Final = 60
"""Rows of the table over time."""
OWNERS_TOLD: Final = 30
"""Replicas that are named for one partition."""


def stages(result: Result) -> Rows:
    """Return a row for each stage."""
    spans = STAGES if result.topology == "pipeline" else STAGES | {"queueing": "placed → received by Payment"}
    return [
        [
            spans.get(stage.stage, stage.stage),
            *map(
                duration,
                (stage.p50_s, stage.p90_s, stage.p95_s, stage.p99_s, stage.p999_s, stage.p9999_s, stage.max_s),
            ),
            count(stage.events),
        ]
        for stage in result.stages
    ]


def breakdowns(result: Result) -> list[tuple[str, Rows]]:
    """Return title and rows of each breakdown that is known."""
    of = result.breakdowns
    lists = (("By replica", of.replicas), ("By partition", of.partitions), ("By plan", of.epochs))
    return [(words, list(map(_breakdown, some))) for words, some in lists if some]


def over_time(result: Result) -> tuple[Columns, Rows, str]:
    """Return columns and rows of the table that stands for the drawing over time, and what a row holds."""
    seconds = len(result.series.arrivals)
    step = bucket(max(seconds, 1), STRETCHES)
    known = series(result)
    traces = [trace for panel in PANELS for trace in panel.traces if trace.name in known]
    high = {trace.name: reduce(known[trace.name], step).high for trace in traces}
    columns = [("from", "number"), *((trace.label + trace.unit.replace("/s", ", /s"), "number") for trace in traces)]
    late = _late(result, step)
    rows = [
        [
            clock(k * step),
            *(_number(high[trace.name][k]) for trace in traces),
            *([count(int(late[k]))] if len(late) else []),
        ]
        for k in range(-(-seconds // step))
    ]
    columns += [("late events", "number")] if len(late) else []
    note = (
        "One row for each second."
        if step == 1
        else f"Each row holds {several(step, 'second')}: the largest value of each, and the sum of late events."
    )
    return columns, rows, note


def owners(result: Result, held: Tenures) -> Rows:
    """Return partition, its worst latency, and who served it since when."""
    if result.heat is None:
        return []
    rows = []
    for partition, cells in zip(result.heat.partitions, result.heat.max_s, strict=True):
        some = held.get(partition, [])
        words = ", ".join(f"{owner} ({moment(at_s)})" for at_s, owner in some[:OWNERS_TOLD])
        left_out = f" and {several(len(some) - OWNERS_TOLD, 'change')} more" if len(some) > OWNERS_TOLD else ""
        worst_s = max((value for value in cells if value is not None), default=None)
        rows.append([str(partition), duration(worst_s), words + left_out or "–"])
    return rows


def cost(result: Result) -> Rows:
    """Return name, number and meaning of what was done."""
    rows = [
        ["ups", count(result.scale_ups), ""],
        ["downs", count(result.scale_downs), ""],
        ["reassignments", count(result.reassignments), "the same replicas, other owners"],
        ["partitions moved", count(result.moved_partitions), "over all plans"],
    ]
    if result.cost:
        up, down = result.cost.largest_up, result.cost.largest_down
        rows[0][2] = f"the largest added {several(up, 'replica')}" if up else ""
        rows[1][2] = f"the largest gave back {several(down, 'replica')}" if down else ""
        score = result.cost.rebalance_score
        rows.append(["Rscore", "–" if score is None else f"{score:.3f}", "work that moved per plan, in replicas"])
    return rows


def cost_bars(result: Result) -> list[tuple[str, str, float]]:
    """Return label, text and length in percent of each kind of replica-minutes that is known."""
    if result.cost is None:
        return []
    kinds = [
        ("requested (paid for)", result.cost.requested_replica_minutes),
        ("ready (could serve)", result.cost.ready_replica_minutes),
        ("bound (known afterwards)", result.cost.bound_replica_minutes),
    ]
    some = [(label, value) for label, value in kinds if value is not None]
    longest = max([value for _, value in some], default=0) or 1
    return [(label, minutes(value), 100 * value / longest) for label, value in some]


def cost_words(result: Result) -> str:
    """Return one sentence on cost and regret."""
    if result.cost is None or result.cost.requested_replica_minutes is None:
        return "What was requested is not known."
    paid = f"{minutes(result.cost.requested_replica_minutes)} replica-minutes were paid for"
    if result.cost.regret is None or result.cost.bound_replica_minutes is None:
        return f"{paid}; the bound is not known."
    regret = result.cost.regret
    return (
        f"{paid}, {abs(regret) * 100:.1f} % {'more' if regret >= 0 else 'less'} than the "
        f"{minutes(result.cost.bound_replica_minutes)} of the bound: the least that hold each second's own events, "
        f"known only afterwards (regret){_unsure(result.cost)}."
    )


def _unsure(cost: Cost) -> str:
    gap = cost.bound_gap_replica_minutes
    return f"; the least may be up to {minutes(gap)} more, its search was given up in some seconds" if gap else ""


def integrity(found: Integrity | None) -> Rows:
    """Return what must not be, and how often it was; – where that is not known."""
    if found is None:
        return []
    rows: dict[str, int | None] = {
        "events lost": found.lost,
        "duplicate records": found.duplicates,
        "done out of order, within a partition": found.order_violations_partition,
        "done out of order, within a key": found.order_violations_key,
        "offsets that no event has": found.offset_gaps,
        "times after the report was made": found.future,
        **{f"negative time, {STAGES.get(stage, stage)}": number for stage, number in found.clock_skew.items()},
    }
    return [[words, "–" if number is None else count(number)] for words, number in rows.items()]


def late_words(result: Result) -> str:
    """Return one sentence on what was late, and why mostly."""
    tail = result.tail
    if tail is None or not tail.late:
        return f"Not one of {count(result.events)} events was late."
    verb = "was" if tail.late == 1 else "were"
    return (
        f"{count(tail.late)} of {count(result.events)} events {verb} not done within "
        f"{duration(result.latency_target_s)} ({share(1 - tail.late / max(result.events, 1))} in time). "
        "Each has one cause, the first that holds for it, asked in this order: "
        f"{', '.join(title(cause).lower() for cause in Cause)}."
    )


def late_lead(result: Result) -> str:
    """Return why most events were late, for the head of the page; empty where none was, or no cause is known."""
    if result.tail is None or not result.tail.causes:
        return ""
    causes = ", ".join(f"{count(one.events)} {title(one.cause).lower()}" for one in result.tail.causes)
    return f"Late: {several(result.tail.late, 'event')}. By cause: {causes}."


def _breakdown(one: Breakdown) -> list[str]:
    in_time = share(1 - one.late / one.events) if one.events else "–"
    times = map(duration, (one.p50_s, one.p99_s, one.p999_s, one.max_s))
    return [one.name, count(one.events), count(one.late), in_time, *times]


def _late(result: Result, step: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    by_second = late_by_second(result)
    if not by_second:
        return np.array([])
    total = np.sum([floats(counts) for counts in by_second.values()], axis=0)
    return np.add.reduceat(total, np.arange(0, len(total), step))


def _number(value: float) -> str:
    return "–" if value != value else f"{value:,.10g}"  # noqa: PLR0124  NaN differs from itself
