"""What an experiment is told, and what it needs of the machine."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from contracts.connection import Connection
from contracts.delivery import OUR_DELIVERIES, Delivery

QUICK_DEADLINE_S: Final = 10.0
DEADLINE_S: Final = 60.0


class ExperimentError(Exception):
    """The experiment cannot go on: a process ended, or the broker did not take something. The text says which."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What an experiment is told. Lengths of time in seconds."""

    runtime: Delivery = Delivery.INCREMENTAL
    heartbeat_s: float = 3.0
    replicas: int = 3
    partitions: int = 6
    rate: float = 150.0
    """Events/s, each of `service_time_s`, round robin to all partitions."""
    service_time_s: float = 0.005
    seed: int = 1
    quick: bool = False
    began_s: float = field(default_factory=time.monotonic)
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
    def announced(self) -> bool:
        """A replica reports itself before it joins the group. Otherwise its start counts from that of the process."""
        return self.runtime is not Delivery.FAUST

    @property
    def step_deadline_s(self) -> float:
        """How long a step may take."""
        return QUICK_DEADLINE_S if self.quick else DEADLINE_S


@dataclass(frozen=True, kw_only=True)
class Machine:
    """How the command gives an experiment a broker and topics."""

    kafka: Callable[[Path], AbstractContextManager[str]]
    """Runs a broker whose files are in this folder, and names its address."""
    create_topics: Callable[[Connection, int], None]
    """Makes all topics of a run; the number is that of the payment partitions."""
