"""A group of any consumers whose partitions this autoscaler hands out as the group's leader."""

from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from autoscaler.live.foreign.members import COOPERATIVE
from autoscaler.live.foreign.reports import LedReports
from autoscaler.live.group import LiveGroup
from autoscaler.live.plan_log import FencedError
from autoscaler.live.problems import PERSISTENT_TICKS
from autoscaler.model import GroupObservation
from contracts.waiting import WaitTimeoutError, until

JOIN_DEADLINE_S: Final = 30.0  # consumers with default settings notice the first rebalance within 3 s


class LedGroup(LiveGroup):
    """A LiveGroup whose reports and handovers come from a Leader or a Planner."""

    def __init__(self, *arguments: Any, reports: Any, **more: Any) -> None:
        super().__init__(*arguments, reports=reports, **more)
        self._led: LedReports = reports
        self._leader, self._led.instances = self._led.leader, lambda: self._scaler.instances

    def start(self, initial: tuple[str, ...]) -> None:
        """Join the group, then adopt or start replicas."""
        self._leader.start()
        with suppress(WaitTimeoutError):  # the health page shows why
            until(lambda: self._leader.view.seen_s, JOIN_DEADLINE_S, "the first rebalance")
        super().start(initial)

    def observe(self) -> GroupObservation:
        """Observe the group, and learn from its commits. Raises NotReadyError."""
        seen = super().observe()
        self._led.learn(seen.at_s, seen.partitions)
        commit_age_s = max(seen.commit_age_s, self._leader.commits.age_s)
        return replace(seen, commit_age_s=commit_age_s)

    @property
    def stops_all(self) -> bool:
        """Whether a rebalance stops all members: the eager protocol does."""
        return self._leader.view.protocol not in COOPERATIVE

    @property
    def leads(self) -> bool:
        """Whether the autoscaler leads the group now."""
        return bool(self._leader.view.leads)

    def advance(self) -> None:
        """Take the due steps, then hand the plan in force to the leader. Raises FencedError."""
        if self._leader.is_fenced:
            raise FencedError("Another autoscaler plans the group")
        super().advance()
        self._rebalance_time.observe(self._leader.take_pauses())
        self._leader.carry_out(self._publisher.in_force, self._led.replicas)
        self._report_problem("members", self._leader.problem or self._led.unknown, after=PERSISTENT_TICKS)
