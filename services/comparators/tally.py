"""What one replica has done and owns, told as contracts.progress.Progress."""

import os
import secrets
from collections.abc import Iterable
from typing import Final

from contracts.clock import now_us
from contracts.progress import Progress, ReplicaState, ServiceTimes
from services.comparators.payment import NO_PLAN

UNKNOWN_GENERATION: Final = -1
"""librdkafka does not tell its member's generation."""


class Tally:
    """Counters of one incarnation. The runtime says what it owns and serves, `report` tells it all."""

    def __init__(self, replica: str) -> None:
        self.replica = replica
        self.member_id = ""
        self.generation = UNKNOWN_GENERATION
        self.stopping = False
        self.ready = False
        """Whether it has had a part of the group's work."""
        self.processed = 0
        self.rebalances = 0
        self._incarnation = f"{now_us():016d}-{secrets.token_hex(4)}"
        self._owned: set[int] = set()
        self._positions: dict[int, int] = {}
        self._service_s: list[float] = []

    @property
    def state(self) -> ReplicaState:
        """WARM until the first assignment, MEMBER from then on, STOPPING at the end."""
        if self.stopping:
            return ReplicaState.STOPPING
        return ReplicaState.MEMBER if self.ready else ReplicaState.WARM

    @property
    def owned(self) -> tuple[int, ...]:
        """Partitions of the present assignment, in order."""
        return tuple(sorted(self._owned))

    def taken(self, partitions: Iterable[int]) -> None:
        """Note partitions added to the assignment."""
        self._owned.update(partitions)
        self.ready = self.ready or bool(self._owned)

    def given_up(self, partitions: Iterable[int]) -> None:
        """Note partitions taken out of the assignment."""
        for partition in partitions:
            self._owned.discard(partition)
            self._positions.pop(partition, None)

    def served(self, partition: int, offset: int, took_s: float) -> None:
        """Note one event served."""
        self.processed += 1
        self._service_s.append(took_s)
        if partition in self._owned:
            self._positions[partition] = offset + 1

    def report(self, busy_s: float) -> Progress:
        """Return the report of this moment; service times begin anew with the next one."""
        service_s, self._service_s = self._service_s, []
        return Progress(
            replica=self.replica,
            incarnation=self._incarnation,
            pid=os.getpid(),
            member_id=self.member_id,
            generation=self.generation,
            epoch=NO_PLAN,
            assigned_epoch=NO_PLAN,
            state=self.state,
            partitions=self.owned,
            positions=dict(self._positions),
            processed=self.processed,
            busy_us=round(busy_s * 1e6),
            rebalances=self.rebalances,
            at_us=now_us(),
            service=service_times(service_s),
        )


def service_times(service_s: list[float]) -> ServiceTimes:
    """Return count, mean and maximum of `service_s` (seconds)."""
    if not service_s:
        return ServiceTimes()
    return ServiceTimes(
        events=len(service_s),
        mean_us=round(sum(service_s) / len(service_s) * 1e6),
        max_us=round(max(service_s) * 1e6),
    )
