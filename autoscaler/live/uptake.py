"""Whether the members take the plans: each of their reports names the plan that its assignment was made from."""

from collections.abc import Callable, Mapping
from typing import Final

from contracts.plan import PlanRecord

LONGEST_PAUSE_S: Final = 60.0
"""Between two repetitions of a plan that somebody does not take: each one costs the group a round."""


class Uptake:
    """Compares the newest plan with what members report.

    within_s: for so long a member may stay on an older plan. took: called with the seconds from the moment a plan was
    written until every member served by it.
    """

    def __init__(self, within_s: float, clock: Callable[[], float], took: Callable[[float], None]) -> None:
        self._within_s = within_s
        self._clock = clock
        self._took = took
        self._epoch = 0
        self._since_s: float | None = None
        """When the newest plan was written; None once all have taken it, and for one that was found."""
        self._behind: dict[str, tuple[int, float]] = {}
        """Member → the older plan it serves by, and since when it has been seen to stay on that one."""
        self._pause_s = within_s
        self._repeat_at_s = 0.0
        self.late: tuple[str, ...] = ()
        """Members that have stayed on an older plan for longer than they may."""

    def look(self, plan: PlanRecord | None, epochs: Mapping[str, int]) -> None:
        """Take in what is reported.

        epochs: member → plan that its assignment was made from, of those who have reported lately; who is silent is no
        evidence.
        """
        if plan is None:
            return
        self._epoch, now_s = plan.epoch, self._clock()
        behind = {name: epoch for name in plan.replicas if (epoch := epochs.get(name, plan.epoch)) < plan.epoch}
        self._behind = {
            name: known if (known := self._behind.get(name, (epoch, now_s)))[0] == epoch else (epoch, now_s)
            for name, epoch in behind.items()
        }
        self.late = tuple(name for name, (_, since_s) in self._behind.items() if now_s - since_s >= self._within_s)
        if not self.late:
            self._pause_s, self._repeat_at_s = self._within_s, 0.0
        if self._since_s is not None and not behind and epochs.keys() >= set(plan.replicas):
            self._took(now_s - self._since_s)
            self._since_s = None

    @property
    def repeat_is_due(self) -> bool:
        """Whether the plan should be written again now."""
        return bool(self.late) and self._clock() >= self._repeat_at_s

    def written(self, plan: PlanRecord) -> None:
        """A plan was written just now. While somebody is late, the next repetition waits twice as long."""
        self._epoch, self._since_s = plan.epoch, self._clock()
        if self.late:
            self._repeat_at_s = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, max(LONGEST_PAUSE_S, self._within_s))

    def why_late(self) -> str:
        """Say who is late; empty when nobody is."""
        if not self.late:
            return ""
        stays = ", ".join(f"{name} (serves by {self._behind[name][0]})" for name in self.late)
        return f"plan {self._epoch} is not taken within {self._within_s:g} s by {stays}"
