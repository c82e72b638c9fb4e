"""The payment work, the same for every runtime: rules, records, timeline and pace are those of `services.payment`."""

from collections.abc import Callable
from typing import Final

from contracts.clock import now_us
from services.consumer import Event
from services.payment.app import Outgoing, settle
from services.payment.pace import Pace
from services.payment.settings import ReplicaSettings

NO_PLAN: Final = 0
"""Epoch of an assignment that no plan made."""


class Work:
    """One server of one replica. `begin` an event, wait until the time it returns, `finish` it."""

    def __init__(self, settings: ReplicaSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._pace = Pace()
        self._begun_s = 0.0

    @property
    def busy_s(self) -> float:
        """Time spent serving since the start."""
        return self._pace.busy_s

    def begin(self, key: bytes | None, *, idle: bool) -> float:
        """Start one event; return when its service ends, on the clock.

        idle: nothing was waiting when the last event ended.
        """
        self._begun_s = self._clock()
        return self._pace.begin(self._begun_s, self._settings.service_time_of(key), idle=idle)

    def finish(self, event: Event) -> tuple[Outgoing, float]:
        """End the event's service now; return what to write and how long the event took (s)."""
        return settle(event, self._settings.replica, now_us()), self._clock() - self._begun_s


def event_of(
    topic: str,
    partition: int,
    offset: int,
    *,
    key: bytes | None,
    value: bytes | None,
    timestamp_us: int,
    received_us: int,
) -> Event:
    """Return a record of payments.requested as the rules take it. Times in µs since the epoch."""
    return Event(
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=(),
        timestamp_us=timestamp_us,
        received_us=received_us,
        epoch=NO_PLAN,
    )
