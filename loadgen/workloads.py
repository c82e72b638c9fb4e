"""Workloads: how many events each second of a run sends, as pure functions. Sources: CLOSER 2024 figures 2 and 6."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


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

    def events(self, duration_s: int) -> IntArray:
        """Return the counts of the first `duration_s` seconds. Raises ValueError where the workload is shorter."""
        if not 0 < duration_s <= self.duration_s:
            raise ValueError(f"workload {self.name} lasts {self.duration_s} s; {duration_s} s were asked for")
        return np.asarray(self.counts()[:duration_s])


def half_cosine(knots: tuple[tuple[float, float], ...]) -> FloatArray:
    """Return the rate (events/s) in the middle of each second of a curve that eases from knot to knot.

    knots: (t in s, rate in events/s), t growing from 0. Between two of them the rate is
    r0 + (r1 − r0)·(1 − cos(π·(t − t0)/(t1 − t0)))/2.
    """
    times, rates = np.array(knots, dtype=np.float64).T
    t = np.arange(0.5, times[-1])
    left = np.searchsorted(times, t, side="right") - 1
    t0, t1, r0, r1 = times[left], times[left + 1], rates[left], rates[left + 1]
    return np.asarray(r0 + (r1 - r0) * (1 - np.cos(np.pi * (t - t0) / (t1 - t0))) / 2)


def whole_events(rate: npt.NDArray[np.floating[Any]]) -> IntArray:
    """Return n(t) = ⌈rate⌉."""
    return np.asarray(np.ceil(rate), dtype=np.int64)


def skew_9(n: IntArray) -> IntArray:
    """Spread n(t) over nine partitions: two get ⌈0.25·n⌉ each, seven ⌈0.5·n/7⌉ each. Shape (seconds, 9)."""
    hot, cold = whole_events(0.25 * n), whole_events(0.5 * n / 7)
    return np.column_stack([hot] * 2 + [cold] * 7)


W1_KNOTS: Final = ((0, 0), (125, 200), (212.5, 150), (300, 275), (387.5, 150), (475, 350), (600, 0))

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


def _w1() -> IntArray:
    return whole_events(half_cosine(W1_KNOTS))


def _demo() -> IntArray:
    return skew_9(whole_events(half_cosine(tuple((t, share * DEMO_PEAK) for t, share in DEMO_SHAPE))))


def _smoke() -> IntArray:
    return np.repeat(np.array([10, 60, 10]), 5)


def _steady(rate: int) -> Workload:
    """`rate` events/s, second after second: what the cost of the processes is measured at."""
    name, description = f"steady-{rate}", f"{rate} events/s for 60 s"
    return Workload(name, description, 60, None, lambda: np.full(60, rate, dtype=np.int64))


WORKLOADS: Final[dict[str, Workload]] = {
    workload.name: workload
    for workload in (
        Workload("w1", "three growing waves to 350 events/s in 600 s", 600, None, _w1),
        Workload("w1-skew9", "w1 with half of its events in 2 of 9 partitions", 600, 9, lambda: skew_9(_w1())),
        Workload("demo", "calm, ramp, surge, dip, spike, calm in 120 s, skewed over 9 partitions", 120, 9, _demo),
        Workload("smoke", "10, 60, 10 events/s, five seconds each", 15, None, _smoke),
        _steady(150),
        _steady(350),
    )
}
