"""Which events a step may have touched: its moves, its window, and who was moved in it."""

from dataclasses import dataclass
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


def _window(step: Step, first: Served, rows: dict[int, IntArray]) -> Window:
    found: list[Handover] = []
    missing: list[Move] = []
    if step.moves is None:
        for number, mine in rows.items():
            found += _observed(step, number, first, mine)
    for move in step.moves or ():
        handover = _planned(step, move, first, rows.get(move.partition, np.array([], dtype=np.int64)))
        if handover is None:
            missing.append(move)
        else:
            found.append(handover)
    last_us = max((one.first_us for one in found), default=step.at_us)
    ended_us = step.until_us if missing else min(last_us + TAIL_US, step.until_us)
    return Window(step, ended_us, tuple(found), tuple(missing))


def _planned(step: Step, move: Move, first: Served, mine: IntArray) -> Handover | None:
    if move.target not in first.names:
        return None
    target = first.names.index(move.target)
    begin = int(np.searchsorted(first.done_us[mine], step.at_us))
    later = mine[begin:]
    hits = later[first.replica[later] == target][:1]
    if not len(hits) or first.done_us[hits[0]] > step.until_us:
        return None
    return _handover(step, move, first, mine, int(hits[0]))


def _observed(step: Step, number: int, first: Served, mine: IntArray) -> list[Handover]:
    done = first.done_us[mine]
    begin, end = int(np.searchsorted(done, step.at_us)), int(np.searchsorted(done, step.until_us, side="right"))
    owners = first.replica[mine]
    changes = [row for row in range(max(begin, 1), end) if owners[row] != owners[row - 1]]
    moves = {row: Move(number, first.names[owners[row - 1]], first.names[owners[row]]) for row in changes}
    return [_handover(step, move, first, mine, int(mine[row])) for row, move in moves.items()]


def _handover(step: Step, move: Move, first: Served, mine: IntArray, hit: int) -> Handover:
    before = mine[: int(np.searchsorted(mine, hit))]
    left_us = max(int(first.done_us[before[-1]]), step.at_us) if len(before) else step.at_us
    return Handover(step, move, left_us, int(first.done_us[hit]), int(first.intended_us[hit]))
