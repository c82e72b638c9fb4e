"""What the page's script draws: the run's series and what happened, as JSON, and as a table beside it.

Averages and samples lose the very second that matters; so of the seconds that share an entry the largest value stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from report.causes import LateEpisode, cause_title
from report.result import DecisionMade, HeatMap, Result
from report.wording import UNKNOWN, duration, moment, several

Values = Sequence[float | None]
Floats = NDArray[np.float64]
ENTRIES: Final = 3_600
"""Entries of one series: an hour by the second, ten hours in steps of ten."""
CELLS: Final = 40_000
"""Of the heat map, all partitions together."""
BOUNDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0)
"""Between the classes of colour, in latency targets: blue within the target, orange beyond, ever further from paper."""
ROWS: Final = 60
"""Of the table over time."""
PLANS_SHOWN: Final = 300
"""Plans that a page lists; of more, those that moved the most partitions."""
EPISODES_SHOWN: Final = 300
"""Late-event episodes that a page lists; of more, the largest."""
Tenures = dict[int, list[tuple[float, str]]]
"""Partition → since when, and who served it from then on."""
ACTIONS: Final = frozenset({"up", "down", "reassign"})
PANELS: Final = {
    "Events per second": ("arrivals", "done"),
    "Replicas": ("bound", "requested", "ready"),
    "Lag, events": ("lag",),
    "Latency, ms": ("max", "p99"),
}
"""Title → series that share an axis."""


@dataclass(frozen=True, slots=True)
class Happening:
    """A moment of the run, in seconds since its start."""

    at_s: float
    kind: str
    """up, down, reassign, other (plans), handover or failure."""
    words: str = ""
    made: DecisionMade | None = None
    """The plan, which the page tells elsewhere."""


def series(result: Result) -> dict[str, Values]:
    """Return name → one value for each second; what is not known at all is left out. Latencies are in ms."""
    of = result.series
    found: dict[str, Values] = {
        "arrivals": of.arrivals,
        "done": of.done,
        "requested": of.requested_replicas,
        "ready": of.ready_replicas,
        "bound": of.bound_replicas,
        "lag": of.lag,
        "max": [None if value is None else round(value * 1000, 1) for value in of.max_s],
        "p99": [None if value is None else round(value * 1000, 1) for value in of.p99_s],
    }
    return {name: values for name, values in found.items() if any(value is not None for value in values)}


def unknown_panels(result: Result) -> list[str]:
    """Return the panels of which nothing is known."""
    known = series(result)
    return [panel.lower() for panel, names in PANELS.items() if not known.keys() & set(names)]


def chart_data(result: Result, held: Tenures) -> str:
    """Return JSON that is safe inside a script element."""
    step = bucket(len(result.series.arrivals), ENTRIES)
    known = series(result)
    plans = {id(made): row for row, made in enumerate(decisions_shown(result))}
    data = {
        "seconds": len(result.series.arrivals),
        "step": step,
        "target": result.latency_target_s * 1000,
        "percentile": result.percentile,
        "panels": {
            panel: {name: short(largest(known[name], step)) for name in names if name in known}
            for panel, names in PANELS.items()
            if known.keys() & set(names)
        },
        "late": {cause_title(cause): [cause, short(values)] for cause, values in late_by_cause(result, step).items()},
        "curve": {
            "latency": [round(max(value * 1000, 1e-3), 4) for value in result.distribution.latency_s],
            "share": result.distribution.share,
            "nines": max(3, int(np.ceil(np.log10(max(result.events, 10))))),
        },
        "events": [
            [round(one.at_s, 3), one.kind, plans.get(id(one.made), one.words)] for one in happenings(result, held)
        ],
        "episodes": [
            [round(one.from_s, 3), round(one.until_s, 3), one.partition, one.events] for one in episodes_shown(result)
        ],
        "heat": heat(result.heat, held, result.latency_target_s),
    }
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")


def late_by_cause(result: Result, step: int) -> dict[str, Floats]:
    """Return cause → late events, of each `step` seconds those of the worst second; the most frequent cause first."""
    by_second = result.tail.by_second if result.tail else {}
    seconds = len(result.series.arrivals)
    counts = {cause: (*late[:seconds], *(0,) * (seconds - len(late))) for cause, late in by_second.items()}
    ordered = sorted((cause for cause in counts if sum(counts[cause])), key=lambda cause: (-sum(counts[cause]), cause))
    if not ordered:
        return {}
    table = np.stack([np.nan_to_num(entries(counts[cause], step)) for cause in ordered])
    worst = table.sum(axis=0).argmax(axis=1)
    return {cause: rows[np.arange(len(worst)), worst] for cause, rows in zip(ordered, table, strict=True)}


def heat(found: HeatMap | None, held: Tenures, target_s: float) -> dict[str, Any] | None:
    """Return the worst latency (ms) of each partition and cell, and who served it; None where nothing is known."""
    if found is None or not any(found.max_s):
        return None
    step = bucket(max(map(len, found.max_s)), max(1, CELLS // len(found.partitions)))
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


def over_time(result: Result) -> tuple[list[str], list[list[str]], str]:
    """Return columns and rows of the table that says what the panels draw, and what a row holds."""
    seconds = len(result.series.arrivals)
    step = bucket(seconds, ROWS)
    table = {name: largest(values, step) for name, values in series(result).items()}
    late = late_by_cause(result, 1)
    if late:
        table["late events"] = np.nansum(entries(np.sum(list(late.values()), axis=0).tolist(), step), axis=1)
    units = {"arrivals": "arrivals, /s", "done": "done, /s", "max": "max ms", "p99": "p99 ms"}
    rows = [
        [
            moment(row * step),
            *(UNKNOWN if np.isnan(values[row]) else f"{values[row]:,.10g}" for values in table.values()),
        ]
        for row in range(-(-seconds // step))
    ]
    held = f"Each row holds {several(step, 'second')}: the largest value of each, and the sum of late events."
    return ["from", *(units.get(name, name) for name in table)], rows, held


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


def happenings(result: Result, held: Tenures) -> list[Happening]:
    """Return everything that happened, by time."""
    plans = [
        Happening(made.at_s, made.action if made.action in ACTIONS else "other", made=made) for made in result.decisions
    ]
    failures = [
        Happening(one.at_s, "failure", f"{one.replica} {one.change}" + (f" ({one.detail})" if one.detail else ""))
        for one in result.failures
    ]
    return sorted([*plans, *_handovers(held), *failures], key=lambda one: one.at_s)


def decisions_shown(result: Result) -> list[DecisionMade]:
    """Return the decisions that the page lists, by time."""
    largest = sorted(result.decisions, key=lambda made: -made.moved)[:PLANS_SHOWN]
    return sorted(largest, key=lambda made: made.at_s)


def episodes_shown(result: Result) -> list[LateEpisode]:
    """Return the late-event episodes that the page lists, by time."""
    largest = sorted(result.tail.episodes, key=lambda one: -one.events)[:EPISODES_SHOWN] if result.tail else []
    return sorted(largest, key=lambda one: (one.from_s, one.partition or 0))


def tenures(heat: HeatMap | None) -> Tenures:
    """Return who served each partition since when, as far as the heat map shows it."""
    found: Tenures = {partition: [] for partition in heat.partitions} if heat else {}
    for partition, owners in zip(heat.partitions, heat.owners, strict=False) if heat else ():
        since = found[partition]
        for cell, owner in enumerate(owners):
            if heat and owner is not None and (not since or owner != since[-1][1]):
                since.append((cell * heat.cell_s, owner))
    return found


def several_named(partitions: list[int]) -> str:
    """Return "partition 3", "partitions 4, 5"."""
    return ("partition " if len(partitions) == 1 else "partitions ") + ", ".join(map(str, partitions))


def _handovers(held: Tenures) -> list[Happening]:
    """Return the changes of owner that the heat map shows, those of one moment together."""
    changes = sorted(
        (at_s, before, after, partition)
        for partition, since in held.items()
        for (_, before), (at_s, after) in pairwise(since)
    )
    found = []
    for at_s, some in groupby(changes, key=lambda change: change[0]):
        words = [
            f"{before} → {after}: {several_named([one[3] for one in moved])}"
            for (_, before, after), moved in groupby(some, key=lambda change: change[:3])
        ]
        found.append(Happening(at_s, "handover", f"handover {'; '.join(words)}"))
    return found
