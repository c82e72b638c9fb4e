"""The data of the charts as JSON: series, plans, failures, episodes and heat map.

In long runs an entry covers several seconds. It is the largest value of these, as an average would hide peaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from report.causes import cause_title
from report.result import HeatMap, LateEpisode, PlanDecision, Result
from report.wording import duration

Values = Sequence[float | None]
Floats = NDArray[np.float64]
MAX_ENTRIES: Final = 3_600
"""Maximum number of entries of a series: one per second in a run of an hour, one per ten seconds in ten hours."""
MAX_HEAT_CELLS: Final = 40_000
"""Maximum number of cells of the heat map, summed over all partitions."""
COLOUR_BOUNDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0)
"""Bounds between the colours of the heat map, in latency targets: blue within the target, orange beyond it."""
MAX_PLANS: Final = 300
"""Maximum number of plans on a page, which lists those that moved the most partitions."""
MAX_EPISODES: Final = 300
"""Maximum number of groups of late events on a page, which lists the largest."""
MAX_GAP_S: Final = 5.0
"""Late events of one cause and one plan belong to one group if they are at most this far apart."""
ACTIONS: Final = frozenset({"up", "down", "reassign"})


@dataclass(frozen=True, slots=True)
class LateGroup:
    """Late events of one cause under one plan, close in time. Times are in seconds since the start of the run."""

    worst: LateEpisode
    from_s: float
    until_s: float
    events: int
    partitions: list[int]
    replicas: list[str]
    episodes: int


def panels(result: Result) -> dict[str, dict[str, Values]]:
    """Return panel → line → value of each second, latencies in ms. Lines without any known value are left out."""
    run = result.series
    found: dict[str, dict[str, Values]] = {
        "Events per second": {"arrivals": run.arrivals, "done": run.done},
        "Replicas": {"packing": run.packing_replicas, "requested": run.requested_replicas, "ready": run.ready_replicas},
        "Lag, events": {"lag": run.lag},
        "Latency, ms": {
            name: [None if value is None else round(value * 1000, 1) for value in values]
            for name, values in (("max", run.max_s), ("p99", run.p99_s))
        },
    }
    return {
        panel: {name: values for name, values in lines.items() if any(value is not None for value in values)}
        for panel, lines in found.items()
    }


def chart_data(result: Result) -> str:
    """Return the data as JSON that is safe inside a script element."""
    step = bucket(len(result.series.arrivals), MAX_ENTRIES)
    plans = {id(plan): row for row, plan in enumerate(listed_decisions(result))}
    happened: list[tuple[float, str, str | int]] = [
        (round(plan.at_s, 3), plan.action if plan.action in ACTIONS else "other", plans.get(id(plan), ""))
        for plan in result.decisions
    ]
    happened += [
        (round(each.at_s, 3), "failure", f"{each.replica} {each.change}" + (each.detail and f" ({each.detail})"))
        for each in result.failures
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
        "unchanged": [*{each.at_s // step: (round(each.at_s, 3), each.reason) for each in result.no_changes}.values()],
        "episodes": [
            [round(each.from_s, 3), round(each.until_s, 3), each.partitions, each.events]
            for each in listed_episodes(result)
        ],
        "heat": heat(result.heat, result.latency_target_s),
    }
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")


def late_by_cause(result: Result, step: int) -> dict[str, Floats]:
    """Return cause → late events of the worst second in each `step` seconds; the most frequent cause comes first."""
    late = result.tail.by_second if result.tail else {}
    ordered = sorted((cause for cause in late if sum(late[cause])), key=lambda cause: (-sum(late[cause]), cause))
    if not ordered:
        return {}
    table = np.stack([np.nan_to_num(entries(late[cause], step)) for cause in ordered])
    worst = table.sum(axis=0).argmax(axis=1)
    return {cause: rows[np.arange(len(worst)), worst] for cause, rows in zip(ordered, table, strict=True)}


def heat(found: HeatMap | None, target_s: float) -> dict[str, Any] | None:
    """Return the worst latency (ms) of each partition and cell, and the owners; None if nothing is known."""
    if found is None or not any(found.max_s):
        return None
    step = bucket(max(map(len, found.max_s)), max(1, MAX_HEAT_CELLS // len(found.partitions)))
    owned = tenures(found)
    owners = sorted({owner for spans in owned.values() for _, owner in spans}, key=lambda name: (len(name), name))
    return {
        "cell": step * found.cell_s,
        "bounds": [round(bound * target_s * 1000, 3) for bound in COLOUR_BOUNDS],
        "partitions": found.partitions,
        "worst": [short(np.round(largest(row, step) * 1000, 1)) for row in found.max_s],
        "owners": owners,
        "held": [[[at_s, owners.index(owner)] for at_s, owner in owned[partition]] for partition in found.partitions],
    }


def heat_key(target_s: float) -> list[tuple[str, str]]:
    """Return CSS class and label of each colour; the label of the latency target says so."""
    at = [duration(bound * target_s) + " (target)" * (bound == 1) for bound in COLOUR_BOUNDS]
    return [(f"heat-{level}", words) for level, words in enumerate([*(f"≤ {bound}" for bound in at), f"> {at[-1]}"])]


def bucket(number: int, limit: int) -> int:
    """Return the number of values per entry, so that `number` values give at most `limit` (≥ 1) entries."""
    return max(1, -(-number // limit))


def largest(values: Values, step: int) -> Floats:
    """Return the largest known value of each `step` values; NaN if none is known."""
    return np.asarray(np.fmax.reduce(entries(values, step), axis=1))


def entries(values: Values, step: int) -> Floats:
    """Return the values as rows of `step` values. Unknown values and the missing end of the last row are NaN."""
    known = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return np.append(known, np.full(-len(known) % step, np.nan)).reshape(-1, step)


def short(values: Floats) -> list[float | int | None]:
    """Shorten the values for JSON: whole numbers become integers, NaN becomes null."""
    return [None if np.isnan(value) else int(value) if value == int(value) else value for value in values.tolist()]


def listed_decisions(result: Result) -> list[PlanDecision]:
    """Return the decisions that the page lists, by time."""
    return sorted(sorted(result.decisions, key=lambda plan: -plan.moved)[:MAX_PLANS], key=lambda plan: plan.at_s)


def listed_episodes(result: Result) -> list[LateGroup]:
    """Return the largest groups of late events, by time."""
    groups: list[list[LateEpisode]] = []
    newest: dict[tuple[str, int | None], list[LateEpisode]] = {}
    for episode in sorted(result.tail.episodes if result.tail else (), key=lambda one: one.from_s):
        group = newest.get((episode.cause, episode.epoch))
        if group is None or episode.from_s - max(one.until_s for one in group) > MAX_GAP_S:
            group = newest[episode.cause, episode.epoch] = []
            groups.append(group)
        group.append(episode)
    largest = sorted(map(_late_group, groups), key=lambda group: -group.events)[:MAX_EPISODES]
    return sorted(largest, key=lambda group: (group.from_s, group.partitions))


def _late_group(some: list[LateEpisode]) -> LateGroup:
    return LateGroup(
        worst=max(some, key=lambda one: np.inf if one.worst_s is None else one.worst_s),  # None: never completed
        from_s=some[0].from_s,
        until_s=max(one.until_s for one in some),
        events=sum(one.events for one in some),
        partitions=sorted({one.partition for one in some if one.partition is not None}),
        replicas=sorted({one.replica for one in some if one.replica}),
        episodes=len(some),
    )


def tenures(heat: HeatMap) -> dict[int, list[tuple[float, str]]]:
    """Return partition → its owners, each with the time in s from which the heat map shows it."""
    found: dict[int, list[tuple[float, str]]] = {partition: [] for partition in heat.partitions}
    for since, owners in zip(found.values(), heat.owners, strict=False):
        for cell, owner in enumerate(owners):
            if owner is not None and (not since or owner != since[-1][1]):
                since.append((cell * heat.cell_s, owner))
    return found
