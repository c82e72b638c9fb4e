"""Reproduce Landau et al. 2024: moves and costs of twelve packing heuristics, with loads that are random walks."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.packing.packers import ARRIVAL_ORDER_PACKERS, PACKERS, Packer
from bench.matrix import Job, Row
from loadgen.shapes import LANDAU_MAX, walk_loads
from report.measures import bootstrap_interval, pareto_front
from studies.verdict import Statement, StudyResult, judge, verdict

PAPER: Final = "Landau, Saurabh, Andrade, Barbosa 2024 (arXiv:2402.06085)"
TABLE: Final = "Twelve packing algorithms: Rscore, CBS"
EXISTING: Final = (*ARRIVAL_ORDER_PACKERS, "nfd", "ffd", "bfd", "wfd")
THE_TWELVE: Final = (*EXISTING, "mwf", "mbf", "mwfp", "mbfp")
"""All compared packers. CBS of a packer: its number of consumers, divided by the smallest of all twelve, minus 1."""
ALWAYS_PARETO_OPTIMAL: Final = ("mbf", "mbfp", "mwf")
HEADLINES: Final = {5: (-0.55, 0.118), 25: (-0.23, 0.088)}
"""Largest step δ of a load → MWF's Rscore, relative to the smallest of EXISTING minus 1, and its CBS."""
PARTITIONS: Final = 200
"""Number of partitions of the published streams, according to the paper's data."""
TOLERANCE: Final = 0.005
"""A printed share may be this far outside the range of our streams."""
CAPACITY: Final = LANDAU_MAX
"""Capacity of a consumer, in the unit of the loads. The load of a partition never exceeds it."""
STREAMS, ITERATIONS = 20, 501
QUICK_STREAMS, QUICK_ITERATIONS = 3, 101
Owners = NDArray[np.int64]
"""Number of the consumer that owns a partition, shape (iterations, partitions)."""
Means = Mapping[str, list[tuple[float, float]]]
"""Packer → (Rscore, CBS) of each stream."""


class Stream(NamedTuple):
    """Loads of partitions by iteration, and the orders in which a packer gets them."""

    loads: NDArray[np.int64]
    base_order: tuple[int, ...]
    """A fixed permutation of the partitions, by which packers order equal loads."""
    fresh_orders: NDArray[np.int64]
    """A permutation per iteration, for packers that use the order of arrival."""


def random_walk(*, partitions: int, iterations: int, delta: int, seed: Sequence[int]) -> Stream:
    """Return a stream whose loads change by a uniform integer in {-delta, …, delta} in each iteration.

    Loads are limited to 0 … CAPACITY. The paper's formula lacks the upper limit, so a load could exceed a consumer.
    """
    chance = np.random.default_rng(seed)
    loads = walk_loads(chance, partitions=partitions, seconds=iterations, delta=delta, start=None)
    base_order = tuple(chance.permutation(partitions).tolist())
    return Stream(loads, base_order, chance.permuted(np.tile(np.arange(partitions), (iterations, 1)), axis=1))


def pack_all(packer: Packer, stream: Stream, *, fresh_order: bool = False) -> Owners:
    """Return the owners after each iteration. Each packing starts from the previous owners.

    fresh_order: whether the packer gets the partitions in a new order each time, as the paper's online algorithms do.
    """
    history, owners = np.empty(stream.loads.shape, np.int64), dict[int, int]()
    for iteration, row in enumerate(stream.loads.tolist()):
        order = stream.fresh_orders[iteration].tolist() if fresh_order else stream.base_order
        owners = dict(packer(dict(enumerate(row)), owners, CAPACITY, order=order))
        history[iteration] = [owners[partition] for partition in range(len(row))]
    return history


def consumers(owners: Owners) -> NDArray[np.int64]:
    """Return the number of consumers with partitions in each iteration."""
    in_order = np.sort(owners, axis=1)
    return np.asarray(1 + np.count_nonzero(np.diff(in_order, axis=1), axis=1), np.int64)


def rscore(owners: Owners, loads: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the load that changes its owner in each iteration, in units of a consumer's capacity; 0 in the first.

    The loads are those of the new iteration, as in equation 9 of the paper and in its code.
    """
    moved = np.zeros(owners.shape, np.bool_)
    moved[1:] = owners[1:] != owners[:-1]
    return np.asarray((loads * moved).sum(axis=1) / CAPACITY, np.float64)


def pack_job(job: Job) -> Row:
    """Pack one stream with each packer; return packer → mean Rscore, mean CBS (share of consumers above the fewest)."""
    params = dict(job.changes)
    # the leading 1 makes the streams equal to those of the stored results
    seed = (1, params["partitions"], params["delta"], job.seed)
    stream = random_walk(**params, seed=seed)
    owned = {name: pack_all(PACKERS[name], stream, fresh_order=name in ARRIVAL_ORDER_PACKERS) for name in THE_TWELVE}
    counts = {name: consumers(owners) for name, owners in owned.items()}
    least = np.min(list(counts.values()), axis=0)
    return {
        name: (float(rscore(owners, stream.loads).mean()), float(((counts[name] - least) / least).mean()))
        for name, owners in owned.items()
    }


def reproduce(folder: Path, *, streams: int = STREAMS, iterations: int = ITERATIONS, **how: Any) -> StudyResult:
    """Pack streams with both values of δ, and compare the results with the statements of the paper."""
    jobs = {
        (delta, number): Job(
            scenario="landau", policy="the-twelve", seed=number,
            changes=(("delta", delta), ("iterations", iterations), ("partitions", PARTITIONS)),
        )
        for delta, number in product(HEADLINES, range(streams))
    }  # fmt: skip

    def compared(rows: Mapping[Job, Row]) -> Iterator[Statement]:
        found = {
            delta: {key: [tuple(rows[job][key]) for (of, _), job in jobs.items() if of == delta] for key in THE_TWELVE}
            for delta in HEADLINES
        }
        return statements(found, f"{streams} streams of {iterations} iterations")

    return judge(jobs.values(), pack_job, compared, folder, **how)


def statements(found: Mapping[int, Means], reading: str) -> Iterator[Statement]:
    """Yield the statements of the paper with our results. found: largest step δ of a load → results.

    A printed share is reproduced if it is between the lowest and highest share of our streams, or close to them.
    """
    rows: list[tuple[str, str, str, bool]] = []
    exceptions: dict[str, list[str]] = {"MBF, MBFP and MWF are Pareto-optimal among the twelve": []}
    for delta, (fewer_moves, more_consumers) in HEADLINES.items():
        means = {name: np.mean(some, axis=0) for name, some in found[delta].items()}
        base, mwf = min(EXISTING, key=lambda name: means[name][0]), found[delta]["mwf"]
        changes = [ours[0] / theirs[0] - 1 for ours, theirs in zip(mwf, found[delta][base], strict=True)]
        for what, printed, ours in (
            ("moves less load than the best existing", fewer_moves, changes),
            ("needs more consumers than the least", more_consumers, [cbs for _, cbs in mwf]),
        ):
            mean = bootstrap_interval(ours)
            text = f"{100 * mean.mean:+.1f} % ({100 * mean.low:+.1f} … {100 * mean.high:+.1f}) (compared with {base})"
            inside = min(ours) - TOLERANCE <= printed <= max(ours) + TOLERANCE
            rows.append((f"MWF {what}, δ = {delta}", f"{100 * printed:+.1f} %", text, inside))
        front = {THE_TWELVE[at] for at in pareto_front([(-means[name][0], means[name][1]) for name in THE_TWELVE])}
        off = [f"{name} at δ = {delta}" for name in ALWAYS_PARETO_OPTIMAL if name not in front]
        exceptions["MBF, MBFP and MWF are Pareto-optimal among the twelve"] += off
    first, last = ({name: bootstrap_interval([moved for moved, _ in found[delta][name]]) for name in THE_TWELVE}
                   for delta in HEADLINES)  # fmt: skip
    exceptions["the Rscore grows with δ for all algorithms"] = [
        name for name in THE_TWELVE if last[name].low <= first[name].high
    ]
    for what, some in exceptions.items():
        rows.append((what, "all", f"not {', '.join(some)}" if some else "all", not some))
    for what, published, text, holds in rows:
        yield Statement(
            paper=PAPER, table=TABLE, what=what, published=published, ours=text, reading=reading, verdict=verdict(holds)
        )
