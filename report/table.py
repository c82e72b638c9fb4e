"""Tables of integer columns, with grouping, running maxima and look-ups.

A report is computed from pieces of the event rows. In memory there is one piece. Spark makes many pieces on many
machines and calls the same functions for each (`Rows`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
T = TypeVar("T")
NONE: Final = int(np.iinfo(np.int64).min)
"""Stands for an unknown value. It is the smallest integer, so that a maximum ignores it."""
MAX_INT: Final = int(np.iinfo(np.int64).max)
NAME_COLUMNS: Final = ("replica", "old", "owner")
"""Columns with replicas as numbers: indices into the sorted names; -1: no replica."""


class Table:
    """Columns of equal length. A column that is not in `columns` is computed by `rest` when it is first used."""

    def __init__(
        self, columns: Mapping[str, Ints], names: Sequence[str] = (), rest: Callable[[str], Ints] | None = None
    ) -> None:
        self._columns, self.names, self._rest = dict(columns), tuple(names), rest

    def __getitem__(self, name: str) -> Ints:
        if name not in self._columns and self._rest is not None:
            self._columns[name] = self._rest(name)
        return self._columns[name]

    def where(self, rows: Mask | Ints) -> "Table":
        """Return the table with only these rows. The rows of a column are selected when the column is first used."""
        return Table({}, self.names, lambda name: self[name][rows])

    def plus(self, **columns: Ints) -> "Table":
        """Return the table with additional columns."""
        return Table(columns, self.names, self.__getitem__)

    def only(self, *columns: str) -> "Table":
        """Return the table with only these columns, all in memory, so that it can be sent to another process."""
        return Table({name: self[name] for name in columns}, self.names)

    def name(self, number: int) -> str | None:
        """Return the name of a replica; None for -1."""
        return None if number < 0 else self.names[number]

    def numbers(self, names: Sequence[str]) -> Ints:
        """Return the number of each replica in `names`; -1 for a name that this table does not have."""
        known = {name: number for number, name in enumerate(self.names)}
        return np.array([known.get(name, -1) for name in names], np.int64)

    def numbers_of(self, other: "Table", column: str) -> Ints:
        """Return a column of replicas from another table, with the numbers that the replicas have in this table."""
        return np.append(self.numbers(other.names), -1)[other[column]]  # -1 selects the last


def concat(tables: Sequence[Table], *columns: str) -> Table:
    """Return the rows of all tables, with common numbers for replicas."""
    names = sorted({name for table in tables for name in table.names})
    common = Table({}, names)
    found = {}
    for column in columns:
        parts = [common.numbers_of(table, column) if column in NAME_COLUMNS else table[column] for table in tables]
        found[column] = np.concatenate([np.empty(0, np.int64), *parts])
    return Table(found, names)


class Rows(Protocol):
    """The event rows of a run, in pieces."""

    known: frozenset[str]
    """Columns of `report.stored.OPTIONAL_COLUMNS` that have values."""

    def pieces(self, make: Callable[[Table], T], by: str = "") -> list[T]:
        """Return `make(piece)` of each piece. All events with the same value of `by` are in one piece.

        by: name of a column, "minute" (that of intended_us), or empty: any pieces.

        make: a module-level function, or a `functools.partial` of one, so that another process can call it.
        """


class Groups:
    """Groups of rows with equal `keys`, sorted by the first key, then by the second, and so on."""

    def __init__(self, *keys: NDArray[Any]) -> None:
        self.order = np.lexsort(keys[::-1])
        ordered = [key[self.order] for key in keys]
        self.starts = np.flatnonzero(group_begins(*ordered))
        self.keys = [key[self.starts] for key in ordered]
        self.sizes = np.diff(np.append(self.starts, len(self.order)))

    def sum(self, values: NDArray[Any]) -> Ints:
        """Return the sum of each group."""
        return self._reduced(np.add, values.astype(np.int64))

    def max(self, values: Ints) -> Ints:
        """Return the largest known value of each group, or NONE."""
        return self._reduced(np.maximum, values)

    def min(self, values: Ints) -> Ints:
        """Return the smallest known value of each group, or NONE."""
        least = self._reduced(np.minimum, np.where(values == NONE, MAX_INT, values))
        return np.where(least == MAX_INT, NONE, least)

    def first(self, values: Ints) -> Ints:
        """Return the value of each group's first row. Rows of a group are in their original order."""
        return values[self.order[self.starts]]

    def ranks(self, values: Ints, parts_per_million: int) -> Ints:
        """Return the nearest-rank percentile of each group. values: known, and sorted within each group."""
        place = nearest_rank(self.sizes, parts_per_million)
        return np.asarray(values[self.order[self.starts + place - 1]])

    def _reduced(self, how: np.ufunc, values: Ints) -> Ints:
        return np.asarray(how.reduceat(values[self.order], self.starts) if len(self.starts) else values, np.int64)


def nearest_rank(number: Ints, parts_per_million: int) -> Ints:
    """Return the rank of a percentile among `number` sorted values, from 1: ⌈number · parts_per_million / 10⁶⌉."""
    return np.maximum(-(-number * parts_per_million // 1_000_000), 1)


def coalesce(*columns: Ints) -> Ints:
    """Return the first known value of each row, or NONE."""
    return reduce(lambda found, column: np.where(found == NONE, column, found), columns)


def least(*columns: Ints) -> Ints:
    """Return the smallest known value of each row, or NONE."""
    found = np.minimum.reduce([np.where(column == NONE, MAX_INT, column) for column in columns])
    return np.where(found == MAX_INT, NONE, found)


def minus(later: Ints, earlier: Ints) -> Ints:
    """Return later − earlier; NONE if one of them is unknown."""
    known = (later != NONE) & (earlier != NONE)
    return np.where(known, later - earlier, NONE)


def previous(values: Ints, begins: Mask) -> Ints:
    """Return the value of the previous row; NONE where a group begins."""
    found = np.empty_like(values)
    found[1:] = values[:-1]
    found[begins] = NONE
    return found


def group_begins(*keys: NDArray[Any]) -> Mask:
    """Return whether each row differs from the previous row in one of `keys`; True for the first row."""
    new = np.ones(len(keys[0]), np.bool_)
    new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return new


def running_sum(values: Ints, begins: Mask) -> Ints:
    """Return the running sum within each group."""
    upto = np.cumsum(values)
    return np.asarray(upto - (upto - values)[begins][np.cumsum(begins) - 1])


def running_max(values: Ints, begins: Mask) -> Ints:
    """Return the running maximum within each group."""
    distinct, rank = np.unique(values, return_inverse=True)
    lift = np.cumsum(begins) * len(distinct)
    return np.asarray(distinct[np.maximum.accumulate(rank + lift) - lift])


def find_rows(keys: Sequence[Ints], wanted: Sequence[Ints]) -> Ints:
    """Return for each row of `wanted` the last row of `keys` with the same values, or -1."""
    code, found = np.zeros(len(keys[0]), np.int64), np.zeros(len(wanted[0]), np.int64)
    for key, want in zip(keys, wanted, strict=True):
        distinct, rank = np.unique(key, return_inverse=True)
        codes, code = np.unique(code * len(distinct) + rank, return_inverse=True)
        place = _index(distinct, want)
        found = _index(codes, np.where((found < 0) | (place < 0), -1, found * len(distinct) + place))
    last = np.full(int(code.max(initial=0)) + 1, -1)
    last[code] = np.arange(len(code))
    return take(last, found, -1)


def _index(distinct: Ints, values: Ints) -> Ints:
    """Return the index of each value in the sorted `distinct`, or -1."""
    least, span = (int(distinct[0]), int(distinct[-1]) - int(distinct[0]) + 1) if len(distinct) else (0, 0)
    if span <= len(values):  # a look-up table is faster than a search
        index = np.full(span + 1, -1)
        index[distinct - least] = np.arange(len(distinct))
        return index[np.where((values >= least) & (values < least + span), values - least, span)]
    place = np.searchsorted(distinct, values)
    place[place == len(distinct)] = -1
    return np.where(distinct[place] == values, place, -1)


def sort_pairs(keys: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Return both columns, sorted by `keys` and then by `values`."""
    key, value = (int(column.min(initial=MAX_INT)) for column in (keys, values))
    span = int(values.max(initial=value)) - value + 1
    if span * (int(keys.max(initial=key)) - key + 1) > MAX_INT:
        order = np.lexsort([values, keys])
        return keys[order], values[order]
    both = np.sort((keys - key) * span + values - value)  # one column is sorted ten times faster than two
    return both // span + key, both % span + value


def take(values: Ints, rows: Ints, default: int = NONE) -> Ints:
    """Return the values at the row numbers `rows`, and `default` for the number -1. rows: from `find_rows`."""
    return np.append(values, default)[rows]
