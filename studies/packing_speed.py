"""How long a packing takes, and how that grows with the partitions.

Loads are drawn at random, ten partitions to a consumer of which nine tenths are filled. Owners are a packing of earlier
loads that have changed since, so that about half of the consumers have outgrown their capacity.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import msgspec
import numpy as np

from autoscaler.packing.bins import Capacity, Item
from autoscaler.packing.least_loaded import least_loaded
from autoscaler.packing.packers import PACKERS
from bench.results import load, table

SIZES: Final = ((10, 1), (100, 10), (1_000, 100), (10_000, 1_000))
"""(partitions, consumers)."""
REPEATS: Final = 15
CAPACITY: Final = 100.0
LAGS: Final = ("any", "opposed")
"""Lag of a partition in the second dimension of Least-Loaded: nothing to do with its rate; the less the more rate."""


class PackingSpeedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One packer at one size."""

    packer: str
    partitions: int
    consumers: int
    """Before."""
    milliseconds: float
    """Median of processor time, with the conversion from and to mappings."""


def measure_all() -> list[PackingSpeedRow]:
    """Measure every packer at every size."""
    rows = []
    for partitions, consumers in SIZES:
        loads, owners = _situation(partitions, consumers)
        calls: dict[str, Callable[[], object]] = {
            name: partial(packer, loads, owners, CAPACITY) for name, packer in PACKERS.items()
        }
        calls |= {
            f"least_loaded, {lags} lag": partial(least_loaded, _items(loads, lags), Capacity(CAPACITY, CAPACITY / 2))
            for lags in LAGS
        }
        for name, call in calls.items():
            call()  # the compiler's time is not the packer's
            found = statistics.median(_milliseconds(call) for _ in range(REPEATS))
            rows.append(
                PackingSpeedRow(packer=name, partitions=partitions, consumers=consumers, milliseconds=round(found, 3))
            )
    return rows


def _situation(partitions: int, consumers: int) -> tuple[dict[int, float], dict[int, int]]:
    """Return loads, and owners that fitted loads before."""
    chance = np.random.default_rng(partitions)
    before = chance.uniform(0, 2, partitions) * 0.9 * CAPACITY * consumers / partitions
    owners = PACKERS["wfd"](dict(enumerate(before.tolist())), {}, CAPACITY)
    after = before * chance.uniform(0.5, 1.6, partitions)
    return dict(enumerate(after.tolist())), owners


def _items(loads: dict[int, float], lags: str) -> list[Item]:
    """Return partitions with lags (see LAGS) that are as scarce as the rates: half of them in total."""
    rates = np.array(list(loads.values()))
    found = np.random.default_rng(len(loads)).permutation(rates) if lags == "any" else rates.max() - rates
    found *= rates.sum() / found.sum() / 2
    return [Item(partition, load, lag) for (partition, load), lag in zip(loads.items(), found.tolist(), strict=True)]


def _milliseconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return (time.process_time() - begun) * 1e3


def by_packer(rows: Iterable[PackingSpeedRow]) -> dict[str, dict[int, float]]:
    """Return packer → partitions → milliseconds."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        found.setdefault(row.packer, {})[row.partitions] = row.milliseconds
    return found


def grid(rows: Sequence[PackingSpeedRow]) -> tuple[list[str], list[list[str]]]:
    """Return the header (partitions × consumers) and the lines of a table in milliseconds."""
    sizes = sorted({(row.partitions, row.consumers) for row in rows})
    header = ["ms", *(f"{size:,} × {consumers:,}" for size, consumers in sizes)]
    return header, [
        [packer, *(f"{milliseconds[size]:.2f}" for size, _ in sizes)]
        for packer, milliseconds in by_packer(rows).items()
    ]


def committed() -> str:
    """Return how long each packer takes, and how that grows."""
    found = load("packing-speed", PackingSpeedRow)
    return table(*grid([row.result for row in found]), (row.origin for row in found))


SPEED_TABLES: Final[dict[str, Callable[[], str]]] = {"packing-speed": committed}
