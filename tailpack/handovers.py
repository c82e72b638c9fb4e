"""Handovers of a run, second by second beside the latency: does a partition that moves leave a dent?"""

from dataclasses import dataclass, field
from typing import Final

from contracts.events import Timeline
from contracts.journal import PlanWritten
from contracts.progress import Progress

SECONDS: Final = 60
"""How far back the curves go."""


@dataclass(slots=True)
class Second:
    """One second of the wall clock."""

    worst_s: float = 0.0
    """Highest latency of the events that were finished in it."""
    moved: int = 0
    """Partitions that plans written in it gave to another replica."""


@dataclass(slots=True)
class Handovers:
    """What is known of them so far."""

    by_second: dict[int, Second] = field(default_factory=dict)
    """Seconds since the epoch → what happened then; the last SECONDS of them."""
    moved: int = 0
    plans: int = 0
    """Plans that moved something."""
    pauses_s: dict[int, float] = field(default_factory=dict)
    """Epoch → longest time that a partition it moved was served by nobody, as the replicas report it."""

    @property
    def longest_pause_s(self) -> float:
        """Of all handovers so far; 0 without any."""
        return max(self.pauses_s.values(), default=0.0)

    def curve(self) -> list[Second]:
        """Return the last SECONDS seconds, oldest first, without gaps; fewer at the beginning."""
        if not self.by_second:
            return []
        newest = max(self.by_second)
        first = max(min(self.by_second), newest - SECONDS + 1)
        return [self.by_second.get(second, Second()) for second in range(first, newest + 1)]

    def finished(self, timeline: Timeline) -> None:
        """Take in one finished event."""
        if timeline.done_us is not None and (second := self._second(timeline.done_us)):
            second.worst_s = max(second.worst_s, (timeline.done_us - timeline.intended_us) / 1e6)

    def planned(self, plan: PlanWritten) -> None:
        """Take in one plan."""
        self.moved += plan.moved
        self.plans += plan.moved > 0
        if second := self._second(plan.at_us):
            second.moved += plan.moved

    def reported(self, progress: Progress) -> None:
        """Take in what one replica says."""
        for one in progress.rounds:
            if one.taken and one.pause_us > 0:
                self.pauses_s[one.epoch] = max(self.pauses_s.get(one.epoch, 0.0), one.pause_us / 1e6)

    def _second(self, at_us: int) -> Second | None:
        """Return the second in which `at_us` lies, None for one that is out of sight already."""
        number = at_us // 1_000_000
        newest = max(self.by_second, default=number)
        if number <= newest - SECONDS:
            return None
        if number > newest:
            for old in [one for one in self.by_second if one <= number - SECONDS]:
                del self.by_second[old]
        return self.by_second.setdefault(number, Second())
