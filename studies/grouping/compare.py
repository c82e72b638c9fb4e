"""Every grouping on the paper's streams: skew, workers, sources, changing capacities, ε, virtual workers."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from bench.experiments.campaign import Campaign, Simulations
from bench.experiments.experiment import experiment
from contracts.events import Grouping
from grouping.source import EPSILON, VIRTUAL, Source
from report.measures import Interval, bootstrap_interval
from studies.grouping.play import Arrivals, Played, Stream, choices, play

GROUPINGS: Final = tuple(one for one in Grouping if one is not Grouping.EXPLICIT)
EVERY: Final = tuple((one, EPSILON, VIRTUAL) for one in GROUPINGS)
EVENTS, QUICK_EVENTS = 10_000_000, 2_000_000
FEWER: Final = 5
"""So many times fewer for sources and ε, and, over skew and workers, for all seeds but the first."""
SEEDS: Final = 5
SKEWS: Final = (0.1, 0.4, 0.8, 1.2, 1.6, 2.0)
WORKERS: Final = (5, 10, 50, 100)
SOURCES: Final = (1, 10, 50, 100)
EPSILONS: Final = (0.001, 0.01, 0.1, 0.5, 1.0)
BOUNDED: Final = (Grouping.PORC, Grouping.CH, Grouping.CG)
"""Those that ε bounds."""
VIRTUALS: Final = (1, 10, 100)
"""Virtual workers of each worker."""
SETUPS: Final = ((3.0, 5.0), (5.0, 4.0), (2.0, 10.0))
"""Capacities of the last two of ten machines; the others have 1. The second and third come after 6 and 12 million
events of 18."""
WORLD: Final = "w1"
NINE: Final = {"payment.partitions": 9, "autoscaler.max_replicas": 9}
POLICIES: Final = ("tail-aware", "linear")
"""One that packs, and one that counts and leaves partitions where they lie."""
PACKED_SKEWS: Final = (1.0, 1.6)
KEYLESS: Final = (Grouping.POTC, Grouping.SG)
"""Their choices do not depend on keys: every seed gives the same run."""
SKEW, SOURCE, CAPACITY, CHANGE, LIMIT, VIRTUAL_WORKERS = (
    "skew and workers", "sources", "capacities {3, 5}", "capacities that change", "epsilon", "virtual workers",
)  # fmt: skip


class GroupingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One grouping on one kind of stream: the measures of `play.Played`, of each seed, or the mean over them."""

    study: str
    grouping: Grouping
    skew: float
    workers: int
    sources: int
    epsilon: float
    virtual: int
    events: int
    """Of the first seed."""
    imbalance: tuple[float, ...]
    memory: tuple[float, ...]
    queue_half_s: tuple[float, ...] = ()
    """These two where capacities differ."""
    queue_end_s: tuple[float, ...] = ()
    in_sla: float
    p50_s: float
    p99_s: float
    p999_s: float
    partials: float
    series: tuple[float, ...] = ()
    """Of the first seed, where capacities change."""


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """One grouping in front of one policy: w1, its customers drawn by Zipf's law, over nine partitions."""

    skew: float
    grouping: Grouping
    policy: str
    seeds: int
    in_sla: Interval
    replica_minutes: Interval


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """How fast one grouping chooses, among ten partitions of a stream with z = 1."""

    grouping: Grouping
    bulk_per_s: float
    """Compiled, on one core."""
    single_us: float
    """In the interpreter, as Order does, the hash of the key included."""


@dataclass(frozen=True, slots=True)
class Job:
    """Streams that are alike, and what is played on them."""

    study: str
    stream: Stream
    ways: tuple[tuple[Grouping, float, int], ...]
    """(grouping, ε, virtual workers of each)."""


def jobs(*, quick: bool, seed: int, events: int = EVENTS) -> Iterator[Job]:
    """Yield what is to be done, the first seed first; quick: unequal capacities alone, one seed.

    events: of a stream; more where capacities change, fewer as `FEWER` says.
    """
    if quick:
        yield Job(CAPACITY, Stream(events=events, skew=1.0, capacities=(_ten(*SETUPS[0]),), seed=seed), EVERY)
        return
    for number in range(seed, seed + SEEDS):
        yield from _jobs_of(number, events, first=number == seed)


def _jobs_of(seed: int, events: int, *, first: bool) -> Iterator[Job]:
    plain = Stream(events=events, skew=1.0, capacities=((1.0,) * 10,), seed=seed)
    unequal = replace(plain, capacities=(_ten(*SETUPS[0]),))
    fewer = replace(plain, events=events // FEWER)
    yield Job(CAPACITY, unequal, EVERY)
    changing = replace(plain, events=events * 18 // 10, capacities=tuple(_ten(*setup) for setup in SETUPS))
    yield Job(CHANGE, changing, EVERY)
    for skew, workers in product(SKEWS, WORKERS):
        yield Job(SKEW, replace(plain if first else fewer, skew=skew, capacities=((1.0,) * workers,)), EVERY)
    for sources in SOURCES:
        yield Job(SOURCE, replace(fewer, sources=sources), EVERY)
    yield Job(LIMIT, fewer, tuple((one, epsilon, VIRTUAL) for epsilon in EPSILONS for one in BOUNDED))
    yield Job(VIRTUAL_WORKERS, unequal, tuple((Grouping.CG, EPSILON, virtual) for virtual in VIRTUALS))


def play_all(
    todo: Sequence[Job], *, processes: int, announce: Callable[[str], None]
) -> tuple[list[GroupingFigures], list[Speed]]:
    """Do them all; announce is told each job that has ended."""
    speeds = [speed(one) for one in GROUPINGS]  # also compiles, once for all processes
    found: dict[int, list[Played]] = {}
    with ProcessPoolExecutor(processes) as pool:
        doing = {pool.submit(do, job): number for number, job in enumerate(todo)}
        for one in as_completed(doing):
            found[doing[one]] = one.result()
            announce(todo[doing[one]].study)
    return over_seeds(todo, [found[number] for number in range(len(todo))]), speeds


def do(job: Job) -> list[Played]:
    """Play one job: each way, in their order."""
    arrivals = Arrivals(job.stream)
    return [play(arrivals, one, epsilon=epsilon, virtual=virtual) for one, epsilon, virtual in job.ways]


def over_seeds(todo: Sequence[Job], played: Sequence[Sequence[Played]]) -> list[GroupingFigures]:
    """Return a row for each way on each kind of stream, from what came of each job."""
    kinds: dict[tuple[Any, ...], list[tuple[Job, Played]]] = {}
    for job, some in zip(todo, played, strict=True):
        stream = job.stream
        for way, one in zip(job.ways, some, strict=True):
            kind = (job.study, stream.skew, len(stream.capacities[0]), stream.sources, way)
            kinds.setdefault(kind, []).append((job, one))
    return [_figures(kind, some) for kind, some in kinds.items()]


def _figures(kind: tuple[Any, ...], found: Sequence[tuple[Job, Played]]) -> GroupingFigures:
    study, skew, workers, sources, (grouping, epsilon, virtual) = kind

    def each(name: str) -> tuple[float, ...]:
        return tuple(round(getattr(one, name), 6) for _, one in found)

    differ = study in (CAPACITY, CHANGE)
    return GroupingFigures(
        study=study, grouping=grouping, skew=skew, workers=workers, sources=sources, epsilon=epsilon, virtual=virtual,
        events=found[0][0].stream.events,
        imbalance=each("imbalance"),
        memory=each("memory"),
        queue_half_s=each("queue_half_s") if differ else (),
        queue_end_s=each("queue_end_s") if differ else (),
        series=tuple(round(one, 4) for one in found[0][1].series) if study == CHANGE else (),
        **{name: round(fmean(each(name)), 6) for name in ("in_sla", "p50_s", "p99_s", "p999_s", "partials")},
    )  # fmt: skip


def runs() -> int:
    """Return how many simulations `pack` makes."""
    seeded = len(GROUPINGS) - len(KEYLESS)
    return len(PACKED_SKEWS) * len(POLICIES) * (seeded * SEEDS + len(KEYLESS))


def pack(*, processes: int, announce: Callable[[str], None]) -> list[Packed]:
    """Simulate each grouping in front of each policy, by seeds 1, 2, …. Raises InvalidSettingsError where one fails."""
    asked = {
        (skew, grouping, policy): [
            experiment(WORLD, policy, seed=seed, changes={**NINE, "load.grouping": grouping, "load.key_skew": skew})
            for seed in range(1, (1 if grouping in KEYLESS else SEEDS) + 1)
        ]
        for skew, grouping, policy in product(PACKED_SKEWS, GROUPINGS, POLICIES)
    }
    with TemporaryDirectory() as folder:
        campaign: Simulations = Campaign(Path(folder), processes, lambda said, *_: announce("packed") if said else None)
        done = campaign.results(one for some in asked.values() for one in some)
    return [
        Packed(
            skew=skew,
            grouping=grouping,
            policy=policy,
            seeds=len(some),
            in_sla=bootstrap_interval([done[one].in_sla for one in some]),
            replica_minutes=bootstrap_interval([done[one].replica_minutes for one in some]),
        )
        for (skew, grouping, policy), some in asked.items()
    ]


def speed(grouping: Grouping, events: int = 1_000_000, singles: int = 20_000) -> Speed:
    """Measure how fast it chooses."""
    arrivals = Arrivals(Stream(events=events, skew=1.0, capacities=((1.0,) * 10,)))
    hashes = arrivals.hashes[arrivals.keys]
    choices(grouping, 10, hashes[:1])
    begun_s = time.perf_counter()
    choices(grouping, 10, hashes)
    bulk_s = time.perf_counter() - begun_s
    source = Source(grouping, 10)
    names = [f"customer-{key:05d}" for key in arrivals.keys[:singles]]
    begun_s = time.perf_counter()
    for name in names:
        source.choose(name)
    single_s = time.perf_counter() - begun_s
    return Speed(grouping=grouping, bulk_per_s=events / bulk_s, single_us=1e6 * single_s / singles)


def _ten(*last: float) -> tuple[float, ...]:
    return (*(1.0,) * (10 - len(last)), *last)


def at(rows: Sequence[GroupingFigures], study: str, grouping: Grouping) -> list[GroupingFigures]:
    """Return the rows of one grouping in one study, in their order."""
    return [one for one in rows if one.study == study and one.grouping is grouping]
