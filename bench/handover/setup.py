"""What an experiment is told."""

import time
from typing import Final

import msgspec

from contracts.delivery import OUR_DELIVERIES, Delivery, Guarantee

SERVICE_TIME_S: Final = 0.005
"""Of one event."""
PROCESSES: Final = "processes"
QUICK_DEADLINE_S: Final = 10.0
DEADLINE_S: Final = 60.0


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is repeated with the result. Lengths of time in seconds."""

    runtime: Delivery = Delivery.INCREMENTAL
    heartbeat_s: float = 3.0
    replicas: int = 3
    partitions: int = 6
    rate: float = 150.0
    """Events/s, round robin to all partitions."""
    seed: int = 1
    quick: bool = False
    launcher: str = PROCESSES
    """Replicas are processes, or pods (kubernetes)."""


class Setup(Question, frozen=True, kw_only=True):
    """One experiment."""

    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    """Of our own replicas."""

    began_s: float = msgspec.field(default_factory=time.monotonic)
    """Monotonic time of the command."""

    @property
    def takes_plan(self) -> bool:
        """The replicas are our own."""
        return self.runtime in OUR_DELIVERIES

    @property
    def owned(self) -> bool:
        """Partitions have owners."""
        return self.runtime is not Delivery.SHARE

    @property
    def step_deadline_s(self) -> float:
        """How long a step may take."""
        return QUICK_DEADLINE_S if self.quick else DEADLINE_S
