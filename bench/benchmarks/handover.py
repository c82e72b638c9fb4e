"""Measure how much latency it costs, under steady load, to move partitions, and to start, stop and kill replicas."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from typer import Option

from bench.handover import figures
from bench.handover.benchmark import GroupBenchmark
from bench.handover.figures import KNOWN_DEATH, SIGTERM, UNKNOWN_DEATH
from bench.handover.group import ServedGroup
from bench.handover.steps import PlannedSteps, UnplannedSteps
from contracts.rebalance_protocol import PLAN_PROTOCOLS

FIRST_QUIET_S = 3.0


@dataclass(kw_only=True)
class Handover(GroupBenchmark):
    """Move partitions between live replicas under load, and measure the latency of moved and unmoved partitions."""

    analyse = staticmethod(figures.handovers)
    COLUMNS: ClassVar = ("runtime", "heartbeat", "handovers", *figures.TIMES, *figures.COSTS, "valid")
    handovers: Annotated[int, Option(help="Number of partition moves; 0: 200, or 30 with --quick.", min=0)] = 0

    def act(self, group: ServedGroup, announce: Callable[..., None]) -> None:
        """Take steps until the requested number of partitions has moved."""
        target = self.handovers or (30 if self.quick else 200)
        if group.takes_plan:
            group.rest(FIRST_QUIET_S)
        for _ in (PlannedSteps if group.takes_plan else UnplannedSteps)(group).mixed():
            announce(status="handovers", completed=min(target, group.handovers), total=target)
            if group.handovers >= target or self.is_late(group):
                break


@dataclass(kw_only=True)
class Failover(GroupBenchmark):
    """Measure the worst latency after announced kills, unannounced kills and graceful stops of replicas.

    An announced kill is followed by a plan at once.
    """

    CONSUMERS: ClassVar = ("ours", *PLAN_PROTOCOLS)
    analyse = staticmethod(figures.failover)

    def act(self, group: ServedGroup, announce: Callable[..., None]) -> None:
        """End replicas by unannounced kills, then by announced kills and stops in turn. Each replica is replaced."""
        known, sigterms, unknown = (3, 2, 1) if self.quick else (20, 20, 3)
        turns = itertools.zip_longest([KNOWN_DEATH] * known, [SIGTERM] * sigterms)
        ends = [UNKNOWN_DEATH] * unknown + [end for turn in turns for end in turn if end]
        steps = PlannedSteps(group)
        for number, end in enumerate(ends, start=1):
            if number > 1:
                steps.start(group.start_warm())
            steps.end(end, steps.fullest())
            announce(status="ends of replicas", completed=number, total=len(ends))
            if self.is_late(group):
                break
