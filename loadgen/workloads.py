"""Workloads by name. Each is a function that returns the number of events in each second of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import numpy as np

from loadgen import shapes
from loadgen.shapes import IntArray, half_cosine, skew_9, whole_events


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload: λ(t) in whole events per second."""

    name: str
    duration_s: int
    partitions: int | None
    """Number of partitions of the workload's own table; None: the split chooses the partitions."""
    counts: Callable[[], IntArray]
    """Events per second, shape (duration_s,), or (duration_s, partitions) with an own table."""
    rule: Callable[[IntArray], IntArray] | None = None
    """Computes the table from events per second, if a rule defines it. Shape (seconds,) → (seconds, partitions)."""
    repeats: bool = False
    """Whether it begins again at its end."""

    def events(self, duration_s: int) -> IntArray:
        """Return the counts of the first `duration_s` seconds. Raises ValueError if the workload is shorter."""
        if duration_s <= 0 or not self.lasts(duration_s):
            raise ValueError(f"workload {self.name} lasts {self.duration_s} s; {duration_s} s were requested")
        return np.asarray(self.counts()[np.arange(duration_s) % self.duration_s])

    def lasts(self, duration_s: int) -> bool:
        """Return whether the workload has events for `duration_s` seconds."""
        return self.repeats or duration_s <= self.duration_s

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
    (62, 1 / 4), (71, 1 / 4),   # dip
    (79, 1), (90, 1),           # spike; two replicas that start at once on two busy cores take 1.3 s
    (96, 1 / 8), (120, 1 / 8),  # calm again, long enough to scale down to one
)  # fmt: skip


def _demo() -> IntArray:
    return whole_events(half_cosine(tuple((t, share * DEMO_PEAK) for t, share in DEMO_SHAPE)))


def _of(name: str, counts: Callable[[], IntArray], rule: Callable[[IntArray], IntArray] | None = None) -> Workload:
    whole = counts if rule is None else lambda: rule(counts())
    shape = whole().shape
    return Workload(name, shape[0], shape[1] if len(shape) > 1 else None, whole, rule=rule)


CURVES: Final = {
    "smoke": "10 for 5, 60 for 5, 10 for 5",
    "surge": "20 for 30, 110 for 30, 20 for 30",
    "steady-150": "150 for 60",
    "step": "80 for 200, 330 for 200, 130 for 200",
    "ramp": "30 for 0, to 450 in 420, 450 for 60, to 30 in 120",
    "spike": "60 for 150, 400 for 30, 60 for 120, 450 for 5, 60 for 145, 480 for 1, 60 for 149",
    "silence": "150 for 200, 0 for 180, 300 for 100, 0 for 10, 100 for 110",
    "zero-then-load": "0 for 300, 400 for 300, 0 for 120, 300 for 180",
    "behind-a-limit": ", ".join(["160 for 130, 310 for 20"] * 6),
}
"""Workloads that are curves, in the words of `shapes.curve`."""
WORKLOADS: Final = {
    workload.name: workload
    for workload in (
        _of("w1", shapes.w1),
        _of("w1-skew9", shapes.w1, skew_9),
        _of("taxi", shapes.taxi),
        _of("taxi-skew9", shapes.taxi, skew_9),
        _of("w3", shapes.w3),
        _of("w4", shapes.w1, shapes.w4_shares),
        _of("demo", _demo, skew_9),
        *(_of(name, partial(shapes.curve, text)) for name, text in CURVES.items()),
        _of("sine", shapes.sine),
        _of("diurnal-week", shapes.diurnal_week),
        _of("hot-key", shapes.hot_key),
        _of("flash-crowd", shapes.flash_crowd),
        *(_of(f"square-{half_s}", partial(shapes.square, half_s)) for half_s in (30, 5, 1)),
        _of("sawtooth", shapes.sawtooth),
        _of("heavy-tails", shapes.heavy),
        _of("zipf-100", shapes.zipf_100),
        _of("hot-partition", shapes.hot_partition),
    )
}


@cache
def find_workload(name: str) -> Workload:
    """Return the workload of this name, or the repeated curve that `name` describes (`shapes.curve`).

    Raises KeyError with the problem for any other name.
    """
    if name in WORKLOADS:
        return WORKLOADS[name]
    if " " not in name:
        raise KeyError(f"{name!r} is unknown; known are {', '.join(WORKLOADS)}, and curves as '{CURVES['smoke']}'")
    try:
        counts = shapes.curve(name)
    except ValueError as error:
        raise KeyError(str(error)) from error
    return Workload(name, len(counts), None, lambda: counts, repeats=True)
