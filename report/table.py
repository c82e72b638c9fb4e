"""Columns of whole numbers, and what the figures of a report do with them: grouping, running maxima, looking up.

A report is computed from pieces of the event rows. In memory there is one piece; Spark makes many, on many machines,
and hands each to the same functions (`Rows`).
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
"""What is not known. It is the least number, so that a maximum passes over it."""
MOST: Final = int(np.iinfo(np.int64).max)
NAMED: Final = ("replica", "old", "owner")
"""Columns of replicas: numbers of names in their order, so that they sort as the names do; -1 is nobody."""


class Table:
    """Columns of equal length. What is asked for and not there is taken from `rest`."""

    def __init__(
        self, columns: Mapping[str, Ints], names: Sequence[str] = (), rest: Callable[[str], Ints] | None = None
    ) -> None:
        self._columns, self.names, self._rest = dict(columns), tuple(names), rest

    def __getitem__(self, name: str) -> Ints:
        if name not in self._columns and self._rest is not None:
            self._columns[name] = self._rest(name)
        return self._columns[name]

    def where(self, rows: Mask | Ints) -> "Table":
        """Return these rows; a column is cut when it is asked for."""
        return Table({}, self.names, lambda name: self[name][rows])

    def plus(self, **columns: Ints) -> "Table":
        """Return the table with more columns."""
        return Table(columns, self.names, self.__getitem__)

    def only(self, *columns: str) -> "Table":
        """Return these columns and nothing that they were taken from: what can be sent from one process to another."""
        return Table({name: self[name] for name in columns}, self.names)

    def name(self, number: int) -> str | None:
        """Return the name of a replica."""
        return None if number < 0 else self.names[number]

    def numbers(self, names: Sequence[str]) -> Ints:
        """Return the number of each of `names`; -1 for one that this table does not name."""
        known = {name: number for number, name in enumerate(self.names)}
        return np.array([known.get(name, -1) for name in names], np.int64)

    def numbers_of(self, other: "Table", column: str) -> Ints:
        """Return the replicas in a column of another table, by the numbers that they have here."""
        return np.append(self.numbers(other.names), -1)[other[column]]  # -1 finds the last


def joined(tables: Sequence[Table], *columns: str) -> Table:
    """Return the rows of all tables; their replicas get common numbers."""
    names = sorted({name for table in tables for name in table.names})
    common = Table({}, names)
    found = {}
    for column in columns:
        parts = [common.numbers_of(table, column) if column in NAMED else table[column] for table in tables]
        found[column] = np.concatenate([np.empty(0, np.int64), *parts])
    return Table(found, names)


class Rows(Protocol):
    """The event rows of a run, in pieces."""

    known: frozenset[str]
    """Of the columns of `report.stored.EVERY`: those that are known and not filled in."""

    def pieces(self, make: Callable[[Table], T], by: str = "") -> list[T]:
        """Return what `make` finds in each piece. by: column whose equal values lie in one piece; a minute: of intent.

        make: a function of a module, or a `functools.partial` of one, so that another process can call it.
        """


class Groups:
    """Rows put together that agree in `keys`; the groups are in order of the first key, then of the second …"""

    def __init__(self, *keys: NDArray[Any]) -> None:
        self.order = np.lexsort(keys[::-1])
        ordered = [key[self.order] for key in keys]
        self.starts = np.flatnonzero(begins(*ordered))
        self.keys = [key[self.starts] for key in ordered]
        self.sizes = np.diff(np.append(self.starts, len(self.order)))

    def sum(self, values: NDArray[Any]) -> Ints:
        """Return the sum of each group."""
        return self._reduced(np.add, values.astype(np.int64))

    def max(self, values: Ints) -> Ints:
        """Return the largest known value of each group, else NONE."""
        return self._reduced(np.maximum, values)

    def min(self, values: Ints) -> Ints:
        """Return the smallest known value of each group, else NONE."""
        least = self._reduced(np.minimum, np.where(values == NONE, MOST, values))
        return np.where(least == MOST, NONE, least)

    def first(self, values: Ints) -> Ints:
        """Return the value of the first row of each group; rows of a group stay in the order that they had."""
        return values[self.order[self.starts]]

    def ranks(self, values: Ints, parts_per_million: int) -> Ints:
        """Return the nearest rank of each group: the value at place ⌈n·q⌉ of n.

        values: known, and in order within each group, as where they were the last key.
        """
        place = nearest_rank(self.sizes, parts_per_million)
        return np.asarray(values[self.order[self.starts + place - 1]])

    def _reduced(self, how: np.ufunc, values: Ints) -> Ints:
        return np.asarray(how.reduceat(values[self.order], self.starts) if len(self.starts) else values, np.int64)


def nearest_rank(number: Ints, parts_per_million: int) -> Ints:
    """Return the place ⌈n·q⌉ of n values in order, at least 1: so many lie at or below the percentile."""
    return np.maximum(-(-number * parts_per_million // 1_000_000), 1)


def coalesce(*columns: Ints) -> Ints:
    """Return the first that is known."""
    return reduce(lambda found, column: np.where(found == NONE, column, found), columns)


def least(*columns: Ints) -> Ints:
    """Return the smallest that is known."""
    found = np.minimum.reduce([np.where(column == NONE, MOST, column) for column in columns])
    return np.where(found == MOST, NONE, found)


def minus(later: Ints, earlier: Ints) -> Ints:
    """Return how much time lies between; NONE where one of both is not known."""
    known = (later != NONE) & (earlier != NONE)
    return np.where(known, later - earlier, NONE)


def before(values: Ints, begins: Mask) -> Ints:
    """Return the value of the row before; NONE where a group begins."""
    found = np.empty_like(values)
    found[1:] = values[:-1]
    found[begins] = NONE
    return found


def begins(*keys: NDArray[Any]) -> Mask:
    """Return whether a row differs from the row before in one of `keys`; the first does."""
    new = np.ones(len(keys[0]), np.bool_)
    new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return new


def running_sum(values: Ints, begins: Mask) -> Ints:
    """Return the sum of each row and all before it in its group."""
    upto = np.cumsum(values)
    return np.asarray(upto - (upto - values)[begins][np.cumsum(begins) - 1])


def running_max(values: Ints, begins: Mask) -> Ints:
    """Return the largest of each row and all before it in its group."""
    distinct, rank = np.unique(values, return_inverse=True)
    lift = np.cumsum(begins) * len(distinct)
    return np.asarray(distinct[np.maximum.accumulate(rank + lift) - lift])


def places(keys: Sequence[Ints], wanted: Sequence[Ints]) -> Ints:
    """Return the row of `keys` that has the values of each row of `wanted`, the last of several; -1 where none has."""
    rows = len(keys[0])
    code = np.zeros(rows + len(wanted[0]), np.int64)
    for key, want in zip(keys, wanted, strict=True):
        distinct, rank = np.unique(np.concatenate([key, want]), return_inverse=True)
        code = np.unique(code * len(distinct) + rank, return_inverse=True)[1]
    found = np.full(int(code.max(initial=0)) + 1, -1)
    found[code[:rows]] = np.arange(rows)
    return found[code[rows:]]


def taken(values: Ints, rows: Ints, otherwise: int = NONE) -> Ints:
    """Return the values of `rows`, as `places` finds them; `otherwise` for -1."""
    return np.append(values, otherwise)[rows]
