"""Packers on many streams: each stream a job of its own, then means and intervals over streams, as published."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from autoscaler.packing.one_dimension import Packer
from autoscaler.packing.packers import AS_THEY_COME, PACKERS
from contracts.settings import Settings, setting
from report.measures import Interval, bootstrap_interval, pareto_front
from studies.packing.streams import CAPACITY, consumers, moved, pack_all, random_walk, rscore

SOURCE: Final = "Landau et al. 2024, arXiv:2402.06085"
EXISTING: Final = (*AS_THEY_COME, "nfd", "ffd", "bfd", "wfd")
MODIFIED: Final = ("mwf", "mbf", "mwfp", "mbfp")
THE_TWELVE: Final = (*EXISTING, *MODIFIED)
"""Every iteration's least number of consumers, which CBS refers to, is taken over these."""
CONTESTANTS: Final[dict[str, Packer]] = {
    **{name: PACKERS[name] for name in THE_TWELVE},
    "least_loaded": PACKERS["least_loaded"],
}
"""The paper's, then ours."""


@dataclass(frozen=True, kw_only=True)
class Question(Settings):
    """What to compare. Every pair of `partitions` and `deltas` is a study."""

    streams: int = setting(20, least=1)
    """Streams of each study."""
    deltas: tuple[int, ...] = setting((5, 25), least=0, most=CAPACITY)
    """Largest steps of a load in an iteration."""
    partitions: tuple[int, ...] = setting((200, 32), least=1)
    """Partitions of a stream."""
    iterations: int = setting(501, least=2)
    """Of a stream."""
    seed: int = setting(1, least=0)
    """Equal seeds make equal streams."""
    start: int | None = setting(None, least=0, most=CAPACITY)
    """First load of every partition; none: drawn at random."""
    quick: bool = setting(False)
    """Few and short streams: a look, not a result."""


@dataclass(frozen=True, slots=True)
class Job:
    """One stream to pack with every packer."""

    partitions: int
    delta: int
    iterations: int
    seed: int
    number: int
    start: int | None


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Values of single streams, which one published stream has to lie among."""

    median: float
    least: float
    most: float


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One packer on the streams of a study: means over iterations, then over streams, with 95 % intervals."""

    packer: str
    rscore: Interval
    """Load that changes its owner in an iteration, in capacities of a consumer."""
    cbs: Interval
    """Share of consumers above the least that any of the twelve needs in the same iteration."""
    consumers: Interval
    moved: Interval
    """Partitions that change their owner in an iteration, those without load too."""
    front_of_twelve: bool
    """None of the twelve is as good in Rscore and CBS and better in one."""
    front: bool
    """The same among all points."""


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """MWF beside the existing algorithm with the smallest Rscore, stream by stream."""

    baseline: str
    rscore_change: Interval
    rscore_change_range: Spread
    cbs: Interval
    cbs_range: Spread
    consumers_change: Interval


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """All packers on streams with the same number of partitions and the same steps."""

    partitions: int
    delta: int
    streams: int
    iterations: int
    points: tuple[Point, ...]
    headline: Headline | None
    """None where the baseline moves nothing, so that nothing can be said relative to it."""


def jobs(question: Question) -> list[Job]:
    """Return the streams to pack, largest first: so that no core is left with a long one at the end."""
    found = [job for study in studies_of(question) for job in study]
    return sorted(found, key=lambda job: -job.partitions)


def do(job: Job) -> dict[str, tuple[float, ...]]:
    """Pack one stream with every packer; return packer → the first figures of its `Point`, in order."""
    seed = (job.seed, job.partitions, job.delta, job.number)
    stream = random_walk(
        partitions=job.partitions, iterations=job.iterations, delta=job.delta, seed=seed, start=job.start
    )
    courses = {
        name: pack_all(packer, stream, as_they_come=name in AS_THEY_COME) for name, packer in CONTESTANTS.items()
    }
    counts = {name: consumers(course) for name, course in courses.items()}
    least = np.min([counts[name] for name in THE_TWELVE], axis=0)
    return {
        name: (
            float(rscore(course, stream.loads).mean()),
            float(((counts[name] - least) / least).mean()),
            float(counts[name].mean()),
            float(moved(course).sum(axis=1).mean()),
        )
        for name, course in courses.items()
    }


def done(todo: Sequence[Job], processes: int) -> Iterator[tuple[Job, dict[str, tuple[float, ...]]]]:
    """Yield each job and what it comes to, as they end, on so many cores."""
    with ProcessPoolExecutor(processes) as pool:
        doing = {pool.submit(do, job): job for job in todo}
        yield from ((doing[one], one.result()) for one in as_completed(doing))


def studies_of(question: Question) -> Iterator[list[Job]]:
    """Yield the streams of each study."""
    for partitions in dict.fromkeys(question.partitions):
        for delta in dict.fromkeys(question.deltas):
            yield [
                Job(partitions, delta, question.iterations, question.seed, number, question.start)
                for number in range(question.streams)
            ]


def summarise(streams: Sequence[Job], done: Sequence[dict[str, tuple[float, ...]]]) -> Study:
    """Return the study of streams that differ in their number alone."""
    found = {name: list(zip(*(one[name] for one in done), strict=True)) for name in done[0]}
    means = {name: (float(np.mean(columns[0])), float(np.mean(columns[1]))) for name, columns in found.items()}
    front, front_of_twelve = _front(tuple(found), means), _front(THE_TWELVE, means)
    points = tuple(
        Point(
            packer=name,
            **dict(zip(Point.__struct_fields__[1:5], map(bootstrap_interval, columns), strict=True)),
            front_of_twelve=name in front_of_twelve,
            front=name in front,
        )
        for name, columns in found.items()
    )
    return Study(
        partitions=streams[0].partitions,
        delta=streams[0].delta,
        streams=len(streams),
        iterations=streams[0].iterations,
        points=points,
        headline=_headline(found, means),
    )


def _headline(found: dict[str, list[tuple[float, ...]]], means: dict[str, tuple[float, float]]) -> Headline | None:
    baseline = min(EXISTING, key=lambda name: means[name][0])
    (rscores, above, count, *_), (base_rscores, _, base_count, *_) = found["mwf"], found[baseline]
    if not all(base_rscores):
        return None
    changes = [mwf / base - 1 for mwf, base in zip(rscores, base_rscores, strict=True)]
    return Headline(
        baseline=baseline,
        rscore_change=bootstrap_interval(changes),
        rscore_change_range=_spread(changes),
        cbs=bootstrap_interval(above),
        cbs_range=_spread(above),
        consumers_change=bootstrap_interval([mwf / base - 1 for mwf, base in zip(count, base_count, strict=True)]),
    )


def _front(names: Sequence[str], means: dict[str, tuple[float, float]]) -> set[str]:
    """Return the names that no other beats in Rscore and CBS."""
    return {names[at] for at in pareto_front([(-means[name][0], means[name][1]) for name in names])}


def _spread(values: Sequence[float]) -> Spread:
    return Spread(median=float(np.median(values)), least=min(values), most=max(values))
