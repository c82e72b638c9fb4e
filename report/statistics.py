"""How sure figures are: bootstrap intervals and paired differences over runs or over seconds, and the Pareto front.

Over the seconds of a single run, events of one second are not independent: they wait behind each other, under one plan.
Neither are neighbouring seconds, where a backlog lasts. So whole blocks of seconds are drawn, with replacement, round
the end of the run. Two runs of equal length are drawn alike, second by second: what both met in a second cancels out of
their difference. This tells whether a figure would stand had other seconds like these been met. It does not tell how
another run would differ, with another seed, on another machine, on another day: several runs tell that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cbrt, ceil
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

RESAMPLES: Final = 10_000
CONFIDENCE: Final = 0.95
ENDS: Final = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
"""Quantiles of the draws between which the interval lies."""
EDGES_PER_DECADE: Final = 500
"""Resolution of drawn percentiles: edges are 0.46 % apart, and each percentile is at most so much too high."""
MOST_CELLS: Final = 3_600
"""Runs longer than an hour are cut into so many cells of some seconds each."""
CHUNK: Final = 500
"""Draws that are in memory at once."""
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """Mean of paired differences, one's own minus the reference on the same seed, and where it may lie."""

    mean: float
    low: float
    high: float
    distinguishable: bool
    """The interval leaves 0 out; where it does not, the two cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and where it may lie. One value, or equal ones, have no width: of their spread nothing is known."""

    mean: float
    low: float
    high: float


def bootstrap_interval(values: Sequence[float]) -> Interval:
    """Return the mean with its percentile-bootstrap interval: seeded, so equal values give equal intervals.

    With twenty normally distributed values it covers the true mean in 93 % of cases where 95 % are asked for.
    Raises ValueError for no value, NaN or infinity.
    """
    return Interval(*_bounds(_finite(values)))


def paired_difference(a: Sequence[float], b: Sequence[float]) -> Against:
    """Return the mean of a[i] − b[i] with its interval. Pairs share a seed, so what both suffer cancels out.

    Raises ValueError for different numbers of values, and as `bootstrap_interval` does.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values cannot be paired with {len(b)}")
    return _against(*_bounds(_finite(a) - _finite(b)))


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the points (benefit, cost) that no other beats, by growing cost.

    Beaten is who has another with at least its benefit at no more cost, and better in one of them. Equal points stand
    together. Raises ValueError for NaN.
    """
    if any(value != value for point in points for value in point):  # noqa: PLR0124  NaN differs from itself
        raise ValueError("a point is not a number")
    order = sorted(range(len(points)), key=lambda one: (points[one][1], -points[one][0]))
    front: list[int] = []
    for one in order:
        if not front or points[one][0] > points[front[-1]][0] or points[one] == points[front[-1]]:
            front.append(one)
    return front


def _against(mean: float, low: float, high: float) -> Against:
    return Against(mean=mean, low=low, high=high, distinguishable=not low <= 0 <= high)


def _bounds(values: Floats) -> tuple[float, float, float]:
    """Return mean, low, high."""
    if (values == values[0]).all():
        value = float(values[0])  # without the rounding of a sum, so that equal runs differ by exactly 0
        return value, value, value
    chosen = np.random.default_rng(1).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(values[chosen].mean(axis=1), ENDS)
    return float(values.mean()), float(low), float(high)


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    """Return the values as an array."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError("there is no mean of no value")
    if not np.isfinite(array).all():
        raise ValueError(f"{array[~np.isfinite(array)][0]} is not a value that can be averaged")
    return array


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


def cut_into_cells(
    intended_us: Counts,
    latency_us: Counts,
    paid_s: Floats,
    *,
    length_s: int,
    latency_target_s: float,
    floor_us: int = 0,
    never_done_us: Counts | None = None,
) -> Cells:
    """Cut a run into cells; what was intended after the last one counts there.

    intended_us, latency_us: of events that were done, since the start of the run. never_done_us: when the others were
    intended. paid_s: of each cell. floor_us: latencies below it need not be told apart.
    """

    def cells(times_us: Counts) -> Counts:
        return np.clip(times_us // (length_s * 1_000_000), 0, len(paid_s) - 1)

    cell = cells(intended_us)
    every = cell if never_done_us is None else np.append(cell, cells(never_done_us))
    edge = np.ceil(np.log10(np.maximum(latency_us, max(1, floor_us))) * EDGES_PER_DECADE).astype(np.int64)
    edges, column = np.unique(edge, return_inverse=True)
    within = np.zeros((len(paid_s), len(edges)), np.int64)
    np.add.at(within, (cell, column), 1)
    return Cells(
        events=np.bincount(every, minlength=len(paid_s)),
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


def drawn_interval(value: float, drawn: Floats) -> Interval | None:
    """Return the value with the percentile interval of the draws around it; None where a draw has none."""
    if not np.isfinite(drawn).all():
        return None
    low, high = np.quantile(drawn, ENDS)
    return Interval(value, min(value, float(low)), max(value, float(high)))


def drawn_difference(value: float, drawn: Floats, reference: Floats) -> Against | None:
    """Return a difference seen, `value`, with its interval: of the draws of both, pair by pair."""
    found = drawn_interval(value, drawn - reference)
    return None if found is None else _against(found.mean, found.low, found.high)


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
