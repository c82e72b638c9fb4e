"""The whole comparison: its streams as jobs that any process can do, and their results put together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from studies.packing.claims import claims
from studies.packing.latency_study import Delay, LatencyWalk, delays_of_all, summarise_delays
from studies.packing.optimum_study import SmallWalk, beside_the_optimum, small_walks
from studies.packing.published import LATENCY_PARTITIONS, SOURCE
from studies.packing.result import Comparison, OptimumRow
from studies.packing.streams import CAPACITY, Start
from studies.packing.study import Score, Walk, score_all, summarise

Job = Walk | LatencyWalk | SmallWalk


@dataclass(frozen=True, slots=True)
class Packed:
    """What every packer did with one stream."""

    walk: Walk
    scores: dict[str, Score]


@dataclass(frozen=True, slots=True)
class Delayed:
    """What events of one stream waited under every packer."""

    walk: LatencyWalk
    delays: dict[str, Delay]


@dataclass(frozen=True, slots=True)
class Bounded:
    """What the best packer and others did with one stream of few partitions."""

    walk: SmallWalk
    row: OptimumRow


Done = Packed | Delayed | Bounded


@dataclass(frozen=True, slots=True)
class Question:
    """What to compare. Every pair of `partitions` and `deltas` is a study.

    Raises ValueError for what no stream can be.
    """

    streams: int = 20
    deltas: tuple[int, ...] = (5, 25)
    partitions: tuple[int, ...] = (200, 32)
    iterations: int = 501
    seed: int = 1
    start: Start = None
    quick: bool = False

    def __post_init__(self) -> None:
        if min(self.streams, self.iterations - 1, *self.partitions) < 1:
            raise ValueError("a comparison needs a stream, two iterations and a partition at least")
        if not (self.deltas and self.partitions):
            raise ValueError("a comparison needs a delta and a number of partitions")
        if any(not 0 <= load <= CAPACITY for load in (*self.deltas, self.start or 0)):
            raise ValueError(f"delta and start must lie between 0 and {CAPACITY}, the capacity of a consumer")
        if self.seed < 0:
            raise ValueError(f"seed = {self.seed}: must not be negative")


def jobs(question: Question) -> list[Job]:
    """Return the streams to pack, largest first: so that no core is left with a long one at the end."""
    walks = [walk for study in _studies(question) for walk in study]
    return [*sorted(walks, key=lambda walk: -walk.partitions), *_small_walks(question), *_latency_walks(question)]


def do(job: Job) -> Done:
    """Pack one stream with every packer."""
    if isinstance(job, Walk):
        return Packed(job, score_all(job))
    return Delayed(job, delays_of_all(job)) if isinstance(job, LatencyWalk) else Bounded(job, beside_the_optimum(job))


def combine(question: Question, done: Sequence[Done], wall_s: float) -> Comparison:
    """Return the comparison, whatever the order in which the jobs were done."""
    scores = {one.walk: one.scores for one in done if isinstance(one, Packed)}
    delays = {one.walk: one.delays for one in done if isinstance(one, Delayed)}
    rows = {one.walk: one.row for one in done if isinstance(one, Bounded)}
    studies = tuple(summarise(walks, [scores[walk] for walk in walks]) for walks in _studies(question))
    latency = summarise_delays([delays[walk] for walk in _latency_walks(question)])
    return Comparison(
        seed=question.seed,
        start=question.start,
        quick=question.quick,
        studies=studies,
        latency=latency,
        claims=claims(studies, latency),
        source=SOURCE,
        wall_s=wall_s,
        optima=tuple(rows[walk] for walk in _small_walks(question)),
    )


def _studies(question: Question) -> Iterator[list[Walk]]:
    """Yield the streams of each study."""
    for partitions in dict.fromkeys(question.partitions):
        for delta in dict.fromkeys(question.deltas):
            yield [
                Walk(partitions, delta, question.iterations, question.seed, number, question.start)
                for number in range(question.streams)
            ]


def _latency_walks(question: Question) -> list[LatencyWalk]:
    return [LatencyWalk(question.seed, number, question.start) for number in range(question.streams)]


def _small_walks(question: Question) -> tuple[SmallWalk, ...]:
    """Return the streams for which the optimum is found: they stand beside the study of few partitions."""
    return small_walks(question.seed) if LATENCY_PARTITIONS in question.partitions and not question.quick else ()
