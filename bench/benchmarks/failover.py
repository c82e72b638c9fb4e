"""Measure the latency that a killed or stopped replica costs. An announced kill is followed by a plan at once."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from bench.handover import figures
from bench.handover.figures import KNOWN_DEATH, SIGTERM, UNKNOWN_DEATH
from bench.handover.group import GroupBenchmark, ServedGroup
from bench.handover.steps import PlannedSteps
from contracts.rebalance_protocol import PLAN_PROTOCOLS


@dataclass(kw_only=True)
class Failover(GroupBenchmark):
    """Measure the worst latency after announced kills, unannounced kills and graceful stops of replicas."""

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
            if group.is_late:
                break
