"""Packers on many streams: each stream on its own, then means and intervals over streams."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from report.statistics import bootstrap_interval, pareto_front
from studies.packing import courses
from studies.packing.contestants import EXISTING, KEEP_IN_PLACE, THE_TWELVE, Contestant, everybody
from studies.packing.result import Goal, Headline, Point, Spread, Study
from studies.packing.streams import Start, random_walk

TARGETS: Final[dict[int, float]] = {5: 0.25, 25: 0.55}
"""delta → share of MWF's Rscore that keep-in-place should need at MWF's CBS."""
Means = dict[str, tuple[float, float]]
"""Packer → mean Rscore and CBS over streams."""


@dataclass(frozen=True, slots=True)
class Walk:
    """One stream to pack."""

    partitions: int
    delta: int
    iterations: int
    seed: int
    number: int
    start: Start = None


@dataclass(frozen=True, slots=True)
class Score:
    """What one packer did with one stream: means over all iterations, the first included."""

    rscore: float
    cbs: float
    consumers: float
    moved: float
    forced_rscore: float


Scores = dict[str, list[Score]]
"""Packer → its score on each stream."""


def score_all(walk: Walk, contestants: Sequence[Contestant] | None = None) -> dict[str, Score]:
    """Pack one stream with all contestants, the twelve among them (None: everybody); return packer → score."""
    seed = (walk.seed, walk.partitions, walk.delta, walk.number)
    stream = random_walk(
        partitions=walk.partitions, iterations=walk.iterations, delta=walk.delta, seed=seed, start=walk.start
    )
    found = {one.name: courses.pack_all(one, stream) for one in contestants or everybody()}
    counts = {name: courses.consumers(course) for name, course in found.items()}
    least = np.min([counts[name] for name in THE_TWELVE], axis=0)
    return {
        name: Score(
            rscore=float(courses.rscore(course, stream.loads).mean()),
            cbs=courses.cbs(counts[name], least),
            consumers=float(counts[name].mean()),
            moved=float(courses.moved(course).mean()),
            forced_rscore=float(courses.forced_rscore(course, stream.loads).mean()),
        )
        for name, course in found.items()
    }


def summarise(walks: Sequence[Walk], scores: Sequence[dict[str, Score]]) -> Study:
    """Return the study of streams that differ in their number alone."""
    names = tuple(scores[0])
    by_name = {name: [one[name] for one in scores] for name in names}
    means = {
        name: (_mean(one.rscore for one in found), _mean(one.cbs for one in found)) for name, found in by_name.items()
    }
    settings = tuple(name for name in names if name.startswith(KEEP_IN_PLACE))
    dominated_by = {
        name: tuple(one for one in settings if one != name and _no_worse(means[one], means[name])) for name in names
    }
    front, front_of_twelve = _front(names, means), _front(THE_TWELVE, means)
    points = tuple(
        Point(
            packer=name,
            rscore=bootstrap_interval([one.rscore for one in found]),
            cbs=bootstrap_interval([one.cbs for one in found]),
            consumers=bootstrap_interval([one.consumers for one in found]),
            moved=bootstrap_interval([one.moved for one in found]),
            forced_rscore=bootstrap_interval([one.forced_rscore for one in found]),
            front_of_twelve=name in front_of_twelve,
            front=name in front,
            dominated_by=dominated_by[name],
        )
        for name, found in by_name.items()
    )
    return Study(
        partitions=walks[0].partitions,
        delta=walks[0].delta,
        streams=len(walks),
        iterations=walks[0].iterations,
        points=points,
        headline=_headline(by_name, means),
        goal=_goal({point.packer: point for point in points}, settings, TARGETS.get(walks[0].delta)),
    )


def spread(values: Sequence[float]) -> Spread:
    """Return median, least and most."""
    return Spread(median=float(np.median(values)), least=min(values), most=max(values))


def _headline(by_name: Scores, means: Means) -> Headline | None:
    baseline = min(EXISTING, key=lambda name: means[name][0])
    pairs = list(zip(by_name["mwf"], by_name[baseline], strict=True))
    if not all(other.rscore for _, other in pairs):
        return None
    changes = [mwf.rscore / other.rscore - 1 for mwf, other in pairs]
    above_least = [one.cbs for one in by_name["mwf"]]
    return Headline(
        baseline=baseline,
        rscore_change=bootstrap_interval(changes),
        rscore_change_range=spread(changes),
        cbs=bootstrap_interval(above_least),
        cbs_range=spread(above_least),
        consumers_change=bootstrap_interval([mwf.consumers / other.consumers - 1 for mwf, other in pairs]),
    )


def _goal(points: dict[str, Point], settings: Sequence[str], target: float | None) -> Goal:
    mwf = points["mwf"]
    affordable = [points[name] for name in settings if points[name].cbs.mean <= mwf.cbs.mean]
    best = min(affordable, key=lambda point: point.rscore.mean, default=None)
    known = best is not None and mwf.rscore.mean > 0
    return Goal(
        packer=best.packer if best else None,
        share_of_mwf=best.rscore.mean / mwf.rscore.mean if best and known else None,
        forced_share_of_mwf=best.forced_rscore.mean / mwf.rscore.mean if best and known else None,
        target=target,
        undominated=tuple(name for name in THE_TWELVE if not points[name].dominated_by),
    )


def _front(names: Sequence[str], means: Means) -> set[str]:
    """Return the names that no other beats in Rscore and CBS."""
    return {names[at] for at in pareto_front([(-means[name][0], means[name][1]) for name in names])}


def _no_worse(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[0] and one[1] <= other[1]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
