"""How sure a single run is of its own figures: its seconds drawn again, in blocks, ten thousand times.

Events of one second are not independent: they wait behind each other, under one plan. Neither are neighbouring
seconds, where a backlog lasts. So whole blocks of seconds are drawn, with replacement, round the end of the run. Two
runs of equal length are drawn alike, second by second: what both met in a second cancels out of their difference.

This tells whether a figure would stand had other seconds like these been met. It does not tell how another run would
differ, with another seed, on another machine, on another day: several runs tell that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import cbrt, ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from report.statistics import CONFIDENCE, RESAMPLES, Against, Interval

EDGES_PER_DECADE: Final = 500
"""Resolution of drawn percentiles: edges are 0.46 % apart, and each percentile is at most so much too high."""
MOST_CELLS: Final = 3_600
"""Runs longer than an hour are cut into so many cells of some seconds each."""
CHUNK: Final = 500
"""Draws that are in memory at once."""
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A run, cut into cells of equal length."""

    events: Counts
    """Intended in each cell, shape (cells,)."""
    in_sla: Counts
    """Of them, done within the latency target."""
    paid_s: Floats
    """Replica-seconds paid for in each cell."""
    edges_s: Floats
    """Latencies, growing; the first stands for all below it."""
    within: Counts
    """Events done within (edges[i − 1], edges[i]], shape (cells, edges)."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Figures of each draw, shape (draws,). NaN where no event was done."""

    in_sla: Floats
    p99_s: Floats
    p999_s: Floats
    replica_minutes: Floats


def cell_length_s(duration_s: float) -> int:
    """Return how long the cells of a run are: whole seconds."""
    return max(1, ceil(duration_s / MOST_CELLS))


def block_length(cells: int) -> int:
    """Return how many neighbouring cells are drawn together: the cube root, the usual choice."""
    return max(1, ceil(round(cbrt(cells), 9)))


def count(
    intended_us: Counts,
    latency_us: Counts,
    paid_s: Floats,
    *,
    length_s: int,
    latency_target_s: float,
    floor_us: int = 0,
) -> Cells:
    """Cut events that were all done into cells. The report's Spark job does the same; a test holds them equal.

    intended_us: since the start of the run. paid_s: of each cell. floor_us: latencies below it need not be told apart.
    """
    cell = np.clip(intended_us // (length_s * 1_000_000), 0, len(paid_s) - 1)
    edge = np.ceil(np.log10(np.maximum(latency_us, max(1, floor_us))) * EDGES_PER_DECADE).astype(np.int64)
    edges, column = np.unique(edge, return_inverse=True)
    within = np.zeros((len(paid_s), len(edges)), np.int64)
    np.add.at(within, (cell, column), 1)
    return Cells(
        events=np.bincount(cell, minlength=len(paid_s)),
        in_sla=np.bincount(cell[latency_us <= round(latency_target_s * 1e6)], minlength=len(paid_s)),
        paid_s=paid_s,
        edges_s=10 ** (edges / EDGES_PER_DECADE) / 1e6,
        within=within,
    )


def draw(cells: Cells, *, resamples: int = RESAMPLES, seed: int = 1) -> Drawn:
    """Return the figures of `resamples` draws. Equal seeds and numbers of cells draw the same cells."""
    within = np.cumsum(cells.within, axis=1).astype(np.float64)
    found = [_figures(cells, within, times) for times in _drawn_times(len(cells.events), resamples, seed)]
    return Drawn(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def interval(value: float, drawn: Floats, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the value with the percentile interval of the draws around it; None where a draw has none."""
    if not np.isfinite(drawn).all():
        return None
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(value, min(value, float(low)), max(value, float(high)))


def against(value: float, drawn: Floats, reference: Floats) -> Against | None:
    """Return a difference seen, `value`, with its interval: of the draws of both, pair by pair."""
    found = interval(value, drawn - reference)
    if found is None:
        return None
    clear = not found.low <= 0 <= found.high
    return Against(mean=found.mean, low=found.low, high=found.high, distinguishable=clear)


def _drawn_times(cells: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each cell is drawn, shape (up to CHUNK, cells): blocks that begin anywhere, the last one cut."""
    chance, length = np.random.default_rng(seed), block_length(cells)
    for begin in range(0, resamples, CHUNK):
        draws = min(CHUNK, resamples - begin)
        starts = chance.integers(0, cells, (draws, ceil(cells / length)))
        chosen = (starts[:, :, None] + np.arange(length)).reshape(draws, -1)[:, :cells] % cells
        flat = chosen + cells * np.arange(draws)[:, None]
        yield np.bincount(flat.ravel(), minlength=draws * cells).reshape(draws, cells).astype(np.float64)


def _figures(cells: Cells, within: Floats, times: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return in_sla, p99_s, p999_s, replica_minutes. Counts stay below 2⁵³, so that their sums are exact."""
    events = times @ cells.events
    in_sla = np.where(events > 0, times @ cells.in_sla / np.maximum(events, 1), 1.0)
    done = times @ within
    p99_s, p999_s = (_percentile(done, cells.edges_s, per_mille) for per_mille in (990, 999))
    return in_sla, p99_s, p999_s, times @ cells.paid_s / 60


def _percentile(done: Floats, edges_s: Floats, per_mille: int) -> Floats:
    """Return the nearest-rank percentile of each row of cumulated counts."""
    if not len(edges_s):
        return np.full(len(done), np.nan)
    total = done[:, -1].astype(np.int64)
    rank = -(-total * per_mille // 1000)
    edge = np.minimum((done < rank[:, None]).sum(axis=1), len(edges_s) - 1)
    return np.where(total > 0, edges_s[edge], np.nan)
