"""Find the events that a step may have affected: the time window, and the partitions that changed their owner."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.handover.evidence import Events, Evidence, Mask, Step, first_completions

SERVICE_TIME_S: Final = 0.005
"""Time to serve one event."""
TAIL_US: Final = 1_000_000
"""A window ends this long after each new owner has finished a first event."""


@dataclass(frozen=True, slots=True)
class Handover:
    """One partition that changed owner."""

    partition: int
    plan_to_first_event_us: int
    """Time from the record of the plan to the first event finished at the new owner."""
    pause_us: int
    """Time in which an event was waiting and no replica served the partition."""


@dataclass(frozen=True, slots=True)
class Window:
    """A step with its handovers."""

    step: Step
    ended_us: int
    """One second after each new owner has finished an event of its new partition; `until_us` if one has not."""
    handovers: tuple[Handover, ...]
    missing: tuple[int, ...] = ()
    """Partitions whose planned owner finished no event."""

    @property
    def moved(self) -> set[int]:
        """Partitions that this step moved or should have moved."""
        return {*(handover.partition for handover in self.handovers), *self.missing}


def find_windows(evidence: Evidence) -> tuple[Window, ...]:
    """Return the window of each step, in order of time."""
    first = first_completions(evidence.served)
    parts = {int(number): first[first["partition"] == number] for number in np.unique(first["partition"])}
    return tuple(_window(step, parts) for step in sorted(evidence.steps, key=lambda step: step.at_us))


def under_way(served: Events, windows: Iterable[Window], *, moved: bool = False) -> Mask:
    """Return a mask of the events that were waiting or being served at any time in the windows.

    moved: include only events of partitions that moved in that window.
    """
    chosen = np.zeros(len(served), dtype=bool)
    for window in windows:
        inside = (served["done_us"] >= window.step.at_us) & (served["intended_us"] <= window.ended_us)
        chosen |= inside & np.isin(served["partition"], list(window.moved)) if moved else inside
    return chosen


def stall_us(served: Events, from_us: int, to_us: int) -> int:
    """Return the longest time within [from_us, to_us] in which events were waiting and none was finished, µs."""
    oldest_waiting = np.minimum.accumulate(served["intended_us"][::-1])[::-1]
    begins = np.maximum(np.concatenate(([from_us], served["done_us"][:-1])), oldest_waiting)
    length = np.minimum(served["done_us"], to_us) - np.maximum(begins, from_us)
    return int(max(length.max(initial=0), 0))


def _window(step: Step, parts: Mapping[int, Events]) -> Window:
    """Return a step's window. Its handovers are the planned moves, or the observed ones if the step has no plan."""
    found, missing = list[Handover](), list[int]()
    for number in parts if step.moves is None else step.moves:
        events = parts[number] if number in parts else next(iter(parts.values()))[:0]
        within = (events["done_us"] >= step.at_us) & (events["done_us"] <= step.until_us)
        if step.moves is None:
            hits = np.flatnonzero(within[1:] & (events["replica"][1:] != events["replica"][:-1])) + 1
        else:
            hits = np.flatnonzero(within & (events["replica"] == step.moves[number]))[:1]
            missing += [] if len(hits) else [number]
        found += [_handover(step, events, int(hit)) for hit in hits]
    last_us = step.at_us + max((handover.plan_to_first_event_us for handover in found), default=0)
    ended_us = step.until_us if missing else min(last_us + TAIL_US, step.until_us)
    return Window(step, ended_us, tuple(found), tuple(missing))


def _handover(step: Step, events: Events, hit: int) -> Handover:
    done_us = int(events["done_us"][hit])
    left_us = max(step.at_us, int(events["done_us"][hit - 1]) if hit else 0)
    pause_us = done_us - round(SERVICE_TIME_S * 1e6) - max(left_us, int(events["intended_us"][hit]))
    return Handover(int(events["partition"][hit]), done_us - step.at_us, max(0, pause_us))
