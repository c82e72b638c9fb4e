"""What the controller of a simulated group learns of its service rates: from its replicas' progress, as live."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autoscaler.estimation import ServiceRates, WorkCounters
from autoscaler.simulator.learned import LearnedRates
from autoscaler.simulator.members import Member
from autoscaler.simulator.settings import ServiceSettings


class ProgressRates:
    """μ of each replica, learned from how many events it has served and how long it was busy with them.

    An engine counts events by partition. Those of a partition that changed its owner since the last reading are
    nobody's. Busy time is what so many events take that replica on average: neither chance nor a slow-down shows in it.
    Where the settings make all replicas alike there is nothing to learn, and μ is known from the start.
    """

    def __init__(self, service: ServiceSettings, partitions: int) -> None:
        self._known = LearnedRates(service)
        self._rates = ServiceRates(1 / (service.service_time_s + service.overhead_s))
        self.alike = len(set(service.speeds)) == 1
        """All replicas are, and always will be."""
        self._committed = np.zeros(partitions, np.int64)
        self._owners = np.full(partitions, -1)
        self._served: dict[int, int] = {}
        """Events by replica number."""

    def observe(self, members: Sequence[Member], owners: Sequence[int], committed: NDArray[np.int64]) -> None:
        """Take in one reading: who is planned, and owner (replica number) and events committed by partition."""
        now = np.array(owners)
        stayed = np.flatnonzero(now == self._owners)
        for partition, events in zip(stayed, (committed - self._committed)[stayed], strict=True):
            owner = int(now[partition])
            self._served[owner] = self._served.get(owner, 0) + int(events)
        self._owners, self._committed = now, committed
        self._rates.keep([member.name for member in members])
        for member in members:
            if member.ready:
                self._rates.observe(self._counters(member))

    @property
    def group(self) -> float:
        """Of the typical replica, events/s."""
        return self._known.group if self.alike else self._rates.service_rate

    def of(self, member: Member) -> float | None:
        """Of a replica that is known to differ, events/s; None: as the typical one, or not known."""
        return None if self.alike else self._rates.own(member.name)

    def _counters(self, member: Member) -> WorkCounters:
        served = self._served.get(member.number, 0)
        busy_s = served / (self._known.of(member.number) or self._known.group)
        return WorkCounters(member.name, str(member.number), served, round(busy_s * 1e6))
