"""What an experiment leaves behind: events served, steps taken, offsets seen. Times are µs since 1970."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
OFFSET_BITS: Final = 40
UNKNOWN: Final = -1
"""A committed offset that did not exist, or that the broker did not return."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """The part of a timeline that is needed: to decode the rest would load the machine."""

    intended_us: int
    done_us: int
    partition: int
    offset: int
    replica: str


class Settled(msgspec.Struct, frozen=True, gc=False):
    """The part of a record of payments.settled that is needed."""

    timeline: Row


@dataclass(frozen=True, slots=True)
class Served:
    """Finished events in order of `done_us`: columns of one length."""

    intended_us: IntArray
    done_us: IntArray
    partition: IntArray
    offset: IntArray
    replica: IntArray
    """Index into `names`."""
    names: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Served":
        """Return rows as columns."""
        names = tuple(sorted({row.replica for row in rows}))
        index = {name: number for number, name in enumerate(names)}
        ordered = sorted(rows, key=lambda row: row.done_us)
        cells = [(one.intended_us, one.done_us, one.partition, one.offset, index[one.replica]) for one in ordered]
        intended_us, done_us, partition, offset, replica = np.array(cells, dtype=np.int64).reshape(-1, 5).T
        return cls(intended_us, done_us, partition, offset, replica, names)

    def __len__(self) -> int:
        return len(self.done_us)

    @property
    def latency_us(self) -> IntArray:
        """Finished minus intended."""
        return self.done_us - self.intended_us

    def first_completions(self) -> "Served":
        """Return the same without repeats: the first completion of an event counts."""
        _, first = np.unique((self.partition << OFFSET_BITS) + self.offset, return_index=True)
        rows = np.sort(first)
        columns = ("intended_us", "done_us", "partition", "offset", "replica")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})


@dataclass(frozen=True, slots=True)
class Move:
    """One partition that a step gives from `source` to `target`."""

    partition: int
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Step:
    """One change made to the group while it served."""

    kind: str
    at_us: int
    """When the plan's record was written, the signal sent or the process started."""
    until_us: int
    """When the experiment went on: nothing later belongs to this step."""
    moves: tuple[Move, ...] | None = None
    """What the plan moves. None: there was no plan, so the observed owners show it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of one experiment."""

    sent_us: IntArray
    """Intended times of the events that the broker acknowledged to the generator; no two are equal."""
    served: Served
    steps: tuple[Step, ...]
    quiet: tuple[tuple[int, int], ...]
    """Periods (from, to) in which nothing was changed."""
    committed: IntArray
    """Committed offsets over time, shape (samples, partitions); UNKNOWN where there was none."""
