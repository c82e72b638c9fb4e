"""Tables of docs/packing.md, from the committed comparison."""

from collections.abc import Callable
from typing import Final

from bench.markdown import table
from studies.packing.kept import kept
from studies.packing.published import PARTITIONS
from studies.packing.result import Point, Study
from studies.packing.words import median, not_dominated, percent, plus_minus, share


def points() -> str:
    """Return every packer's Rscore, CBS and moves on the paper's streams."""
    found = kept()
    studies = [study for study in found.studies if study.partitions == PARTITIONS]
    header = ["packer"]
    for study in studies:
        header += [f"Rscore, δ = {study.delta}", "forced", "CBS %", "moved", "front"]
    rows = [
        [studies[0].points[at].packer, *(cell for study in studies for cell in _cells(study.points[at]))]
        for at in range(len(studies[0].points))
    ]
    return table(header, rows, [found.origin])


def claims() -> str:
    """Return the paper's statements beside ours."""
    found = kept()
    rows = [(one.claim, one.published, one.ours, one.verdict, one.why) for one in found.claims]
    return table(("claim", "published", "ours", "verdict", "why, or how"), rows, [found.origin])


def goals() -> str:
    """Return how far keep-in-place comes with MWF's consumers."""
    found = kept()
    header = (
        "partitions, δ",
        "MWF: Rscore",
        "setting",
        "Rscore / MWF's",
        "asked for",
        "forced by overflow / MWF's",
        "of the twelve not dominated",
    )
    return table(header, [_goal_row(study) for study in found.studies], [found.origin])


def latency() -> str:
    """Return the latency model's figures: as published, and over all events."""
    found = kept()
    header = ("packer", "consumers", "p90 of the delayed, s", "delayed %", "mean, ms", "p90 of all, s")
    rows = [
        (
            row.packer,
            f"{row.consumers.mean:.1f}",
            median(row.p90_delayed_s),
            plus_minus(row.share_delayed, 100),
            plus_minus(row.mean_s, 1e3),
            plus_minus(row.p90_s),
        )
        for row in found.latency.rows
    ]
    return table(header, rows, [found.origin])


def optima() -> str:
    """Return how far keep-in-place is from the least that any packer can move, for few partitions."""
    found = kept()
    header = ("partitions, steps", "consumers", "least Rscore", "keep_in_place", "more", "MWF", "its consumers")
    rows = [
        (
            f"{row.partitions}, ±{row.step} or 0",
            f"{row.consumers:.2f}",
            f"{row.rscore:.4f}",
            f"{row.keep_in_place_rscore:.4f}",
            percent(row.keep_in_place_rscore / row.rscore - 1),
            f"{row.mwf_rscore:.4f}",
            f"{row.mwf_consumers:.2f}",
        )
        for row in found.optima
    ]
    return table(header, rows, [found.origin])


def _cells(point: Point) -> tuple[str, ...]:
    return (
        plus_minus(point.rscore),
        plus_minus(point.forced_rscore),
        plus_minus(point.cbs, 100),
        f"{point.moved.mean:.0f}",
        "●" if point.front else "○" if point.front_of_twelve else "",
    )


def _goal_row(study: Study) -> tuple[str, ...]:
    goal = study.goal
    mwf = next(point for point in study.points if point.packer == "mwf")
    return (
        f"{study.partitions}, {study.delta}",
        plus_minus(mwf.rscore),
        goal.packer or "none",
        share(goal.share_of_mwf),
        share(goal.target),
        share(goal.forced_share_of_mwf),
        not_dominated(goal),
    )


PACKING_TABLES: Final[dict[str, Callable[[], str]]] = {
    "packing-points": points,
    "packing-claims": claims,
    "packing-goals": goals,
    "packing-optima": optima,
    "packing-latency": latency,
}
