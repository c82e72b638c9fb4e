"""Keep-in-place and MWF beside the least that any packer can move, for so few partitions that it is known exactly."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from autoscaler.packing.keep_in_place import KeepInPlace
from autoscaler.packing.packers import PACKERS
from studies.packing import courses
from studies.packing.contestants import KEEP_IN_PLACE, Contestant
from studies.packing.optimal import Small, optimum, rscores
from studies.packing.result import OptimumRow

PRICES: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.75)
"""Settings of keep-in-place, from few moves to few consumers: between them its Rscore is interpolated."""
ITERATIONS: Final = 20_000


@dataclass(frozen=True, slots=True)
class SmallWalk:
    """One stream of few partitions; see Small and optimum."""

    partitions: int
    step: int
    consumer_rate: float
    seed: int
    iterations: int = ITERATIONS


def small_walks(seed: int) -> tuple[SmallWalk, ...]:
    """Return the cases: steps smaller and larger, more partitions and fewer."""
    cases = ((3, 5, 0.15), (4, 10, 0.2), (4, 20, 0.4), (5, 20, 0.4))
    return tuple(SmallWalk(partitions, step, rate, seed) for partitions, step, rate in cases)


def beside_the_optimum(walk: SmallWalk) -> OptimumRow:
    """Pack one stream as well as possible, with keep-in-place and with MWF."""
    small = Small(walk.partitions, walk.step)
    best = optimum(small, walk.consumer_rate)
    stream = small.walk(walk.iterations, walk.seed)
    course = best.course(stream)
    consumers = float(np.mean([1 + max(small.groupings[at]) for at in course]))
    least = float(rscores(small, course, stream.loads).mean())

    def points(contestant: Contestant) -> tuple[float, float]:
        packed = courses.pack_all(contestant, stream)
        return float(courses.consumers(packed).mean()), float(courses.rscore(packed, stream.loads).mean())

    at, moved = zip(
        *sorted(points(Contestant(KEEP_IN_PLACE, KeepInPlace(consumer_price=price))) for price in PRICES), strict=True
    )
    mwf_consumers, mwf_rscore = points(Contestant("mwf", PACKERS["mwf"]))
    return OptimumRow(
        partitions=walk.partitions,
        step=walk.step,
        consumer_rate=walk.consumer_rate,
        iterations=walk.iterations,
        least_cost=best.least,
        reached_cost=best.reached,
        consumers=consumers,
        rscore=least,
        keep_in_place_rscore=float(np.interp(consumers, np.array(at), np.array(moved))),
        mwf_consumers=mwf_consumers,
        mwf_rscore=mwf_rscore,
    )
