"""Reproduce Nasir et al. 2017: how evenly partitioners load workers, for streams of Zipf-distributed keys."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np

from bench.matrix import Job, Row, sorted_changes
from partitioners import Partitioner
from partitioners.source import EPSILON, VIRTUAL_PER_WORKER
from report.measures import paired_difference
from studies.grouped_streams import KEYS, Arrivals, Stream, play
from studies.verdict import FACT, Statement, StudyResult, judge, verdict

PAPER: Final = "Nasir et al. 2017"
PARTITIONERS: Final[tuple[Partitioner, ...]] = tuple(kind for kind in Partitioner if kind is not Partitioner.EXPLICIT)
KG, PKG, POTC, PORC, CH, SG, CG = (kind for kind in PARTITIONERS if kind is not Partitioner.STICKY_SPLIT)
EVENTS, QUICK_EVENTS = 10_000_000, 400_000
SHORTER_BY: Final = 5
"""Streams of SOURCE and LIMIT are shorter by this factor. So are those of SKEW, except with the first seed."""
SEEDS, QUICK_SEEDS = 5, 2
SKEWS: Final = (0.1, 0.4, 0.8, 1.2, 1.6, 2.0)
WORKERS: Final = (5, 10, 50, 100)
SOURCES: Final = (1, 10, 50, 100)
EPSILONS: Final = (0.001, 0.01, 0.1, 0.5, 1.0)
BOUNDED: Final = (PORC, CH, CG)
"""Partitioners whose imbalance is limited by ε."""
VIRTUALS: Final = (1, 10, 100)
"""Numbers of virtual workers per worker."""
SETUPS: Final = ((3.0, 5.0), (5.0, 4.0), (2.0, 10.0))
"""Capacities of the last two of ten workers; the others have 1. CHANGE uses each for a third of its events."""
SKEW, SOURCE, CAPACITY, CHANGE, LIMIT, VIRTUAL_WORKERS = (
    "skew and workers", "sources", "capacities {3, 5}", "capacities that change", "epsilon", "virtual workers",
)  # fmt: skip
MEASURES: Final = ("imbalance", "memory", "queue_half_s", "queue_end_s")
NEAR_ZERO: Final = 0.01 + FACT
"""Largest imbalance of a group that counts as balanced: the paper's ε plus the tolerance of printed figures."""


class Cell(NamedTuple):
    """A partitioner, and the kind of stream that it partitions."""

    study: str
    partitioner: Partitioner
    skew: float
    workers: int
    sources: int
    epsilon: float
    virtual: int

    def __str__(self) -> str:
        return f"{self.partitioner} z={self.skew:g} n={self.workers} {self.sources} sources ε={self.epsilon:g}"


Figures = Mapping[str, Sequence[float]]
"""Measure → value of each seed."""
Cells = Mapping[Cell, Figures]
Observation = tuple[str, bool]
"""Pair: observed figures as text, and whether they confirm the statement."""


def streams(events: int, *, first: bool) -> Iterator[tuple[str, dict[str, Any], list[tuple[Partitioner, float, int]]]]:
    """Yield study, stream and partitioners with options, for one seed. first: do not shorten the SKEW streams."""
    every = [(partitioner, EPSILON, VIRTUAL_PER_WORKER) for partitioner in PARTITIONERS]
    plain: dict[str, Any] = {"events": events, "skew": 1.0, "capacities": ((1.0,) * 10,)}
    unequal = {**plain, "capacities": (_ten_with(*SETUPS[0]),)}
    fewer = {**plain, "events": events // SHORTER_BY}
    yield CAPACITY, unequal, every
    changing = tuple(_ten_with(*setup) for setup in SETUPS)
    yield CHANGE, {**plain, "events": events * 18 // 10, "capacities": changing}, every
    for skew, workers in product(SKEWS, WORKERS):
        yield SKEW, {**(plain if first else fewer), "skew": skew, "capacities": ((1.0,) * workers,)}, every
    for sources in SOURCES:
        yield SOURCE, {**fewer, "sources": sources}, every
    yield LIMIT, fewer, [(bounded, epsilon, VIRTUAL_PER_WORKER) for epsilon in EPSILONS for bounded in BOUNDED]
    yield VIRTUAL_WORKERS, unequal, [(CG, EPSILON, virtual) for virtual in VIRTUALS]


def play_job(job: Job) -> Row:
    """Play one stream with each partitioner and its options; return label of these → measures."""
    params = dict(job.changes)
    arrivals = Arrivals(Stream(**{key: params[key] for key in params if key != "ways"}, seed=job.seed))
    found = {}
    for partitioner, epsilon, virtual in params["ways"]:
        figures = play(arrivals, Partitioner(partitioner), epsilon=epsilon, virtual=virtual)
        found[_label(partitioner, epsilon, virtual)] = {name: round(figures[name], 6) for name in MEASURES}
    return found


def reproduce(folder: Path, *, events: int = EVENTS, seeds: int = SEEDS, **how: Any) -> StudyResult:
    """Play the paper's streams with every partitioner, and compare the results with the statements of the paper."""
    plays = [
        (study, stream, ways, _job(study, stream, ways, seed))
        for seed in range(1, seeds + 1)
        for study, stream, ways in streams(events, first=seed == 1)
    ]

    def compared(rows: Mapping[Job, Row]) -> Iterator[Statement]:
        cells: dict[Cell, dict[str, list[float]]] = {}
        for study, stream, ways, job in plays:
            like = stream["skew"], len(stream["capacities"][0]), stream.get("sources", 1)
            for way in ways:
                for name, value in rows[job][_label(*way)].items():
                    cells.setdefault(Cell(study, way[0], *like, *way[1:]), {}).setdefault(name, []).append(value)
        return statements(cells, f"{seeds} seeds, {events:,} events")

    return judge([job for *_, job in plays], play_job, compared, folder, **how)


def _job(study: str, stream: Mapping[str, Any], ways: Sequence[tuple[Partitioner, float, int]], seed: int) -> Job:
    params = {**stream, "ways": tuple((str(partitioner), epsilon, virtual) for partitioner, epsilon, virtual in ways)}
    return Job(scenario="consistent-grouping", policy=study, seed=seed, changes=sorted_changes(params))


def _label(partitioner: Partitioner, epsilon: float, virtual: int) -> str:
    return f"{partitioner} {epsilon:g} {virtual}"


def _ten_with(*last: float) -> tuple[float, ...]:
    return (*(1.0,) * (10 - len(last)), *last)


def statements(cells: Cells, reading: str = "") -> Iterator[Statement]:
    """Yield each statement with its verdict. It is reproduced if it holds in every cell that it refers to.

    A limit holds in a cell if every seed meets it. One cell exceeds another if paired seeds show it significantly.
    """

    def of(study: str, *partitioners: Partitioner) -> list[Cell]:
        return [cell for kind in partitioners for cell in cells if (cell.study, cell.partitioner) == (study, kind)]

    def balanced(cell: Cell, limit: float = NEAR_ZERO) -> bool:
        return max(cells[cell]["imbalance"]) <= limit

    def unbalanced(cell: Cell) -> bool:
        return min(cells[cell]["imbalance"]) > NEAR_ZERO

    def extent(some: Iterable[Cell], holds: Any = balanced) -> list[Observation]:
        each = [(cell, cells[cell]["imbalance"]) for cell in some]
        return [(f"{cell}: {min(own):.4f} to {max(own):.4f}", holds(cell)) for cell, own in each]

    def orders(less: Sequence[Cell], more: Sequence[Cell], measure: str) -> list[Observation]:
        pairs = [(a, b, cells[a][measure], cells[b][measure]) for a, b in zip(less, more, strict=True)]
        return [(f"{a} {fmean(low):.3f}, {b} {fmean(high):.3f}", _is_larger(low, high)) for a, b, low, high in pairs]

    def rises(lines: Iterable[Sequence[Cell]], measure: str) -> list[Observation]:
        return [pair for line in lines for a, b in pairwise(line) for pair in orders([a], [b], measure)]

    by_skew = [[row for row in of(SKEW, KG) if row.workers == workers] for workers in WORKERS]
    hot = {cell: cell.workers / (1 / np.arange(1, KEYS + 1) ** cell.skew).sum() for cell in of(SKEW, PKG)}
    clear = [cell for cell in hot if hot[cell] <= 0.2 or hot[cell] > 2]
    queues = [(cell, cells[cell]["queue_half_s"], cells[cell]["queue_end_s"]) for cell in of(CAPACITY, KG, SG)]
    claims: list[tuple[str, str, list[Observation]]] = [
        ("KG's imbalance grows with skew", "grows", rises(by_skew, "imbalance")),
        ("KG's imbalance grows with workers", "grows", rises(zip(*by_skew, strict=True), "imbalance")),
        ("PKG is balanced while the hottest key has p₁ ≤ 1/(5n), and not where p₁ > 2/n", "balanced, unbalanced",
         extent(clear, lambda cell: balanced(cell) if hot[cell] <= 0.2 else unbalanced(cell))),
        ("PoTC, SG, PoRC and CH stay balanced with any skew and number of workers", "balanced",
         extent(of(SKEW, POTC, SG, PORC, CH))),
        *((f"memory: {less} < {more}", "less", orders(of(SKEW, less), of(SKEW, more), "memory"))
          for less, more in ((KG, PKG), (PKG, PORC), (PORC, POTC), (PORC, SG))),
        ("PoRC, CH and CG stay balanced with 1 to 100 sources", "balanced",
         extent(of(SOURCE, PORC, CH, CG))),
        ("with capacities {3, 5}, only CG has an imbalance near zero", "near zero; the others not",
         extent(of(CAPACITY, *PARTITIONERS[:-1]), lambda c: (balanced if c.partitioner is CG else unbalanced)(c))),
        ("with capacities {3, 5}, the queues of KG and SG grow", "grow",
         [(f"{cell}: {fmean(half):.3f} s half-way, {fmean(end):.3f} s at the end", _is_larger(half, end))
          for cell, half, end in queues]),
        ("after each change of capacities, CG is balanced again within a tenth of the events", "balanced again",
         extent(of(CHANGE, CG))),
        ("PoRC, CH: their imbalance is at most ε", "at most ε",
         extent(of(LIMIT, PORC, CH), lambda cell: balanced(cell, cell.epsilon + FACT))),
        ("PoRC, CH: a larger ε takes less memory", "falls",
         rises((of(LIMIT, bounded)[::-1] for bounded in (PORC, CH)), "memory")),
        ("100 virtual workers per worker balance better than 10, and 10 better than 1", "better",
         rises([of(VIRTUAL_WORKERS, CG)[::-1]], "imbalance")),
    ]  # fmt: skip
    for what, published, found in claims:
        failed = [text for text, holds in found if not holds]
        ours = f"in {len(found) - len(failed)} of {len(found)}" + (f"; not: {'; '.join(failed[:3])}" * bool(failed))
        yield Statement(
            paper=PAPER, table="Statements", what=what, published=published, ours=ours, reading=reading,
            verdict=verdict(not failed),
        )  # fmt: skip
    for what, published in (
        ("the statements also hold on traces of Twitter and Wikipedia", "they do"),
        ("on Storm: throughput up to 2 ×, latency 3.44 × better than KG (section VII swaps the two)", "2 ×, 3.44 ×"),
    ):
        yield Statement(paper=PAPER, table="Statements", what=what, published=published)


def _is_larger(less: Sequence[float], more: Sequence[float]) -> bool:
    difference = paired_difference(more, less)
    return len(less) > 1 and difference.distinguishable and difference.mean > 0
