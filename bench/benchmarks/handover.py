"""The cost of a change of owner, under a steady load: partitions move, replicas start, are drained and are stopped."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from bench.benchmark import Option
from bench.handover import figures
from bench.handover.group import GroupBenchmark, ServedGroup
from bench.handover.steps import PlannedSteps, UnplannedSteps

FIRST_QUIET_S = 3.0


@dataclass(kw_only=True)
class Handover(GroupBenchmark):
    """Move partitions between live replicas under load; measure the cost for moved and unmoved partitions."""

    analyse = staticmethod(figures.handovers)
    handovers: Annotated[int, Option("Moved partitions; 0: 200, or 30 with --quick.", least=0)] = 0

    def act(self, group: ServedGroup, announce: Callable[..., None]) -> None:
        """Take steps until enough partitions have moved."""
        enough = self.handovers or (30 if self.quick else 200)
        if self.takes_plan:
            group.rest(FIRST_QUIET_S)
        for _ in (PlannedSteps if self.takes_plan else UnplannedSteps)(group).mixed():
            announce(said="handovers", completed=min(enough, group.handovers), total=enough)
            if group.handovers >= enough or group.late:
                break
