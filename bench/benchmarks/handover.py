"""What a change of owner costs moved and unmoved partitions: moves, starts, drains and stops under a steady load."""

from dataclasses import dataclass
from typing import Annotated

from bench.benchmark import Benchmark, Option, Row, Tools
from bench.handover import figures
from bench.handover.group import ServedGroup, Setup, conduct
from bench.handover.steps import PlannedSteps, UnplannedSteps
from contracts.delivery import Delivery

FIRST_QUIET_S = 3.0


@dataclass(kw_only=True)
class Handover(Benchmark):
    """Move partitions between live replicas under load; measure the cost for moved and unmoved partitions."""

    runtime: Annotated[Delivery, Option("Our consumer (incremental, eager), or another runtime.")] = (
        Delivery.INCREMENTAL
    )
    heartbeat: Annotated[float, Option("Heartbeat of the members.", least=0.05, most=60, time=True)] = 3.0
    handovers: Annotated[int, Option("Moved partitions; 0: 200, or 30 with --quick.", least=0)] = 0
    replicas: Annotated[int, Option("Replicas, as processes.", least=2, most=64)] = 3
    partitions: Annotated[int, Option("Partitions of their topic.", least=1, most=2000)] = 6
    rate: Annotated[int, Option("Events/s; 5 ms of work each.", least=1, most=5000)] = 150
    seed: Annotated[int, Option("Of the moves.")] = 1

    def __post_init__(self) -> None:
        """Raise ValueError for a runtime whose partitions have no owner."""
        if self.runtime is Delivery.SHARE:
            raise ValueError("--runtime share: the partitions of a share group have no owner")

    def measure(self, case: str, tools: Tools) -> Row:
        """Take steps until enough partitions have moved."""
        setup = Setup(
            runtime=self.runtime, heartbeat_s=self.heartbeat, replicas=self.replicas, partitions=self.partitions,
            rate=self.rate, seed=self.seed, quick=self.quick,
        )  # fmt: skip
        enough = self.handovers or (30 if self.quick else 200)

        def act(group: ServedGroup) -> None:
            steps = (PlannedSteps if setup.takes_plan else UnplannedSteps)(group)
            if setup.takes_plan:
                group.rest(FIRST_QUIET_S)
            for _ in steps.mixed():
                tools.announce(said="handovers", completed=min(enough, group.handovers), total=enough)
                if group.handovers >= enough or group.late:
                    break

        with tools.kafka("handover", setup.partitions) as connection:
            return conduct(setup, connection, act, figures.handovers)
