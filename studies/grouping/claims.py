"""What Nasir et al. 2017 state of groupings, beside what `tailpack grouping compare` finds; as tables and a picture."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from bench.experiments.tables import estimate, in_sla
from bench.markdown import in_columns, table
from bench.picture import COLORS, picture
from bench.results import load
from contracts.events import Grouping
from report.wording import share
from studies.grouping.compare import (
    CAPACITY,
    CHANGE,
    GROUPINGS,
    LIMIT,
    SKEW,
    SOURCE,
    VIRTUAL_WORKERS,
    WORKERS,
    GroupingFigures,
    Packed,
    Speed,
    at,
)
from studies.grouping.play import KEYS, LATENCY_TARGET_S
from studies.published import DIFFERS, REPRODUCED, UNKNOWN, Claim

NAME: Final = "grouping"
BALANCED: Final = 0.02
"""Imbalance up to which a grouping counts as balanced: the paper's ε, and as much for chance."""
FAR: Final = 0.1
"""Imbalance from which it counts as unbalanced."""
KG, PKG, POTC, PORC, CH, SG, CG = (one for one in GROUPINGS if one is not Grouping.STICKY_SPLIT)
Cell = tuple[str, bool]
"""(What was seen, whether that is what is stated)."""


class GroupingStudy(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `tailpack grouping compare` finds."""

    seed: int
    rows: tuple[GroupingFigures, ...]
    speeds: tuple[Speed, ...]
    packed: tuple[Packed, ...] = ()
    claims: tuple[Claim, ...]


def claims(rows: Sequence[GroupingFigures]) -> tuple[Claim, ...]:
    """Return each statement with its verdict: reproduced if it holds in every row that it speaks of."""

    def of(study: str, *groupings: Grouping) -> list[GroupingFigures]:
        return [row for one in groupings for row in at(rows, study, one)]

    by_skew = [[one for one in of(SKEW, KG) if one.workers == workers] for workers in WORKERS]
    by_workers = [list(some) for some in zip(*by_skew, strict=True)]
    return (
        _claim("KG's imbalance grows with skew", "grows", (_rising(some, "skew") for some in by_skew)),
        _claim("KG's imbalance grows with workers", "grows", (_rising(some, "workers") for some in by_workers)),
        _claim(
            "PKG is balanced while the hottest key has p₁ ≤ 1/(5n), and not far beyond (p₁ > 2/n)",
            "balanced, unbalanced",
            (
                (_said(one), one.imbalance <= BALANCED if hot <= 0.2 else one.imbalance >= FAR)
                for one in of(SKEW, PKG)
                if (hot := _hottest(one.skew) * one.workers) <= 0.2 or hot > 2
            ),
        ),
        _claim(
            "PoTC, SG, PoRC and CH stay balanced, whatever the skew and the workers",
            "balanced",
            ((_said(one), one.imbalance <= BALANCED) for one in of(SKEW, POTC, SG, PORC, CH)),
        ),
        _claim(
            "memory: KG < PKG < PoRC < PoTC, SG",
            "in this order",
            (_in_order(cell) for cell in zip(*(of(SKEW, one) for one in (KG, PKG, PORC, POTC, SG)), strict=True)),
        ),
        _claim(
            "as many sources as you like: PoRC, CH and CG stay balanced with 1 to 100",
            "balanced",
            ((_said(one), one.imbalance <= BALANCED) for one in of(SOURCE, PORC, CH, CG)),
        ),
        _claim(
            "workers that differ, {3, 5}: CG alone keeps its imbalance near zero",
            "near zero; the others not",
            (
                (_said(one), (one.imbalance <= BALANCED) == (one.grouping is CG))
                for one in of(CAPACITY, *GROUPINGS[:-1])
            ),
        ),
        _claim(
            "workers that differ: the queues of KG and SG grow",
            "grow",
            (
                (f"{one.grouping}: p99 {one.p99_s:.4g} s", one.p99_s > 10 * LATENCY_TARGET_S)
                for one in of(CAPACITY, KG, SG)
            ),
        ),
        _claim(
            "capacities that change: CG finds its balance again, within a tenth of what was sent since",
            "balanced again",
            ((_said(one), one.imbalance <= BALANCED) for one in of(CHANGE, CG)),
        ),
        _claim(
            "a larger ε: more imbalance, bounded by ε, and less memory (PoRC, CH)",
            "imbalance rises, memory falls",
            (_bounded(of(LIMIT, one)) for one in (PORC, CH)),
        ),
        _claim(
            "100 virtual workers a worker balance better than 10, and 10 than one",
            "better",
            (
                (f"{a.virtual}: {a.imbalance:.3f}, {b.virtual}: {b.imbalance:.3f}", b.imbalance < a.imbalance)
                for a, b in pairwise(of(VIRTUAL_WORKERS, CG))
            ),
        ),
        Claim(
            claim="on Storm: throughput up to 2 ×, latency 3.44 × better than KG (abstract; section VII swaps the two)",
            published="2 ×, 3.44 ×",
            ours="–",
            verdict=UNKNOWN,
        ),
    )


def _claim(claim: str, published: str, cells: Iterable[Cell]) -> Claim:
    every = list(cells)
    against = [said for said, holds in every if not holds]
    seen = f"in {len(every) - len(against)} of {len(every)}"
    ours = f"{seen}; not: {', '.join(against[:3])}{', …' if len(against) > 3 else ''}" if against else seen
    return Claim(claim=claim, published=published, ours=ours, verdict=DIFFERS if against else REPRODUCED)


def _hottest(skew: float) -> float:
    return float(1 / (1 / np.arange(1, KEYS + 1) ** skew).sum())


def _said(one: GroupingFigures) -> str:
    return f"{one.grouping} z={one.skew:g} n={one.workers}: {one.imbalance:.3f}"


def _rising(some: Sequence[GroupingFigures], by: str) -> Cell:
    said = ", ".join(f"{by}={getattr(one, by):g}: {one.imbalance:.2f}" for one in some)
    return f"n={some[0].workers} {said}", all(one.imbalance < other.imbalance for one, other in pairwise(some))


def _in_order(cell: Sequence[GroupingFigures]) -> Cell:
    memory = [one.memory for one in cell]
    said = f"z={cell[0].skew:g} n={cell[0].workers}: {' '.join(f'{one:.3f}' for one in memory)}"
    return said, memory[0] < memory[1] < memory[2] < min(memory[3:])


def _bounded(some: Sequence[GroupingFigures]) -> Cell:
    said = ", ".join(f"{one.grouping} ε={one.epsilon:g}: {one.imbalance:.3f}, memory {one.memory:.2f}" for one in some)
    rises = all(a.imbalance <= b.imbalance and a.memory >= b.memory for a, b in pairwise(some))
    return said, rises and all(one.imbalance <= one.epsilon + BALANCED / 2 for one in some)


COLUMNS: Final[dict[str, Callable[[GroupingFigures], str]]] = {
    "grouping": lambda one: f"`{one.grouping}`",
    "imbalance": lambda one: f"{one.imbalance:.4f}",
    "memory": lambda one: f"{one.memory:.3f}",
    "in W": lambda one: share(one.in_sla),
    "p50, s": lambda one: f"{one.p50_s:.3g}",
    "p99, s": lambda one: f"{one.p99_s:.3g}",
    "p99.9, s": lambda one: f"{one.p999_s:.3g}",
}


def kept() -> Any:
    """Return the committed study."""
    return load(NAME, GroupingStudy)[0]


def _rows_of(study: str) -> str:
    found = kept()
    return in_columns(COLUMNS, [row for row in found.result.rows if row.study == study], [found.origin])


def _claims_table() -> str:
    found = kept()
    rows = [(one.claim, one.published, one.ours, one.verdict) for one in found.result.claims]
    return table(("the paper", "it says", "seen here", "verdict"), rows, [found.origin])


def _speeds_table() -> str:
    found = kept()
    rows = [(f"`{one.grouping}`", f"{one.bulk_per_s / 1e6:.1f}", f"{one.single_us:.1f}") for one in found.result.speeds]
    return table(("grouping", "million choices/s, compiled", "µs for one, interpreted"), rows, [found.origin])


PACKED: Final[dict[str, Callable[[Packed], str]]] = {
    "skew z": lambda one: f"{one.skew:g}",
    "grouping": lambda one: f"`{one.grouping}`",
    "policy": lambda one: f"`{one.policy}`",
    "in W": lambda one: in_sla(one.in_sla),
    "replica-minutes": lambda one: estimate(one.replica_minutes, 1, ".2f"),
}


def _packed_table() -> str:
    found = kept()
    return in_columns(PACKED, found.result.packed, [found.origin])


GROUPING_TABLES: Final[dict[str, Callable[[], str]]] = {
    "grouping-capacities": lambda: _rows_of(CAPACITY),
    "grouping-change": lambda: _rows_of(CHANGE),
    "grouping-claims": _claims_table,
    "grouping-packed": _packed_table,
    "grouping-speed": _speeds_table,
}
SHOWN_WORKERS: Final = 50
ZERO: Final = 1e-4
"""Where a smaller imbalance is drawn, on the logarithmic axis."""


def draw_groupings(path: Path) -> None:
    """Write an SVG file: imbalance and memory over skew, and imbalance over time where capacities change."""
    rows = kept().result.rows
    with picture(path, 8, 5.6) as figure:
        (imbalance, memory), (apart, change) = figure.subplots(2, 2)
        for number, one in enumerate(GROUPINGS):
            color, some = COLORS[number], [row for row in at(rows, SKEW, one) if row.workers == SHOWN_WORKERS]
            skews = [row.skew for row in some]
            imbalance.plot(skews, [max(row.imbalance, ZERO) for row in some], ".-", color=color, label=one)
            memory.plot(skews, [row.memory for row in some], ".-", color=color)
            (unequal,) = at(rows, CAPACITY, one)
            apart.plot([unequal.memory], [max(unequal.imbalance, ZERO)], "o", color=color)
            apart.annotate(str(one), (unequal.memory, unequal.imbalance), xytext=(4, 3), textcoords="offset points",
                           fontsize=7, color=color)  # fmt: skip
            (changing,) = at(rows, CHANGE, one)
            change.plot(np.linspace(0, changing.events / 1e6, len(changing.series)), changing.series, color=color)
        for axes, title, what, log in (
            (imbalance, f"imbalance, {SHOWN_WORKERS} workers", "skew z", True),
            (memory, f"memory, {SHOWN_WORKERS} workers", "skew z", False),
            (apart, "ten workers with capacities {3, 5}", "memory", True),
            (change, "capacities that change twice", "million events", False),
        ):
            axes.set_title(title, fontsize=9)
            axes.set_xlabel(what)
            axes.set_yscale("log" if log else "linear")
        apart.set_ylabel("imbalance")
        change.set_ylabel("imbalance")
        change.set_ylim(0, 1)
        figure.legend(loc="outside lower center", ncols=len(GROUPINGS))
