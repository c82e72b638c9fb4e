"""One Payment replica as a server: its settings, its service times, and deadlines without rounding errors."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from contracts.clock import now_us
from contracts.membership import EventCost, LiveSpeeds
from contracts.settings import Rules, setting
from partitioners import Partitioner, splits_keys
from services.consumer.environment import ConsumerSettings


@dataclass(frozen=True, kw_only=True)
class ReplicaSettings(ConsumerSettings, EventCost, LiveSpeeds):
    """Settings of a replica, from TAILPACK_REPLICA, TAILPACK_SERVICE_TIME_S, …, and the consumer's options."""

    payment_partitions: int = setting(0, "partitions", least=0)
    """Least number of partitions of the input topic, which may grow; 0: any."""
    slow_event_s: float = setting(0.0, "s", least=0)
    """Service time of events whose order id begins with `slow-`, for experiments; 0: as all others."""
    replica_number: int = setting(0, least=0)
    """Number of this replica for `speeds` and `slow_replicas`, from 0."""
    key_order: bool = setting(False)
    """Require that each customer's events stay in order. Partitioners that split keys are then refused."""
    partitioner: Partitioner = setting(Partitioner.EXPLICIT)
    """Partitioner that Order uses."""

    RULES: ClassVar[Rules] = (("partitioner", lambda values: splits_keys(values["key_order"], values["partitioner"])),)


SLOW_PREFIX: Final = b"slow-"

MAX_CATCH_UP_S: Final = 0.1
"""Largest lag behind its deadlines that a busy server makes up. It covers timer rounding (1 ms) and a busy event loop.
After a longer pause of the process, no burst is served faster than a real server could."""


class ServerDeadlines:
    """Deadlines of one server. Each is a service time after the previous one, or after now if idle.

    So the service rate is exact. Without such deadlines, timer rounding (1 ms) makes it 190 instead of 200 events/s.
    """

    __slots__ = ("_deadline_s", "busy_s")

    def __init__(self) -> None:
        self._deadline_s = 0.0
        self.busy_s = 0.0
        """Time spent serving, seconds. It is computed from the deadlines, so it excludes the rounding of sleeps."""

    def begin(self, now_s: float, service_time_s: float, *, idle: bool) -> float:
        """Start one event and return its deadline. idle: whether no event was waiting when the last event ended."""
        start_s = max(self._deadline_s, now_s if idle else now_s - MAX_CATCH_UP_S)
        finish_s = start_s + service_time_s
        self.busy_s += finish_s - (start_s if idle else self._deadline_s)
        self._deadline_s = finish_s
        return finish_s


class ServiceTimes:
    """Service times of this replica. They depend on its speed, and are longer during its configured slow period."""

    def __init__(self, settings: ReplicaSettings) -> None:
        self._settings = settings
        self._usual_s = settings.service_time_s / settings.speed_of(settings.replica_number)
        self._slow_factor = settings.slow_factor_of(settings.replica_number)
        self._run_start_us: int | None = None

    def service_time_s(self, key: bytes | None, at_us: int) -> float:
        """Return the service time of the event with this key, seconds. at_us: its start, µs since the epoch."""
        settings = self._settings
        if settings.slow_event_s > 0 and (key or b"").startswith(SLOW_PREFIX):
            return settings.slow_event_s
        return self._usual_s * (self._slow_factor if self._is_slow(at_us) else 1.0)

    def _is_slow(self, at_us: int) -> bool:
        settings = self._settings
        if self._slow_factor == 1:
            return False
        if self._run_start_us is None:
            with suppress(OSError, ValueError):  # missing, or only partly written
                self._run_start_us = int(Path(settings.start_file).read_text())
        start_us = self._run_start_us
        return start_us is not None and settings.slow_from_s <= (at_us - start_us) / 1e6 < settings.slow_until_s


class Server:
    """Serves one event after the other, each for its service time."""

    def __init__(self, times: ServiceTimes) -> None:
        self._times = times
        self.deadlines = ServerDeadlines()
        self._last_done_us = 0

    async def serve(self, received_us: int, key: bytes | None) -> int:
        """Serve the event with this key, polled at `received_us`. Return the end of its service, µs since the epoch."""
        clock = asyncio.get_running_loop().time
        service_time_s = self._times.service_time_s(key, now_us())
        finish_s = self.deadlines.begin(clock(), service_time_s, idle=received_us > self._last_done_us)
        await asyncio.sleep(max(0.0, finish_s - clock()))
        self._last_done_us = now_us()
        return self._last_done_us
