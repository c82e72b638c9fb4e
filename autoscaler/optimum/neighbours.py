"""Placements worth trying at each tick: for what comes about then, and near the best schedule so far. Compiled."""

from typing import Final

import numpy as np

from autoscaler.jit import compiled
from autoscaler.optimum.columns import Columns
from autoscaler.optimum.serving import Ints

WIDTH: Final = 14
"""Columns of a tick at most."""
SPANS: Final = (1, 3, 10, 30)
"""Ticks in which a first placement stays."""


@compiled
def _balanced(weight: Ints, bins: int, out: Ints) -> None:
    """Put the heaviest partition left into the lightest bin, until none is left."""
    load = np.zeros(bins, np.int64)
    for partition in np.argsort(-weight, kind="mergesort"):
        out[partition] = load.argmin()
        load[out[partition]] += weight[partition] + 1


@compiled
def _fitting(weight: Ints, capacity: int) -> int:
    """Return in how many bins first fit puts them, the heaviest first; what fits into none has one of its own."""
    room = np.zeros(len(weight), np.int64)
    bins = 0
    for partition in np.argsort(-weight, kind="mergesort"):
        place = 0
        while place < bins and room[place] < weight[partition]:
            place += 1
        if place == bins:
            bins += 1
            room[place] = capacity
        room[place] -= weight[partition]
    return bins


@compiled
def _loads(bin_of: Ints, bins: int, weight: Ints) -> Ints:
    load = np.zeros(bins, np.int64)
    for partition in range(len(bin_of)):
        load[bin_of[partition]] += weight[partition]
    return load


@compiled
def _without(bin_of: Ints, bins: int, weight: Ints, lightest: int, out: Ints) -> None:
    """Give the partitions of a bin, the first, second … lightest, to the others: each to the one with least."""
    load = _loads(bin_of, bins, weight)
    gone = np.argsort(load, kind="mergesort")[lightest]
    load[gone] = np.iinfo(np.int64).max
    out[:] = bin_of
    for partition in np.argsort(-weight, kind="mergesort"):
        if bin_of[partition] == gone:
            out[partition] = load.argmin()
            load[out[partition]] += weight[partition] + 1


@compiled
def _split(bin_of: Ints, bins: int, weight: Ints, out: Ints) -> None:
    """Give every other partition of the heaviest bin to a new one."""
    heaviest = _loads(bin_of, bins, weight).argmax()
    out[:] = bin_of
    stays = True
    for partition in np.argsort(-weight, kind="mergesort"):
        if bin_of[partition] == heaviest:
            out[partition] = heaviest if stays else bins
            stays = not stays


@compiled
def _offer(columns: Columns, tick: int, bin_of: Ints) -> None:
    """Add a placement to the columns of the last tick, unless it is there; bins are numbered anew, as they appear."""
    begin, end = columns.first[tick], columns.first[tick + 1]
    if end - begin == WIDTH:
        return
    name = np.full(len(bin_of) + 1, -1)
    bins = 0
    for partition in range(len(bin_of)):
        if name[bin_of[partition]] < 0:
            name[bin_of[partition]] = bins
            bins += 1
        columns.bin[end, partition] = name[bin_of[partition]]
    for other in range(begin, end):
        if columns.bins[other] == bins and (columns.bin[other] == columns.bin[end]).all():
            return
    columns.bins[end] = bins
    columns.first[tick + 1] = end + 1


@compiled
def _empty(ticks: int, partitions: int) -> Columns:
    return Columns(
        np.zeros(ticks + 1, np.int64),
        np.zeros((ticks * WIDTH + 1, partitions), np.int64),
        np.zeros(ticks * WIDTH + 1, np.int64),
    )


@compiled
def first_columns(work: Ints, capacity: int, most: int, owner: Ints) -> Columns:
    """Return placements for what comes in spans of ticks, in as few bins of `capacity` as hold it, or one more or less.

    work: shape (ticks + 1, partitions), µs that come before each tick, and after the last. capacity: µs of a burst
    that one replica can do. most: bins. owner: the placement before the first tick, always one to choose.
    """
    ticks, partitions = work.shape[0] - 1, work.shape[1]
    columns = _empty(ticks, partitions)
    out = np.zeros(partitions, np.int64)
    for tick in range(ticks):
        columns.first[tick + 1] = columns.first[tick]
        _offer(columns, tick, owner)
        for span in SPANS:
            begin = tick // span * span
            weight = np.zeros(partitions, np.int64)
            for near in range(begin, min(begin + span, ticks) + 1):
                weight = np.maximum(weight, work[near])
            bins = _fitting(weight, capacity)
            for count in (bins, bins - 1, bins + 1):
                if count > 0:
                    _balanced(weight, min(count, most), out)
                    _offer(columns, tick, out)
    return columns


@compiled
def near_columns(work: Ints, most: int, path: Ints, columns: Columns, draws: Ints) -> Columns:
    """Return what the path has, and what differs from it by little.

    path: the column of each tick. draws: shape (ticks, 6), random numbers of at least 0.
    """
    ticks, partitions = work.shape[0] - 1, work.shape[1]
    near = _empty(ticks, partitions)
    out = np.zeros(partitions, np.int64)
    for tick in range(ticks):
        near.first[tick + 1] = near.first[tick]
        here, bins = columns.bin[path[tick]], columns.bins[path[tick]]
        draw = draws[tick]
        weight = work[tick : tick + 2].sum(axis=0) if draw[0] % 3 == 0 else work[tick + draw[0] % 3 - 1].copy()
        _offer(near, tick, here)
        for other in (tick - 1, tick + 1):
            if 0 <= other < ticks:
                _offer(near, tick, columns.bin[path[other]])
        for lightest in range(min(2, bins - 1)):
            _without(here, bins, weight, lightest, out)
            _offer(near, tick, out)
        if bins > 2:
            _without(here, bins, weight, draw[5] % bins, out)
            _offer(near, tick, out)
        if bins < min(most, partitions):
            _split(here, bins, weight, out)
            _offer(near, tick, out)
        for count in (bins, bins - 1):
            if count > 0:
                _balanced(weight, count, out)
                _offer(near, tick, out)
        load = _loads(here, bins, weight)
        out[:] = here
        out[draw[1] % partitions] = load.argmin()
        _offer(near, tick, out)
        out[:] = here
        one, other = draw[2] % partitions, draw[3] % partitions
        out[one], out[other] = here[other], here[one]
        _offer(near, tick, out)
        out[:] = here
        out[draw[4] % partitions] = draw[5] % bins
        _offer(near, tick, out)
    return near
