"""A schedule is the intended time and the partition of each event of a workload. Equal seeds give equal schedules."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial
from typing import ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from contracts.settings import Rules, Settings, Values, setting
from loadgen.shapes import IntArray

SECOND_US: Final = 1_000_000
NO_KEY: Final = -(2**63)
"""Key of an event without a key."""


class Spacing(StrEnum):
    """Distribution of the events within a second."""

    BURST = "burst"
    """All events at the start of the second, or as configured by `Bursts`."""
    SMOOTH = "smooth"
    """Events evenly spaced."""
    POISSON = "poisson"
    """Events at uniformly random times."""


class Split(StrEnum):
    """How events are distributed over partitions."""

    EVEN = "even"
    """Event number k of the run goes to partition k mod n."""
    RANDOM = "random"
    """Each event goes to a uniformly random partition."""
    TABLE = "table"
    """The workload's own table decides."""


def _within_period(inclusive: bool, name: str, values: Values) -> str | None:
    value, period_s = values[name], values["burst_period_s"]
    if isinstance(value, str) or value < period_s or (inclusive and value == period_s):
        return None
    return f"must be {'at most' if inclusive else 'less than'} burst_period_s, {period_s:g} s"


def _bursts_have_spacing(values: Values) -> str | None:
    changed = [field.name for field in fields(Bursts) if values[field.name] not in (field.default, "random")]
    if not changed or values["spacing"] is Spacing.BURST:
        return None
    return f"has no bursts: leave out {', '.join(changed)}, or use 'burst'"


BURST_RULES: Final[Rules] = (
    ("burst_phase_s", partial(_within_period, False, "burst_phase_s")),
    ("burst_jitter_s", partial(_within_period, True, "burst_jitter_s")),
    ("spacing", _bursts_have_spacing),
)
"""Pairs of the setting that the message names, and the rule. The last rule is for records with a `spacing`."""


@dataclass(frozen=True, kw_only=True)
class Bursts(Settings):
    """Times of bursts for the spacing `burst`."""

    burst_period_s: float = setting(1.0, "s", least=0.1, most=600)
    """Time from one burst to the next. A burst has all events of its period."""
    burst_phase_s: float | Literal["random"] = setting(0.0, "s", least=0)
    """Offset of the first burst in its period. `random`: drawn with the seed."""
    burst_jitter_s: float = setting(0.0, "s", least=0)
    """Longest random delay of a burst, at most the period."""
    burst_drift_s: float = setting(0.0, "s", least=0, most=600)
    """Increase of the period from the start to the end of the workload."""

    RULES: ClassVar[Rules] = BURST_RULES

    def phase_s(self, seed: int) -> float:
        """Return the phase. A random phase is chosen by the seed."""
        phase = self.burst_phase_s
        return _random_streams(seed)[2].uniform(0, self.burst_period_s) if isinstance(phase, str) else phase


EACH_SECOND: Final = Bursts()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Event number k is row k of each array."""

    offset_us: IntArray
    """Intended times, µs after the start of the run, ascending."""
    partition: npt.NDArray[np.int32]
    key: IntArray | None = None
    """Keys of the events; NO_KEY: an event without one. None: no keys are known."""

    def __len__(self) -> int:
        return len(self.offset_us)

    def __getitem__(self, part: slice) -> "Schedule":
        return Schedule(self.offset_us[part], self.partition[part], None if self.key is None else self.key[part])


def build_schedule(
    counts: IntArray, *, spacing: Spacing, split: Split, partitions: int, seed: int, bursts: Bursts = EACH_SECOND
) -> Schedule:
    """Return the schedule of these events per second.

    counts: shape (seconds,), or (seconds, partitions) with `Split.TABLE`.
    Raises ValueError if the shape of `counts` does not fit the split.
    """
    no_limit = int(counts.sum()) + 1
    chunks = list(
        schedule_chunks(counts, no_limit, spacing=spacing, split=split, partitions=partitions, seed=seed, bursts=bursts)
    )
    return chunks[0] if chunks else Schedule(np.zeros(0, np.int64), np.zeros(0, np.int32))


def schedule_chunks(
    counts: IntArray,
    chunk_events: int,
    *,
    spacing: Spacing,
    split: Split,
    partitions: int,
    seed: int,
    bursts: Bursts = EACH_SECOND,
) -> Iterator[Schedule]:
    """Yield the events of `build_schedule` in parts, because a whole run may not fit into memory.

    chunk_events: a part ends with the second (or burst) in which it reaches this number of events. Choose far more than
    one second has. Raises ValueError if the shape of `counts` does not fit the split.
    """
    if counts.shape[1:] != ((partitions,) if split is Split.TABLE else ()):
        raise ValueError(f"split {split} over {partitions} partitions does not fit counts of shape {counts.shape}")
    time_random, partition_random, _, jitter_random = _random_streams(seed)
    begin_us = np.arange(len(counts)) * SECOND_US
    if spacing is Spacing.BURST and bursts != EACH_SECOND:
        begin_us, counts = _bursts(counts, bursts, bursts.phase_s(seed), jitter_random)
    sizes = counts.sum(axis=1) if split is Split.TABLE else counts
    first = 0
    for begin, end in _parts(sizes, chunk_events):
        total = sizes[begin:end]
        offset_us = np.repeat(begin_us[begin:end], total) + _offsets_in_second_us(total, spacing, time_random)
        if split is Split.TABLE:
            labels = _interleaved(counts[begin:end])
        elif split is Split.RANDOM:
            labels = partition_random.integers(0, partitions, len(offset_us))
        else:
            labels = np.arange(first, first + len(offset_us)) % partitions
        if spacing is Spacing.POISSON:
            order = np.argsort(offset_us, kind="stable")
            offset_us = offset_us[order]
            labels = (
                labels[order] if split is Split.TABLE else labels
            )  # with a table, an event keeps its own random time
        first += len(offset_us)
        yield Schedule(offset_us, labels.astype(np.int32))


def _random_streams(seed: int) -> list[np.random.Generator]:
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]


def _bursts(counts: IntArray, bursts: Bursts, phase_s: float, random: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the time of each burst (µs, never after the last second) and its events, in the shape of the counts."""
    seconds, period_s, drift = len(counts), bursts.burst_period_s, bursts.burst_drift_s / len(counts)
    if drift:  # dt = (period + drift·t) dk
        number = math.ceil(round(math.log1p(seconds * drift / period_s) / drift, 9))
        edges_s = np.minimum(np.round(period_s / drift * np.expm1(drift * np.arange(number + 1)), 9), seconds)
    else:
        number = math.ceil(round(seconds / period_s, 9))
        edges_s = np.minimum(np.round(np.arange(number + 1) * period_s, 9), seconds)
    reached = np.concatenate([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)])
    second = edges_s.astype(np.int64)
    share = (edges_s - second).reshape(-1, *[1] * (counts.ndim - 1))
    rest = reached[np.minimum(second + 1, seconds)] - reached[second]
    carried = np.diff(reached[second] + np.floor(rest * share).astype(np.int64), axis=0)
    begin_s = edges_s[:-1] + phase_s + random.uniform(0, bursts.burst_jitter_s, number)
    return np.minimum((begin_s * SECOND_US).astype(np.int64), seconds * SECOND_US - 1), carried


def _parts(sizes: IntArray, chunk_events: int) -> Iterator[tuple[int, int]]:
    reached = np.cumsum(sizes)
    begin, before = 0, 0
    while begin < len(reached):
        end = min(int(np.searchsorted(reached, before + chunk_events)) + 1, len(reached))
        yield begin, end
        begin, before = end, int(reached[end - 1])


def _rank(group_sizes: IntArray) -> IntArray:
    starts = np.cumsum(group_sizes) - group_sizes
    return np.arange(group_sizes.sum()) - np.repeat(starts, group_sizes)


def _offsets_in_second_us(per_second: IntArray, spacing: Spacing, random: np.random.Generator) -> IntArray:
    total = int(per_second.sum())
    if spacing is Spacing.BURST:
        return np.zeros(total, dtype=np.int64)
    if spacing is Spacing.POISSON:
        return random.integers(0, SECOND_US, total)
    return _rank(per_second) * SECOND_US // np.repeat(per_second, per_second)


def _interleaved(counts: IntArray) -> IntArray:
    """Return the partition of each event, such that the events of every partition are evenly spaced in a second.

    Event i of c events of a partition is sorted at (i + ½)/c. Ties go by partition.
    Example: counts (1, 2) → partitions 1 0 1.
    """
    flat = counts.ravel()
    second, partition = np.divmod(np.repeat(np.arange(flat.size), flat), counts.shape[1])
    place = second + (_rank(flat) + 0.5) / np.repeat(flat, flat)
    return np.asarray(partition[np.argsort(place, kind="stable")])
