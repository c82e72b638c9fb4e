"""What Landau et al. 2024 state, beside what `tailpack packing compare` finds; as tables and as a picture."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.markdown import table
from bench.picture import COLORS, picture
from bench.results import Origin, load
from report.measures import Interval
from studies.packing.compare import (
    EXISTING,
    MODIFIED,
    SOURCE,
    THE_TWELVE,
    Job,
    Point,
    Question,
    Spread,
    Study,
    studies_of,
    summarise,
)
from studies.published import DIFFERS, REPRODUCED, UNKNOWN, Claim

PARTITIONS: Final = 200
"""Of the published streams: the paper does not say so, its data do."""
HEADLINES: Final = {5: (-0.55, 0.118), 25: (-0.23, 0.088)}
"""delta → MWF's Rscore against the smallest of the eight existing ones; its consumers above the least."""
TOLERANCE: Final = 0.005
"""A printed share may lie so far outside the range of our streams."""
ALWAYS_ON_FRONT: Final = ("mbf", "mbfp", "mwf")


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `tailpack packing compare` finds."""

    seed: int
    start: int | None
    quick: bool
    studies: tuple[Study, ...]
    claims: tuple[Claim, ...]
    source: str = SOURCE


def combine(question: Question, done: dict[Job, dict[str, tuple[Any, ...]]]) -> Comparison:
    """Return the comparison of all jobs' results."""
    studies = tuple(summarise(streams, [done[job] for job in streams]) for streams in studies_of(question))
    return Comparison(
        seed=question.seed,
        start=question.start,
        quick=question.quick,
        studies=studies,
        claims=tuple(claims_of(studies)),
    )


def claims_of(found_studies: Sequence[Study]) -> list[Claim]:
    """Return what the paper states of its streams, beside what those of `found_studies` that are like them show."""
    studies = [one for one in found_studies if one.partitions == PARTITIONS]
    found = []
    for delta, (fewer_moves, more_consumers) in HEADLINES.items():
        one = next((study.headline for study in studies if study.delta == delta), None)
        for what, published, change, spread in (
            ("moves less load than the best existing", fewer_moves, "rscore_change", "rscore_change_range"),
            ("needs more consumers than the least", more_consumers, "cbs", "cbs_range"),
        ):
            ours = f"{_percent(getattr(one, change))} (beside {one.baseline})" if one else "–"
            verdict = _among(published, getattr(one, spread)) if one else UNKNOWN
            found.append(Claim(f"MWF {what}, δ = {delta}", f"{100 * published:+.1f} %", ours, verdict))
    absent = [
        f"{one.packer} at δ = {study.delta}"
        for study in studies
        for one in study.points
        if one.packer in ALWAYS_ON_FRONT and not one.front_of_twelve
    ]
    found.append(_counted("MBF, MBFP and MWF are on the front of the twelve", absent, bool(studies)))
    first, *_, last = [{one.packer: one.rscore for one in study.points} for study in studies] or [{}, {}]
    shrinking = [name for name in THE_TWELVE if first and last[name].low <= first[name].high]
    found.append(_counted("the Rscore grows with δ for all algorithms", shrinking, len(studies) > 1))
    return found


def _counted(claim: str, exceptions: Sequence[str], known: bool) -> Claim:
    ours = f"not {', '.join(exceptions)}" if exceptions else "all"
    return Claim(claim, "all", ours if known else "–", UNKNOWN if not known else DIFFERS if exceptions else REPRODUCED)


def _among(value: float, found: Spread | None) -> str:
    """Return whether a stream such as ours may have given the value."""
    inside = found is not None and found.least - TOLERANCE <= value <= found.most + TOLERANCE
    return REPRODUCED if inside else DIFFERS


def _percent(found: Interval) -> str:
    return f"{100 * found.mean:+.1f} % ({100 * found.low:+.1f} … {100 * found.high:+.1f})"


def points() -> str:
    """Return the table of every packer's Rscore, CBS and moves on the paper's streams."""
    studies, origin = _of_the_paper()
    header = ["packer", *(f"{what}, δ = {study.delta}" for study in studies for what in ("Rscore", "CBS %", "front"))]
    rows = [
        [together[0].packer, *(cell for one in together for cell in _cells(one))]
        for together in zip(*(study.points for study in studies), strict=True)
    ]
    return table(header, rows, [origin])


def _of_the_paper() -> tuple[list[Study], Origin]:
    (kept,) = load("packing", Comparison)
    return [study for study in kept.result.studies if study.partitions == PARTITIONS], kept.origin


def claims() -> str:
    """Return the table of the paper's statements beside ours."""
    (kept,) = load("packing", Comparison)
    rows = [(one.claim, one.published, one.ours, one.verdict) for one in kept.result.claims]
    return table(("claim", "published", "ours", "verdict"), rows, [kept.origin])


def plus_minus(found: Interval, times: float = 1.0) -> str:
    """Return the mean and half the width of its interval."""
    return f"{round(times * found.mean, 2) + 0.0:.2f} ±{times * (found.high - found.low) / 2:.2f}"


def _cells(point: Point) -> tuple[str, str, str]:
    front = "●" if point.front else "○" if point.front_of_twelve else ""
    return plus_minus(point.rscore), plus_minus(point.cbs, 100), front


GROUPS: Final = (
    ("any fit", "#888888", "o"), ("modified any fit", COLORS[1], "o"), ("keep in place", COLORS[0], "o-"),
)  # fmt: skip


def draw_points(path: Path) -> None:
    """Write an SVG file of the committed comparison: Rscore against CBS, one field for each study of the paper's."""
    studies = _of_the_paper()[0]
    with picture(path, 4.6 * len(studies), 4.2) as figure:
        fields = figure.subplots(1, len(studies), squeeze=False)[0]
        for axes, study in zip(fields, studies, strict=True):
            _field(axes, study)
        fields[0].set_ylabel("Rscore: capacities that move in an iteration")
        handles, labels = fields[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def _field(axes: Any, study: Study) -> None:
    ours = [one for one in study.points if one.packer == "least_loaded"]
    published = {one.packer: one for one in study.points}
    groups = ([published[name] for name in EXISTING], [published[name] for name in MODIFIED], ours)
    for (label, color, style), points in zip(GROUPS, groups, strict=True):
        points.sort(key=lambda one: one.cbs.mean)
        above, moving = [100 * one.cbs.mean for one in points], [one.rscore.mean for one in points]
        axes.plot(above, moving, style, color=color, markersize=4, label=label)
        for at, one in enumerate(points):
            if points is not ours:
                offset = (4, 3 if at % 2 else -9)
                where = (above[at], moving[at])
                axes.annotate(one.packer, where, xytext=offset, textcoords="offset points", fontsize=7, color=color)
    axes.set_title(f"{study.partitions} partitions, δ = {study.delta}", fontsize=9)
    axes.set_xlabel("CBS: consumers above the least, %")
    axes.set_ylim(bottom=0)


PACKING_TABLES: Final[dict[str, Callable[[], str]]] = {"packing-points": points, "packing-claims": claims}
