"""Where a trip began, as a small number; and which partition events from there go to.

The partition is the one that Kafka's clients choose for a record with that key: murmur2 of the key, modulo partitions.
"""

from collections.abc import Sequence
from typing import Final, Literal

from aiokafka.partitioner import murmur2

Kind = Literal["zone", "cell"]
"""A zone of the TLC, in files since mid-2016; or a cell of a grid over the coordinates of older files."""
ZONES: Final = 265
"""The TLC numbers its zones from 1. 264 is "unknown", 265 "outside of New York"; what is none of them counts as 264."""
UNKNOWN_ZONE: Final = 264

CELLS_PER_DEGREE: Final = 100
"""A cell is 0.01° wide and high: 0.84 km × 1.11 km."""
WEST: Final = -7430
EAST: Final = -7365
SOUTH: Final = 4045
NORTH: Final = 4095
"""Borders of the grid in cells; they hold the five boroughs and three airports."""
COLUMNS: Final = EAST - WEST
OUTSIDE: Final = COLUMNS * (NORTH - SOUTH)
"""Number of the cell that takes everything outside the grid: 0, 0 where the meter had no fix, and far trips."""


def keys(kind: Kind) -> Sequence[str]:
    """Return the key of each place, by its number."""
    if kind == "zone":
        return [f"zone {UNKNOWN_ZONE if number == 0 else number}" for number in range(ZONES + 1)]
    inside = (f"cell {WEST + cell % COLUMNS} {SOUTH + cell // COLUMNS}" for cell in range(OUTSIDE))
    return [*inside, "cell outside"]


def partitions_of(kind: Kind, partitions: int) -> list[int]:
    """Return the partition of each place, by its number."""
    return [(murmur2(key.encode()) & 0x7FFFFFFF) % partitions for key in keys(kind)]
