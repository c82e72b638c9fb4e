"""The latency model on streams as in section VI-C of the paper: every packer, and kd_n for five n."""

from collections.abc import Sequence
from dataclasses import dataclass

from report.statistics import bootstrap_interval
from studies.packing import courses
from studies.packing.contestants import Contestant, everybody
from studies.packing.latency import Waits, round_robin, waits
from studies.packing.published import LATENCY_DELTA, LATENCY_ITERATIONS, LATENCY_PARTITIONS, ROUND_ROBIN_P90_S
from studies.packing.result import LatencyRow, LatencyStudy
from studies.packing.streams import Start, random_walk
from studies.packing.study import spread

SHARE = 0.9


@dataclass(frozen=True, slots=True)
class LatencyWalk:
    """One stream to pack."""

    seed: int
    number: int
    start: Start = None


@dataclass(frozen=True, slots=True)
class Delay:
    """What the events of one stream waited under one packer."""

    consumers: float
    p90_delayed_s: float | None
    mean_s: float
    share_delayed: float
    p90_s: float


def delays_of_all(walk: LatencyWalk, contestants: Sequence[Contestant] | None = None) -> dict[str, Delay]:
    """Pack one stream with all contestants (None: everybody) and with kd_n; return packer → delay."""
    seed = (walk.seed, LATENCY_PARTITIONS, LATENCY_ITERATIONS, walk.number)
    stream = random_walk(
        partitions=LATENCY_PARTITIONS,
        iterations=LATENCY_ITERATIONS,
        delta=LATENCY_DELTA,
        seed=seed,
        start=walk.start,
    )
    found = {one.name: courses.pack_all(one, stream) for one in contestants or everybody()}
    found |= {f"kd_{n}": round_robin(LATENCY_PARTITIONS, LATENCY_ITERATIONS, n) for n in ROUND_ROBIN_P90_S}
    return {
        name: _delay(float(courses.consumers(course).mean()), waits(course, stream.loads))
        for name, course in found.items()
    }


def summarise_delays(found: Sequence[dict[str, Delay]]) -> LatencyStudy:
    """Return packer by packer what the streams have in common."""
    return LatencyStudy(
        partitions=LATENCY_PARTITIONS,
        delta=LATENCY_DELTA,
        streams=len(found),
        iterations=LATENCY_ITERATIONS,
        rows=tuple(_row(name, [one[name] for one in found]) for name in found[0]),
    )


def _delay(consumers: float, waited: Waits) -> Delay:
    return Delay(
        consumers=consumers,
        p90_delayed_s=waited.quantile_of_delayed_s(SHARE),
        mean_s=waited.mean_s,
        share_delayed=waited.share_delayed,
        p90_s=waited.quantile_s(SHARE),
    )


def _row(name: str, delays: Sequence[Delay]) -> LatencyRow:
    delayed = [one.p90_delayed_s for one in delays if one.p90_delayed_s is not None]
    return LatencyRow(
        packer=name,
        consumers=bootstrap_interval([one.consumers for one in delays]),
        consumers_range=spread([one.consumers for one in delays]),
        p90_delayed_s=spread(delayed) if delayed else None,
        streams_delayed=len(delayed),
        mean_s=bootstrap_interval([one.mean_s for one in delays]),
        share_delayed=bootstrap_interval([one.share_delayed for one in delays]),
        p90_s=bootstrap_interval([one.p90_s for one in delays]),
    )
