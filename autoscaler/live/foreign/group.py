"""A group of any consumers whose partitions this autoscaler hands out as the group's leader."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from autoscaler.live.foreign.leader import Leader
from autoscaler.live.foreign.reports import LedReports
from autoscaler.live.group import LiveGroup
from autoscaler.live.plan_log import FencedError
from autoscaler.live.problems import PERSISTENT_TICKS
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import GroupObservation
from contracts.connection import Connection
from contracts.waiting import WaitTimeoutError, until

JOIN_DEADLINE_S: Final = 30.0
"""Longest wait for the first rebalance. Consumers with default settings notice it within 3 s."""


def leader_of(
    connection: Connection, settings: AutoscalerSettings, tell: Callable[[str], None]
) -> tuple[Leader, LedReports]:
    """Return the leader of the configured group, not started yet, and the reports about its replicas."""
    topic = settings.topic_in(connection.namespace)
    leader = Leader(
        connection,
        settings.group_in(connection.namespace),
        topic,
        protocols=settings.led_protocols,
        kicks=settings.take_over == "kick",
        heartbeat_s=settings.heartbeat_s,
        session_s=settings.session_s,
        tell=tell,
    )
    return leader, LedReports(leader, topic, settings.decision_interval_s)


class LedGroup(LiveGroup):
    """A LiveGroup whose reports and handovers come from a Leader."""

    def __init__(self, *arguments: Any, leader: Leader, reports: LedReports, **more: Any) -> None:
        super().__init__(*arguments, reports=reports, **more)
        self._leader, self._led = leader, reports

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
        return replace(
            seen,
            commit_age_s=max(seen.commit_age_s, self._led.commit_age_s),
            stops_all=not self._leader.view.is_cooperative,
        )

    def advance(self) -> None:
        """Take the due steps, then hand the plan in force to the leader. Raises FencedError."""
        if self._leader.is_fenced:
            raise FencedError("Another autoscaler leads the group")
        super().advance()
        self._leader.carry_out(self._publisher.in_force, self._led.replicas)
        self._report_problem("members", self._leader.problem or self._led.unknown, after=PERSISTENT_TICKS)
