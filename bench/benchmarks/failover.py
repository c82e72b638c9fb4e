"""What the end of a replica costs the events of all partitions: known and unknown deaths, and stops."""

import itertools
from dataclasses import dataclass
from typing import Annotated

from bench.benchmark import Benchmark, Option, Row, Tools
from bench.handover import figures
from bench.handover.figures import KNOWN_DEATH, SIGTERM, UNKNOWN_DEATH
from bench.handover.group import ServedGroup, Setup, conduct
from bench.handover.steps import PlannedSteps
from contracts.delivery import OUR_DELIVERIES, Delivery


@dataclass(kw_only=True)
class Failover(Benchmark):
    """Kill replicas, whose death is known or unknown, and stop some; measure the worst latency of any event."""

    delivery: Annotated[Delivery, Option(f"{' or '.join(OUR_DELIVERIES)}.")] = Delivery.INCREMENTAL
    heartbeat: Annotated[float, Option("Heartbeat of the members.", least=0.05, most=60, time=True)] = 3.0

    def __post_init__(self) -> None:
        """Raise ValueError for a runtime that takes no plan."""
        if self.delivery not in OUR_DELIVERIES:
            raise ValueError(f"--delivery {self.delivery} takes no plan; use {' or '.join(OUR_DELIVERIES)}")

    def measure(self, case: str, tools: Tools) -> Row:
        """End replicas, first by unknown deaths, then by known ones and stops in turn; each is replaced."""
        known, sigterms, unknown = (3, 2, 1) if self.quick else (20, 20, 3)
        turns = itertools.zip_longest([KNOWN_DEATH] * known, [SIGTERM] * sigterms)
        ends = [UNKNOWN_DEATH] * unknown + [end for turn in turns for end in turn if end]

        def act(group: ServedGroup) -> None:
            steps = PlannedSteps(group)
            for number, end in enumerate(ends, start=1):
                if number > 1:
                    steps.start(group.start_warm())
                if end == SIGTERM:
                    steps.terminate(steps.fullest())
                else:
                    steps.kill(end, steps.fullest())
                tools.announce(said="ends of replicas", completed=number, total=len(ends))
                if group.late:
                    break

        setup = Setup(runtime=self.delivery, heartbeat_s=self.heartbeat, quick=self.quick)
        with tools.kafka("failover", setup.partitions) as connection:
            return conduct(setup, connection, act, figures.failover)
