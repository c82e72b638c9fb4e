"""Workloads by name. Each is a function that returns the number of events in each second of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from loadgen import shapes
from loadgen.shapes import IntArray, half_cosine, skew_9, whole_events


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload: λ(t) in whole events per second."""

    name: str
    description: str
    duration_s: int
    partitions: int | None
    """Number of partitions of the workload's own table; None: the split chooses the partitions."""
    counts: Callable[[], IntArray]
    """Events per second, shape (duration_s,), or (duration_s, partitions) with an own table."""
    rule: Callable[[IntArray], IntArray] | None = None
    """Computes the own table from events per second, if it is a rule. Shape (seconds,) → (seconds, partitions)."""

    def events(self, duration_s: int) -> IntArray:
        """Return the counts of the first `duration_s` seconds. Raises ValueError if the workload is shorter."""
        if not 0 < duration_s <= self.duration_s:
            raise ValueError(f"workload {self.name} lasts {self.duration_s} s; {duration_s} s were requested")
        return np.asarray(self.counts()[:duration_s])

    def spread(self, totals: IntArray) -> IntArray:
        """Spread `totals`, events per second, over the partitions as this workload spreads its own events.

        Without a `rule` it uses the proportions in each row of the table. After its last row the table begins again.
        Shape (seconds,) → (seconds, partitions). Raises ValueError if the workload has no table.
        """
        if self.partitions is None:
            raise ValueError(f"workload {self.name} has no partition table of its own")
        if self.rule is not None:
            return self.rule(totals)
        return divide_totals(totals, self.counts()[np.arange(len(totals)) % self.duration_s])


def divide_totals(totals: IntArray, weights: IntArray) -> IntArray:
    """Divide each total in the proportions of its row of weights. The rest goes to the largest remainders.

    A row of zeros means equal weights. Shapes (seconds,), (seconds, partitions) → (seconds, partitions).
    """
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1)
    whole, remainder = np.divmod(totals[:, None] * weights, weights.sum(axis=1, keepdims=True))
    rank = np.argsort(np.argsort(-remainder, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(whole + (rank < (totals - whole.sum(axis=1))[:, None]))


DEMO_LIMIT: Final = 200
"""Limit of `demo`, events/s, because three Faust services, the broker and the other processes share two cores."""
DEMO_PEAK: Final = 112
"""Peak of `demo`, events/s, at most DEMO_LIMIT. With a service time of 0.02 s it needs three to four replicas."""
DEMO_SHAPE: Final = (
    (0, 1 / 8), (16, 1 / 8),    # calm, one replica
    (36, 6 / 7), (54, 6 / 7),   # ramp, surge
    (62, 1 / 4), (74, 1 / 4),   # dip
    (78, 1), (90, 1),           # spike, four seconds from bottom to top
    (96, 1 / 8), (120, 1 / 8),  # calm again, long enough to scale down to one
)  # fmt: skip


def _demo() -> IntArray:
    return whole_events(half_cosine(tuple((t, share * DEMO_PEAK) for t, share in DEMO_SHAPE)))


def _of(name: str, description: str, counts: Callable[[], IntArray]) -> Workload:
    shape = counts().shape
    return Workload(name, description, shape[0], shape[1] if len(shape) > 1 else None, counts)


def _levels(name: str, description: str, *pieces: tuple[int, int]) -> Workload:
    return _of(name, description, lambda: shapes.levels(*pieces))


def _ruled(
    name: str, description: str, counts: Callable[[], IntArray], rule: Callable[[IntArray], IntArray]
) -> Workload:
    seconds, partitions = rule(counts()).shape
    return Workload(name, description, seconds, partitions, lambda: rule(counts()), rule)


WORKLOADS: Final[dict[str, Workload]] = {
    workload.name: workload
    for workload in (
        _of("w1", "three growing waves to 350 events/s in 600 s", shapes.w1),
        _ruled("w1-skew9", "w1 with half of its events in 2 of 9 partitions", shapes.w1, skew_9),
        _of("taxi", "New York's taxi trips, 3.3 days in two hours", shapes.taxi),
        _ruled("taxi-skew9", "taxi with half of its events in 2 of 9 partitions", shapes.taxi, skew_9),
        _of("w3", "four of five partitions grow fourfold, one after the other", shapes.w3),
        _ruled("w4", "w1 with 54 % of its events in 2 of 5 partitions", shapes.w1, shapes.w4_shares),
        _ruled("demo", "calm, ramp, surge, dip, spike, calm in 120 s, skewed over 9 partitions", _demo, skew_9),
        _levels("smoke", "10, 60, 10 events/s, five seconds each", (5, 10), (5, 60), (5, 10)),
        _levels("surge", "20, 110, 20 events/s, 30 s each", (30, 20), (30, 110), (30, 20)),
        _levels("steady-150", "150 events/s for 60 s", (60, 150)),
        _levels("steady-350", "350 events/s for 60 s", (60, 350)),
        _levels("step", "80, 330, 130 events/s, 200 s each", (200, 80), (200, 330), (200, 130)),
        _of("ramp", "30 to 450 events/s in a straight line, and down again twice as fast", shapes.ramp),
        _of("sine", "five periods of two minutes between 40 and 400 events/s", shapes.sine),
        _levels(
            "spike",
            "60 events/s with spikes of 30 s, 5 s and one second to 400 and more",
            *((150, 60), (30, 400), (120, 60), (5, 450), (145, 60), (1, 480), (149, 60)),
        ),
        _levels(
            "silence",
            "three minutes and ten seconds of nothing amid 100 to 300 events/s",
            *((200, 150), (180, 0), (100, 300), (10, 0), (110, 100)),
        ),
        _of("diurnal-week", "seven days in 84 minutes", shapes.diurnal_week),
        _of("hot-key", "a key with 70 of 232 events/s moves among 9 partitions every minute", shapes.hot_key),
        *(
            _of(
                f"landau-{delta}",
                f"32 partitions of 0 to 100 events/s, each a random walk of up to {delta} a second",
                partial(shapes.landau, delta),
            )
            for delta in (5, 25)
        ),
        _of("flash-crowd", "40 events/s, twice 800 from one second to the next", shapes.flash_crowd),
        _of("square-30", "60 and 280 events/s, 30 s each", partial(shapes.square, 30)),
        _of("square-5", "60 and 280 events/s, 5 s each", partial(shapes.square, 5)),
        _of("square-1", "60 and 280 events/s, second by second", partial(shapes.square, 1)),
        _of("sawtooth", "46 to 400 events/s in a minute, and down at once", shapes.sawtooth),
        _of("heavy-tails", "seconds of 65 to 800 events, Pareto, mean 130", shapes.heavy),
        _of("zipf-100", "waves to 450 events/s, Zipf over partitions", shapes.zipf_100),
        _of("hot-partition", "one of nine partitions has more than μ", shapes.hot_partition),
        _levels(
            "zero-then-load",
            "nothing for minutes, then 400 events/s at once",
            *((300, 0), (300, 400), (120, 0), (180, 300)),
        ),
        _levels("behind-a-limit", "160 events/s, 310 for 20 s of each 150", *((130, 160), (20, 310)) * 6),
    )
}
