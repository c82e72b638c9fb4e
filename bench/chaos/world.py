"""What a schedule acts on: a running pipeline and its brokers, as whoever started them hands them over."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import psutil

from bench.chaos.proxy import Mode


class World(Protocol):
    """Three brokers, each behind a proxy, and one pipeline on them."""

    bootstrap_servers: str
    namespace: str
    """Of the pipeline's topics."""
    partitions: int
    """Of payments.requested, as the load knows them."""
    clock: Path
    """What it says, in seconds, is added to the wall clock that the pipeline's processes see."""
    disk: Path | None
    """Folder of the small disk on which the pipeline's processes write; None: there is none."""

    @property
    def order_port(self) -> int:
        """Port of Order's HTTP interface."""

    def processes(self) -> Mapping[str, int]:
        """Name → pid of the pipeline's processes that run: payment-0, …, autoscaler, order, shipment, notification."""

    def strangers(self) -> Mapping[int, str]:
        """Pid → name of the pipeline's processes that run, and that nobody knows of."""

    def supervise(self) -> None:
        """Start again what has ended. Called all the time."""

    def broker(self, node: int) -> psutil.Process | None:
        """Return the process of a broker, None when it does not run."""

    def kill_broker(self, node: int) -> None:
        """End it as a crash would."""

    def start_broker(self, node: int) -> None:
        """Start it again; it serves later."""

    def switch(self, node: int, mode: Mode) -> None:
        """Let its proxy do this."""

    def rival(self) -> AbstractContextManager[None]:
        """Another autoscaler of the same group on the same brokers, which does not know of the first one."""

    def make_topics(self) -> None:
        """Make those of the pipeline's topics anew that are missing."""
