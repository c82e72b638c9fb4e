"""What Nasir et al. 2017 state, beside what `tailpack grouping compare` finds; by the rule of docs/paper.md."""

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from statistics import fmean
from typing import Final

import msgspec
import numpy as np

from contracts.events import Grouping
from report.measures import paired_difference
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
from studies.grouping.play import KEYS
from studies.paper.rule import FACT
from studies.published import DIFFERS, REPRODUCED, UNKNOWN, Claim

NEAR_ZERO: Final = 0.01 + FACT
"""Imbalance that counts as none: the paper's ε, widened as a printed figure is."""
KG, PKG, POTC, PORC, CH, SG, CG = (one for one in GROUPINGS if one is not Grouping.STICKY_SPLIT)
Seen = tuple[str, bool]
"""(What was seen, whether that is what is stated)."""


class GroupingStudy(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `tailpack grouping compare` finds."""

    seed: int
    rows: tuple[GroupingFigures, ...]
    speeds: tuple[Speed, ...]
    packed: tuple[Packed, ...] = ()
    claims: tuple[Claim, ...]


def claims(rows: Sequence[GroupingFigures]) -> tuple[Claim, ...]:
    """Return each statement with its verdict: reproduced if it holds in every cell that it speaks of.

    A limit holds in a cell where every seed keeps it; an order of two cells where it is beyond chance, seed by seed.
    """

    def of(study: str, *groupings: Grouping) -> list[GroupingFigures]:
        return [cell for one in groupings for cell in at(rows, study, one)]

    by_skew = [[one for one in of(SKEW, KG) if one.workers == workers] for workers in WORKERS]
    by_workers = [list(some) for some in zip(*by_skew, strict=True)]
    return (
        _claim("KG's imbalance grows with skew", "grows", _pairs(by_skew, "imbalance")),
        _claim("KG's imbalance grows with workers", "grows", _pairs(by_workers, "imbalance")),
        _claim(
            "PKG is balanced while the hottest key has p₁ ≤ 1/(5n), and not where p₁ > 2/n",
            "balanced, unbalanced",
            (
                (_said(one), _balanced(one) if hot <= 0.2 else _unbalanced(one))
                for one in of(SKEW, PKG)
                if (hot := _hottest(one.skew) * one.workers) <= 0.2 or hot > 2
            ),
        ),
        _claim(
            "PoTC, SG, PoRC and CH stay balanced, whatever the skew and the workers",
            "balanced",
            ((_said(one), _balanced(one)) for one in of(SKEW, POTC, SG, PORC, CH)),
        ),
        *(
            _claim(f"memory: {less} < {more}", "less", _orders(of(SKEW, less), of(SKEW, more), "memory"))
            for less, more in ((KG, PKG), (PKG, PORC), (PORC, POTC), (PORC, SG))
        ),
        _claim(
            "as many sources as you like: PoRC, CH and CG stay balanced with 1 to 100",
            "balanced",
            ((_said(one), _balanced(one)) for one in of(SOURCE, PORC, CH, CG)),
        ),
        _claim(
            "workers that differ, {3, 5}: CG alone keeps its imbalance near zero",
            "near zero; the others not",
            (
                (_said(one), _balanced(one) if one.grouping is CG else _unbalanced(one))
                for one in of(CAPACITY, *GROUPINGS[:-1])
            ),
        ),
        _claim(
            "workers that differ: the queues of KG and SG grow",
            "grow",
            ((_queue(one), _more(one.queue_half_s, one.queue_end_s)) for one in of(CAPACITY, KG, SG)),
        ),
        _claim(
            "capacities that change: CG finds its balance again, within a tenth of what was sent since",
            "balanced again",
            ((_said(one), _balanced(one)) for one in of(CHANGE, CG)),
        ),
        _claim(
            "PoRC, CH: their imbalance is at most ε",
            "at most ε",
            (
                (f"{_said(one)}, ε={one.epsilon:g}", max(one.imbalance) <= one.epsilon + FACT)
                for one in of(LIMIT, PORC, CH)
            ),
        ),
        _claim(
            "PoRC, CH: a larger ε takes less memory",
            "falls",
            chain.from_iterable(_orders(of(LIMIT, one)[1:], of(LIMIT, one)[:-1], "memory") for one in (PORC, CH)),
        ),
        _claim(
            "100 virtual workers a worker balance better than 10, and 10 than one",
            "better",
            _orders(of(VIRTUAL_WORKERS, CG)[1:], of(VIRTUAL_WORKERS, CG)[:-1], "imbalance"),
        ),
        Claim("on its traces of Twitter and Wikipedia all of this holds, too", "it does", "–", UNKNOWN),
        Claim(
            "on Storm: throughput up to 2 ×, latency 3.44 × better than KG (abstract; section VII swaps the two)",
            "2 ×, 3.44 ×",
            "–",
            UNKNOWN,
        ),
    )


def _claim(claim: str, published: str, cells: Iterable[Seen]) -> Claim:
    every = list(cells)
    against = [said for said, holds in every if not holds]
    seen = f"in {len(every) - len(against)} of {len(every)}"
    ours = f"{seen}; not: {'; '.join(against[:3])}{'; …' if len(against) > 3 else ''}" if against else seen
    return Claim(claim, published, ours, DIFFERS if against else REPRODUCED)


def _hottest(skew: float) -> float:
    return float(1 / (1 / np.arange(1, KEYS + 1) ** skew).sum())


def _balanced(cell: GroupingFigures) -> bool:
    return max(cell.imbalance) <= NEAR_ZERO


def _unbalanced(cell: GroupingFigures) -> bool:
    return min(cell.imbalance) > NEAR_ZERO


def _more(less: Sequence[float], more: Sequence[float]) -> bool:
    """Return whether the second is more, seed by seed, and that beyond chance."""
    difference = paired_difference(more, less)
    return len(less) > 1 and difference.distinguishable and difference.mean > 0


def _pairs(lines: Iterable[Sequence[GroupingFigures]], measure: str) -> list[Seen]:
    """Return whether a measure rises from each cell of a line to the next."""
    return [seen for line in lines for less, more in pairwise(line) for seen in _orders([less], [more], measure)]


def _orders(less: Sequence[GroupingFigures], more: Sequence[GroupingFigures], measure: str) -> list[Seen]:
    """Return of each pair of rows whether the second has more of a measure."""
    return [
        (
            f"{_where(a)} {_mean(a, measure)}, {_where(b)} {_mean(b, measure)}",
            _more(getattr(a, measure), getattr(b, measure)),
        )
        for a, b in zip(less, more, strict=True)
    ]


def _mean(one: GroupingFigures, measure: str) -> str:
    return f"{fmean(getattr(one, measure)):.3f}"


def _where(one: GroupingFigures) -> str:
    own = {
        SKEW: f" z={one.skew:g} n={one.workers}",
        SOURCE: f" {one.sources} sources",
        LIMIT: f" ε={one.epsilon:g}",
        VIRTUAL_WORKERS: f" {one.virtual} virtual",
    }
    return f"{one.grouping}{own.get(one.study, '')}"


def _said(one: GroupingFigures) -> str:
    return f"{_where(one)}: {min(one.imbalance):.4f} to {max(one.imbalance):.4f}"


def _queue(one: GroupingFigures) -> str:
    return f"{_where(one)}: {_mean(one, 'queue_half_s')} s half-way, {_mean(one, 'queue_end_s')} s at the end"
