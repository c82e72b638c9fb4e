"""The interface between a service and the consumer: events, handlers, options, listeners."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from contracts.membership import OBEYS_PLANS, Membership
from contracts.progress import ReplicaState
from contracts.settings import Rules, Target, Values, setting


class ReplicaError(Exception):
    """The replica cannot start or go on. The message is one sentence that says what to do."""


class Refused(Exception):  # noqa: N818  the handler's verdict, no fault of the program
    """Raise it in a handler for an event that no further attempt would help. Its arguments are the reasons."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why, one sentence each."""
        return tuple(map(str, self.args))


class OnLogReset(StrEnum):
    """The handling of a partition whose log is not the one that was read."""

    FAIL = "fail"  # serve it no more, and say so, until somebody has looked
    START_OVER = "start_over"  # serve it from where its log begins now


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The topics that the consumer reads and writes, by the names the broker knows."""

    group: str
    events: str
    """The one topic whose partitions are planned."""
    plans: str
    """PlanRecord; one partition, compacted."""
    progress: str
    """Progress; one partition."""
    dead_letters: str = ""
    """DeadLetter: what could not be handled, and why. Empty: nowhere."""
    stage: str = ""
    """Name of the stage in dead letters; empty: the group."""
    others: Mapping[str, int] = field(default_factory=dict)
    """Further topics that must be there before it starts, with the least number of partitions they must have."""


def _not_below_the_first(values: Values) -> str | None:
    first_s = values["retry_backoff_s"]
    return None if values["retry_backoff_max_s"] >= first_s else f"is less than retry_backoff_s = {first_s:g}"


@dataclass(frozen=True, kw_only=True)
class Options(Membership, Target):
    """Options of a consumer. Raises ValueError naming everything that is wrong."""

    rebalance_timeout_s: float = setting(10.0, "s", above=0)
    """Time after which a member that has not rejoined is removed from the group."""
    concurrency: int = setting(1, "events", least=1)
    """Events (or batches) handled at the same time, over all partitions."""
    concurrency_per_partition: int = setting(1, "events", least=1)
    """Events of one partition handled at the same time, never two with the same key. They start in order."""
    batch_size: int = setting(1, "events", least=1)
    """Maximum number of events for `handle_batch`, which never waits for a full batch."""
    attempts: int = setting(5, "attempts", least=1)
    """Attempts before an event or a batch has failed."""
    retry_backoff_s: float = setting(0.1, "s", above=0)
    """Pause of the partition before the second attempt, doubled for each further one."""
    retry_backoff_max_s: float = setting(5.0, "s", above=0)
    """Longest pause between two attempts."""
    handler_timeout_s: float = setting(300.0, "s", least=0)
    """Time after which a handler and its awaitable are cancelled and the attempt has failed; 0: no limit. Longer than a
    broker's outage."""

    http_port: int = setting(0, least=-1, most=65535)
    """Port of `/healthz` and `/metrics`; 0: none; -1: any free port, which progress records contain."""
    http_host: str = setting("127.0.0.1")
    """Address of these pages."""
    on_log_reset: OnLogReset = setting(OnLogReset.FAIL)
    """Handling of a partition whose log was re-created, truncated, or deleted before it was served."""

    RULES: ClassVar[Rules] = (OBEYS_PLANS, ("retry_backoff_max_s", _not_below_the_first))

    def backoff_s(self, failures: int) -> float:
        """Return the pause after so many failed attempts (s)."""
        return min(self.retry_backoff_s * 2.0 ** min(failures - 1, 64), self.retry_backoff_max_s)


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the input topic."""

    topic: str
    """As the broker names it, namespace included."""
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    timestamp_us: int
    """The record's own (µs since the epoch, in whole milliseconds)."""
    received_us: int
    """When it was polled (µs since the epoch)."""
    epoch: int
    """Plan epoch that the partition was taken or kept under; 0 without a plan."""
    generation: int | None = None
    """Generation of the group in which the partition was taken. (epoch, generation) is the event's fencing token: who
    takes the partition next has a greater one. None where another runtime polled it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a replica is."""

    ok: bool
    reasons: tuple[str, ...]
    """Why it is not well, one sentence each; empty where it is."""
    state: ReplicaState
    partitions: tuple[int, ...]
    """Those that are served, ascending."""
    lease_age_s: float
    """Since the group was asked and confirmed the membership."""
    commit_age_s: float
    """Since all that was done was committed."""


Later = Awaitable[Any] | None
"""None: the event is done. An awaitable: it will be, once that completes; the next event need not wait for it. What it
raises is treated as if the handler had raised it."""
Handler = Callable[[Event], Awaitable[Later]]
"""Handles one event. What it raises, and what it returned later on, is tried again; see Options.attempts."""
BatchHandler = Callable[[Sequence[Event]], Awaitable[Later]]
"""Handles events of one partition that follow each other."""
OnError = Callable[[Event, Exception], Awaitable[None]]
"""Gets an event that has failed for good and what its last attempt raised. What it raises itself ends the consumer."""


Told = Callable[[Sequence[int]], Awaitable[None]]


async def _nobody(partitions: Sequence[int]) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Whom to tell about partitions, given in ascending order. What a listener raises ends the consumer."""

    on_partitions_taken: Told = _nobody
    """They are this replica's from now on; no event of them is handled before this returns."""
    on_partitions_released: Told = _nobody
    """They are finished and committed; nobody else gets them before this returns."""
    on_partitions_lost: Told = _nobody
    """They are, or will be, somebody else's without having been finished and committed: the group took this replica for
    dead, or it left while an event took too long or no broker answered. Their last events may be served again."""


@dataclass(slots=True)
class Calls:
    """Calls the listeners. Of each partition they hear by turns that it was taken, and that it was released or lost.

    What is told first is heard first, also where nobody waits for it. Each method returns a future that is done when
    the listener is.
    """

    listeners: Listeners
    _known: set[int] = field(default_factory=set)
    """Partitions that were told as taken, and not yet as released or lost."""
    _last: "asyncio.Future[None] | None" = None

    def taken(self, partitions: Iterable[int]) -> "asyncio.Future[None]":
        """Tell of those that are not known."""
        fresh = set(partitions) - self._known
        self._known |= fresh
        return self._call(self.listeners.on_partitions_taken, fresh)

    def released(self, partitions: Iterable[int]) -> "asyncio.Future[None]":
        """Tell of those that are known."""
        return self._call(self.listeners.on_partitions_released, self._forget(partitions))

    def lost(self, partitions: Iterable[int]) -> "asyncio.Future[None]":
        """Tell of those that are known."""
        return self._call(self.listeners.on_partitions_lost, self._forget(partitions))

    def _forget(self, partitions: Iterable[int]) -> set[int]:
        gone = self._known.intersection(partitions)
        self._known -= gone
        return gone

    def _call(self, listener: Told, partitions: set[int]) -> "asyncio.Future[None]":
        loop, before = asyncio.get_running_loop(), self._last
        if not partitions:
            nothing: asyncio.Future[None] = loop.create_future()
            nothing.set_result(None)
            return nothing

        async def turn() -> None:
            if before is not None and not before.done():
                await asyncio.wait([before])
            await listener(sorted(partitions))

        self._last = loop.create_task(turn())
        return self._last
