"""Which events a step may have touched: its moves, its window, and who was moved in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from bench.handover.evidence import Evidence, IntArray, Move, Served, Step

SERVICE_TIME_S: Final = 0.005
"""Of one event."""
TAIL_US: Final = 1_000_000
"""A window goes on for this long after the last first event."""


@dataclass(frozen=True, slots=True)
class Handover:
    """One partition that changed its owner: the last event finished at the old one, the first at the new one."""

    step: Step
    move: Move
    left_us: int
    """Finished last at the old owner; the step's own time where nothing was."""
    first_us: int
    """Finished first at the new owner."""
    first_intended_us: int

    @property
    def plan_to_first_event_us(self) -> int:
        """From the plan's record to the first event finished at the new owner."""
        return self.first_us - self.step.at_us

    @property
    def pause_us(self) -> int:
        """Time in which an event was waiting and no replica served the partition."""
        started_us = self.first_us - round(SERVICE_TIME_S * 1e6)
        return max(0, started_us - max(self.left_us, self.first_intended_us))


@dataclass(frozen=True, slots=True)
class Window:
    """One step with its consequences."""

    step: Step
    ended_us: int
    """One second after the last first event; `until_us` of the step where one never came."""
    handovers: tuple[Handover, ...]
    missing: tuple[Move, ...] = ()
    """Planned moves whose new owner was never seen."""

    @property
    def moved(self) -> set[int]:
        """Partitions that this step moved, or meant to."""
        return {move.partition for move in (*(one.move for one in self.handovers), *self.missing)}


def find_windows(evidence: Evidence) -> tuple[Window, ...]:
    """Return the window of each step, in order of time."""
    first = evidence.served.first_completions()
    rows = {int(number): np.flatnonzero(first.partition == number) for number in np.unique(first.partition)}
    return tuple(_window(step, first, rows) for step in sorted(evidence.steps, key=lambda step: step.at_us))


def overlapping(served: Served, from_us: int, to_us: int) -> IntArray:
    """Return the rows of events that were waiting or being served at any time within [from_us, to_us]."""
    start = int(np.searchsorted(served.done_us, from_us))
    longest_us = int(served.latency_us.max(initial=0))
    stop = int(np.searchsorted(served.done_us, to_us + longest_us, side="right"))
    return np.asarray(start + np.flatnonzero(served.intended_us[start:stop] <= to_us), dtype=np.int64)


def stall_us(served: Served, from_us: int, to_us: int) -> int:
    """Return the longest time within [from_us, to_us] in which no event was finished although one was waiting."""
    if not len(served):
        return 0
    oldest_waiting = np.minimum.accumulate(served.intended_us[::-1])[::-1]
    begins = np.maximum(np.concatenate(([from_us], served.done_us[:-1])), oldest_waiting)
    length = np.minimum(served.done_us, to_us) - np.maximum(begins, from_us)
    return int(max(length.max(initial=0), 0))


def _window(step: Step, first: Served, rows: Mapping[int, IntArray]) -> Window:
    """Return a step's window: each planned move with its first event, or every change of owner that is seen."""
    moves = _observed(step, first, rows) if step.moves is None else _planned(step, first, rows)
    found = tuple(_handover(step, move, first, rows[move.partition], hit) for move, hit in moves if hit is not None)
    missing = tuple(move for move, hit in moves if hit is None)
    last_us = max((one.first_us for one in found), default=step.at_us)
    ended_us = step.until_us if missing else min(last_us + TAIL_US, step.until_us)
    return Window(step, ended_us, found, missing)


def _planned(step: Step, first: Served, rows: Mapping[int, IntArray]) -> list[tuple[Move, int | None]]:
    found = list[tuple[Move, int | None]]()
    for move in step.moves or ():
        mine = rows.get(move.partition, np.array([], dtype=np.int64))
        done_us, owner = first.done_us[mine], np.array(first.names)[first.replica[mine]]
        hits = mine[(owner == move.target) & (done_us >= step.at_us) & (done_us <= step.until_us)]
        found.append((move, int(hits[0]) if len(hits) else None))
    return found


def _observed(step: Step, first: Served, rows: Mapping[int, IntArray]) -> list[tuple[Move, int | None]]:
    return [
        (Move(number, first.names[first.replica[before]], first.names[first.replica[row]]), int(row))
        for number, mine in rows.items()
        for before, row in pairwise(mine)
        if step.at_us <= first.done_us[row] <= step.until_us and first.replica[row] != first.replica[before]
    ]


def _handover(step: Step, move: Move, first: Served, mine: IntArray, hit: int) -> Handover:
    before = mine[: int(np.searchsorted(mine, hit))]
    left_us = max(int(first.done_us[before[-1]]), step.at_us) if len(before) else step.at_us
    return Handover(step, move, left_us, int(first.done_us[hit]), int(first.intended_us[hit]))
