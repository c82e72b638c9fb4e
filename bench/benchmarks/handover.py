"""Measure how much latency it costs, under steady load, to move partitions, and to start, drain and stop replicas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bench.benchmark import Option
from bench.handover import figures
from bench.handover.group import GroupBenchmark, ServedGroup
from bench.handover.steps import PlannedSteps, UnplannedSteps

FIRST_QUIET_S = 3.0


@dataclass(kw_only=True)
class Handover(GroupBenchmark):
    """Move partitions between live replicas under load, and measure the latency of moved and unmoved partitions."""

    analyse = staticmethod(figures.handovers)
    COLUMNS: ClassVar = ("runtime", "heartbeat", "handovers", *figures.TIMES, *figures.COSTS, "valid")
    handovers: Annotated[int, Option("Number of partition moves; 0: 200, or 30 with --quick.", least=0)] = 0

    def act(self, group: ServedGroup, announce: Callable[..., None]) -> None:
        """Take steps until the requested number of partitions has moved."""
        target = self.handovers or (30 if self.quick else 200)
        if group.takes_plan:
            group.rest(FIRST_QUIET_S)
        for _ in (PlannedSteps if group.takes_plan else UnplannedSteps)(group).mixed():
            announce(status="handovers", completed=min(target, group.handovers), total=target)
            if group.handovers >= target or group.is_late:
                break
