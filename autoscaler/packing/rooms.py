"""Bins by the room that is left in them: the tightest that is enough is found without looking at all of them."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDING: Final = 1e-9
"""Relative; a bin may be so much too full."""
SHELVES: Final = 32
DRAWERS: Final = 32
"""On each shelf. Bins with about the same room are in the same drawer, those with more in a later one."""
NONE: Final = -1


class Rooms(NamedTuple):
    """Bins 0, 1, 2, … in drawers, each a doubly linked list."""

    room: Floats
    """What is left in each bin."""
    tolerance: Floats
    """By how much each may be too full."""
    most: float
    """The largest capacity."""
    first: Ints
    """A bin of each drawer; NONE where it is empty."""
    on_shelf: Ints
    """How many bins."""
    following: Ints
    preceding: Ints


@compiled
def empty_rooms(capacities: Floats) -> Rooms:
    """Return rooms for bins of such capacities, none of which is in a drawer yet."""
    bins = len(capacities)
    links = np.full((2, bins), NONE)
    most = 0.0
    for capacity in capacities:
        most = max(most, capacity)
    drawers, shelves = np.full(SHELVES * DRAWERS, NONE), np.zeros(SHELVES, np.int64)
    return Rooms(capacities.copy(), ROUNDING * capacities, most, drawers, shelves, links[0], links[1])


@compiled
def put(rooms: Rooms, one: int) -> None:
    """Put a bin into its drawer."""
    drawer = _drawer(rooms, rooms.room[one])
    after = rooms.first[drawer]
    rooms.following[one], rooms.preceding[one] = after, NONE
    if after != NONE:
        rooms.preceding[after] = one
    rooms.first[drawer] = one
    rooms.on_shelf[drawer // DRAWERS] += 1


@compiled
def take(rooms: Rooms, one: int) -> None:
    """Take a bin out of its drawer, before its room changes."""
    drawer = _drawer(rooms, rooms.room[one])
    before, after = rooms.preceding[one], rooms.following[one]
    if before == NONE:
        rooms.first[drawer] = after
    else:
        rooms.following[before] = after
    if after != NONE:
        rooms.preceding[after] = before
    rooms.on_shelf[drawer // DRAWERS] -= 1


@compiled
def tightest(rooms: Rooms, size: float) -> int:
    """Return the bin with the least room in which `size` fits, of several the first; NONE where there is none."""
    drawer = _drawer(rooms, size - ROUNDING * rooms.most)
    while drawer < SHELVES * DRAWERS:
        if rooms.on_shelf[drawer // DRAWERS] == 0:
            drawer += DRAWERS - drawer % DRAWERS
            continue
        best, one = NONE, rooms.first[drawer]
        while one != NONE:
            room = rooms.room[one]
            if room >= size - rooms.tolerance[one] and (
                best == NONE or room < rooms.room[best] or (room == rooms.room[best] and one < best)
            ):
                best = one
            one = rooms.following[one]
        if best != NONE:
            return best
        drawer += 1
    return NONE


@compiled
def _drawer(rooms: Rooms, room: float) -> int:
    last = SHELVES * DRAWERS - 1.0
    return int(max(0.0, min(last, room / rooms.most * last))) if rooms.most > 0.0 else 0
