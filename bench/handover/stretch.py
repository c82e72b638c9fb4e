"""A stretch of time as the events lived it: latencies, late ones, throughput by the second."""

import msgspec
import numpy as np

from bench.handover.evidence import IntArray, Served
from bench.handover.windows import overlapping
from report.measures import percentile_us

SECOND_US = 1_000_000


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Events that waited or were served at any time of it. Seconds, events/s; null where there were none."""

    length_s: float
    events: int
    late: int
    """With a latency above the target."""
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    throughput: float
    """Finished within it, per second."""
    worst_second: int | None
    """Finished in the poorest whole second; null where it is shorter than one."""


def stretch(served: Served, from_us: int, to_us: int, *, latency_target_s: float) -> Stretch:
    """Judge [from_us, to_us]. served: first completions only."""
    rows = overlapping(served, from_us, to_us)
    latency_us = served.latency_us[rows]
    done_us = served.done_us[(served.done_us >= from_us) & (served.done_us < to_us)]
    length_s = (to_us - from_us) / SECOND_US
    p50_s, p99_s, p999_s, max_s = (_percentile_s(latency_us, share) for share in (0.5, 0.99, 0.999, 1.0))
    return Stretch(
        length_s=length_s,
        events=len(rows),
        late=int(np.count_nonzero(latency_us > round(latency_target_s * SECOND_US))),
        p50_s=p50_s,
        p99_s=p99_s,
        p999_s=p999_s,
        max_s=max_s,
        throughput=len(done_us) / length_s if length_s > 0 else 0.0,
        worst_second=_worst_second(done_us - from_us, int(length_s)),
    )


def _worst_second(after_us: IntArray, seconds: int) -> int | None:
    if seconds < 1:
        return None
    counts = np.bincount(after_us[after_us < seconds * SECOND_US] // SECOND_US, minlength=seconds)
    return int(counts.min())


def _percentile_s(latency_us: IntArray, percentile: float) -> float | None:
    return percentile_us(latency_us, percentile) / 1e6 if len(latency_us) else None
