"""Workloads by name: how many events each second of a run sends, as pure functions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from loadgen import hard_shapes, shapes
from loadgen.shapes import IntArray, half_cosine, skew_9, whole_events


@dataclass(frozen=True, slots=True)
class Workload:
    """λ(t), counted in whole events per second."""

    name: str
    description: str
    duration_s: int
    partitions: int | None
    """Number of partitions of the workload's own table; None where the split decides who gets what."""
    counts: Callable[[], IntArray]
    """Events per second: shape (duration_s,), or (duration_s, partitions) with an own table."""
    rule: Callable[[IntArray], IntArray] | None = None
    """How the own table is made of events per second, where it is; shape (seconds,) → (seconds, partitions)."""

    def events(self, duration_s: int) -> IntArray:
        """Return the counts of the first `duration_s` seconds. Raises ValueError where the workload is shorter."""
        if not 0 < duration_s <= self.duration_s:
            raise ValueError(f"workload {self.name} lasts {self.duration_s} s; {duration_s} s were asked for")
        return np.asarray(self.counts()[:duration_s])

    def spread(self, totals: IntArray) -> IntArray:
        """Spread other events per second as the own table does: by its rule, or else in the proportions of its rows.

        After its last row the table begins again. Shape (seconds,) → (seconds, partitions). Raises ValueError where
        there is no table.
        """
        if self.partitions is None:
            raise ValueError(f"workload {self.name} has no partition table of its own")
        if self.rule is not None:
            return self.rule(totals)
        return shared_out(totals, self.counts()[np.arange(len(totals)) % self.duration_s])


def shared_out(totals: IntArray, weights: IntArray) -> IntArray:
    """Divide each total in the proportions of its row of weights; what does not divide goes to the largest remainders.

    A row of zeros means equal weights. Shapes (seconds,), (seconds, partitions) → (seconds, partitions).
    """
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1)
    whole, remainder = np.divmod(totals[:, None] * weights, weights.sum(axis=1, keepdims=True))
    rank = np.argsort(np.argsort(-remainder, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(whole + (rank < (totals - whole.sum(axis=1))[:, None]))


DEMO_LIMIT: Final = 200
"""Events/s that `demo` never exceeds: three Faust services, the broker and the rest share two cores."""
DEMO_PEAK: Final = 112
"""Events/s at the top of `demo`, at most DEMO_LIMIT. With a service time of 0.02 s three to four replicas' worth."""
DEMO_SHAPE: Final = (
    (0, 1 / 8), (16, 1 / 8),    # calm: one replica
    (36, 6 / 7), (54, 6 / 7),   # ramp, surge
    (62, 1 / 4), (74, 1 / 4),   # dip
    (78, 1), (90, 1),           # spike: four seconds from bottom to top
    (96, 1 / 8), (120, 1 / 8),  # calm again: long enough to scale down to one
)  # fmt: skip


def _demo() -> IntArray:
    return whole_events(half_cosine(tuple((t, share * DEMO_PEAK) for t, share in DEMO_SHAPE)))


def _smoke() -> IntArray:
    return np.repeat(np.array([10, 60, 10]), 5)


def _steady(rate: int) -> Workload:
    """`rate` events/s, second after second: what the cost of the processes is measured at."""
    name, description = f"steady-{rate}", f"{rate} events/s for 60 s"
    return Workload(name, description, 60, None, lambda: np.full(60, rate, dtype=np.int64))


def _shape(name: str, description: str, counts: Callable[[], IntArray]) -> Workload:
    return Workload(name, description, shapes.SHAPE_S, None, counts)


def _hard(name: str, description: str, counts: Callable[[], IntArray], partitions: int | None = None) -> Workload:
    return Workload(name, description, hard_shapes.HARD_S, partitions, counts)


def _ruled(
    name: str, description: str, duration_s: int, counts: Callable[[], IntArray], rule: Callable[[IntArray], IntArray]
) -> Workload:
    """`counts`, spread over partitions by `rule`."""
    partitions = rule(np.zeros(1, dtype=np.int64)).shape[1]
    return Workload(name, description, duration_s, partitions, lambda: rule(counts()), rule)


WORKLOADS: Final[dict[str, Workload]] = {
    workload.name: workload
    for workload in (
        Workload("w1", "three growing waves to 350 events/s in 600 s", 600, None, shapes.w1),
        _ruled("w1-skew9", "w1 with half of its events in 2 of 9 partitions", 600, shapes.w1, skew_9),
        Workload("taxi", "New York's taxi trips, 3.3 days in two hours", shapes.TAXI_S, None, shapes.taxi),
        _ruled("taxi-skew9", "taxi with half of its events in 2 of 9 partitions", shapes.TAXI_S, shapes.taxi, skew_9),
        Workload("w3", "four of five partitions grow fourfold, one after the other", 600, 5, shapes.w3),
        _ruled("w4", "w1 with 54 % of its events in 2 of 5 partitions", 600, shapes.w1, shapes.w4_shares),
        _ruled("demo", "calm, ramp, surge, dip, spike, calm in 120 s, skewed over 9 partitions", 120, _demo, skew_9),
        Workload("smoke", "10, 60, 10 events/s, five seconds each", 15, None, _smoke),
        Workload("surge", "20, 110, 20 events/s, 30 s each", 90, None, lambda: np.repeat(np.array([20, 110, 20]), 30)),
        _steady(150),
        _steady(350),
        _shape("step", "80, 330, 130 events/s, 200 s each", shapes.step),
        _shape("ramp", "30 to 450 events/s in a straight line, and down again twice as fast", shapes.ramp),
        _shape("sine", "five periods of two minutes between 40 and 400 events/s", shapes.sine),
        _shape("spike", "60 events/s with spikes of 30 s, 5 s and one second to 400 and more", shapes.spike),
        _shape("silence", "three minutes and ten seconds of nothing amid 100 to 300 events/s", shapes.silence),
        Workload("diurnal-week", "seven days in 84 minutes", 7 * shapes.DAY_S, None, shapes.diurnal_week),
        Workload(
            "hot-key",
            "a key with 70 of 232 events/s wanders among 9 partitions, one each minute",
            shapes.SHAPE_S,
            shapes.HOT_PARTITIONS,
            shapes.hot_key,
        ),
        *(
            Workload(
                f"landau-{delta}",
                f"32 partitions of 0 to 100 events/s, each a random walk of up to {delta} a second",
                shapes.LANDAU_S,
                shapes.LANDAU_PARTITIONS,
                partial(shapes.landau, delta),
            )
            for delta in (5, 25)
        ),
        _hard("flash-crowd", "40 events/s, twice 800 from one second to the next", hard_shapes.flash_crowd),
        _hard("square-30", "60 and 280 events/s, 30 s each", partial(hard_shapes.square, 30)),
        _hard("square-5", "60 and 280 events/s, 5 s each", partial(hard_shapes.square, 5)),
        _hard("square-1", "60 and 280 events/s, second by second", partial(hard_shapes.square, 1)),
        _hard("sawtooth", "46 to 400 events/s in a minute, and down at once", hard_shapes.sawtooth),
        _hard("heavy-tails", "seconds of 65 to 800 events, Pareto, mean 130", hard_shapes.heavy),
        _hard("zipf-100", "waves to 450 events/s, Zipf over partitions", hard_shapes.zipf_100, 100),
        _hard("hot-partition", "one of nine partitions has more than μ", hard_shapes.hot_partition, 9),
        _hard("zero-then-load", "nothing for minutes, then 400 events/s at once", hard_shapes.zero_then_load),
        _hard("behind-a-limit", "160 events/s, 310 for 20 s of each 150", hard_shapes.behind_a_limit),
    )
}
