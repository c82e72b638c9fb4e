"""What the page's script draws: the run's series and what happened, as JSON.

Averages and samples lose the very second that matters; so of the seconds that share an entry the largest value stays.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from report.causes import cause_title
from report.result import HeatMap, LateEpisode, PlanDecision, Result
from report.wording import duration

Values = Sequence[float | None]
Floats = NDArray[np.float64]
ENTRIES: Final = 3_600
"""Entries of one series: an hour by the second, ten hours in steps of ten."""
CELLS: Final = 40_000
"""Of the heat map, all partitions together."""
BOUNDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0)
"""Between the classes of colour, in latency targets: blue within the target, orange beyond, ever further from paper."""
PLANS_SHOWN: Final = 300
"""Plans that a page lists; of more, those that moved the most partitions."""
EPISODES_SHOWN: Final = 300
"""Late-event episodes that a page lists; of more, the largest."""
ACTIONS: Final = frozenset({"up", "down", "reassign"})


def panels(result: Result) -> dict[str, dict[str, Values]]:
    """Return panel → line → one value for each second, without lines of which nothing is known. Latencies are in ms."""
    of = result.series
    found: dict[str, dict[str, Values]] = {
        "Events per second": {"arrivals": of.arrivals, "done": of.done},
        "Replicas": {"packing": of.packing_replicas, "requested": of.requested_replicas, "ready": of.ready_replicas},
        "Lag, events": {"lag": of.lag},
        "Latency, ms": {
            name: [None if value is None else round(value * 1000, 1) for value in values]
            for name, values in (("max", of.max_s), ("p99", of.p99_s))
        },
    }
    return {
        panel: {name: values for name, values in lines.items() if any(value is not None for value in values)}
        for panel, lines in found.items()
    }


def chart_data(result: Result) -> str:
    """Return JSON that is safe inside a script element."""
    step = bucket(len(result.series.arrivals), ENTRIES)
    plans = {id(made): row for row, made in enumerate(decisions_shown(result))}
    happened: list[tuple[float, str, str | int]] = [
        (round(made.at_s, 3), made.action if made.action in ACTIONS else "other", plans.get(id(made), ""))
        for made in result.decisions
    ]
    happened += [
        (round(one.at_s, 3), "failure", f"{one.replica} {one.change}" + (f" ({one.detail})" if one.detail else ""))
        for one in result.failures
    ]
    data = {
        "seconds": len(result.series.arrivals),
        "step": step,
        "target": result.latency_target_s * 1000,
        "percentile": result.percentile,
        "panels": {
            panel: {name: short(largest(values, step)) for name, values in lines.items()}
            for panel, lines in panels(result).items()
            if lines
        },
        "late": {cause_title(cause): [cause, short(values)] for cause, values in late_by_cause(result, step).items()},
        "curve": {
            "latency": [round(max(value * 1000, 1e-3), 4) for value in result.distribution.latency_s],
            "share": result.distribution.share,
            "nines": max(3, int(np.ceil(np.log10(max(result.events, 10))))),
        },
        "happened": happened,
        "episodes": [
            [round(one.from_s, 3), round(one.until_s, 3), one.partition, one.events] for one in episodes_shown(result)
        ],
        "heat": heat(result.heat, result.latency_target_s),
    }
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")


def late_by_cause(result: Result, step: int) -> dict[str, Floats]:
    """Return cause → late events, of each `step` seconds those of the worst second; the most frequent cause first."""
    late = result.tail.by_second if result.tail else {}
    ordered = sorted((cause for cause in late if sum(late[cause])), key=lambda cause: (-sum(late[cause]), cause))
    if not ordered:
        return {}
    table = np.stack([np.nan_to_num(entries(late[cause], step)) for cause in ordered])
    worst = table.sum(axis=0).argmax(axis=1)
    return {cause: rows[np.arange(len(worst)), worst] for cause, rows in zip(ordered, table, strict=True)}


def heat(found: HeatMap | None, target_s: float) -> dict[str, Any] | None:
    """Return the worst latency (ms) of each partition and cell, and who served it; None where nothing is known."""
    if found is None or not any(found.max_s):
        return None
    step = bucket(max(map(len, found.max_s)), max(1, CELLS // len(found.partitions)))
    held = tenures(found)
    owners = sorted({owner for some in held.values() for _, owner in some})
    return {
        "cell": step * found.cell_s,
        "bounds": [round(bound * target_s * 1000, 3) for bound in BOUNDS],
        "partitions": found.partitions,
        "worst": [short(np.round(largest(row, step) * 1000, 1)) for row in found.max_s],
        "owners": owners,
        "held": [[[at_s, owners.index(owner)] for at_s, owner in held[partition]] for partition in found.partitions],
    }


def heat_key(target_s: float) -> list[tuple[str, str]]:
    """Return class and words of every colour."""
    at = [duration(bound * target_s) for bound in BOUNDS]
    return [(f"heat-{level}", words) for level, words in enumerate([*(f"≤ {bound}" for bound in at), f"> {at[-1]}"])]


def bucket(number: int, limit: int) -> int:
    """Return how many values share an entry, so that at most `limit` entries come out. limit: at least 1."""
    return max(1, -(-number // limit))


def largest(values: Values, step: int) -> Floats:
    """Return the largest known value of every `step`; NaN where none is known."""
    return np.asarray(np.fmax.reduce(entries(values, step), axis=1))


def entries(values: Values, step: int) -> Floats:
    """Return the values in rows of `step`, NaN for what is not known; the last row is filled up with NaN."""
    known = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return np.append(known, np.full(-len(known) % step, np.nan)).reshape(-1, step)


def short(values: Floats) -> list[float | int | None]:
    """Return the values as short as JSON allows: whole ones without a point, null for NaN."""
    return [None if np.isnan(value) else int(value) if value == int(value) else value for value in values.tolist()]


def decisions_shown(result: Result) -> list[PlanDecision]:
    """Return the decisions that the page lists, by time."""
    return sorted(sorted(result.decisions, key=lambda made: -made.moved)[:PLANS_SHOWN], key=lambda made: made.at_s)


def episodes_shown(result: Result) -> list[LateEpisode]:
    """Return the late-event episodes that the page lists, by time."""
    largest = sorted(result.tail.episodes, key=lambda one: -one.events)[:EPISODES_SHOWN] if result.tail else []
    return sorted(largest, key=lambda one: (one.from_s, one.partition or 0))


def tenures(heat: HeatMap) -> dict[int, list[tuple[float, str]]]:
    """Return partition → since when, and who served it from then on, as far as the heat map shows it."""
    found: dict[int, list[tuple[float, str]]] = {partition: [] for partition in heat.partitions}
    for since, owners in zip(found.values(), heat.owners, strict=False):
        for cell, owner in enumerate(owners):
            if owner is not None and (not since or owner != since[-1][1]):
                since.append((cell * heat.cell_s, owner))
    return found
