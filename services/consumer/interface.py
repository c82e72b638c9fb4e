"""The interface between a service and the consumer: events, handlers, options, listeners."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from contracts.membership import PLAN_PROTOCOL_ONLY, Membership
from contracts.progress import ReplicaState
from contracts.settings import Rules, Target, Values, WebPages, setting
from contracts.unpacking import MAX_BATCH_MB


class ReplicaError(Exception):
    """The replica cannot start or continue. The message is one sentence for the user, with what to do."""


class Refused(Exception):  # noqa: N818  the handler's verdict, not a fault of the program
    """A handler raises this to refuse an event without further attempts. Its arguments are the reasons."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the reasons, one sentence each."""
        return tuple(map(str, self.args))


class OnLogReset(StrEnum):
    """The reaction to a partition whose log was re-created, truncated or deleted."""

    FAIL = "fail"  # stop serving it and report it until the user resets the group's offsets
    START_OVER = "start_over"  # serve it from the current beginning of its log


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The topics that the consumer reads and writes, by their full names on the broker."""

    group: str
    events: str
    """The topic whose partitions are planned."""
    plans: str
    """Compacted topic of PlanRecord with one partition."""
    progress: str
    """Topic of Progress with one partition."""
    dead_letters: str = ""
    """Topic of DeadLetter, for events that failed for good. Empty: none."""
    stage: str = ""
    """Name of the stage in dead letters. Empty: the group's name."""
    others: Mapping[str, int] = field(default_factory=dict)
    """Further topics that must exist before the consumer starts, each with its minimum number of partitions."""


def _backoff_max_error(values: Values) -> str | None:
    first_s = values["retry_backoff_s"]
    return None if values["retry_backoff_max_s"] >= first_s else f"must not be less than retry_backoff_s = {first_s:g}"


@dataclass(frozen=True, kw_only=True)
class Options(Membership, Target, WebPages):
    """Options of a consumer. Raises ValueError naming every option that is wrong."""

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
    """Pause of the partition before the second attempt, doubled for each further attempt."""
    retry_backoff_max_s: float = setting(5.0, "s", above=0)
    """Longest pause between two attempts."""
    handler_timeout_s: float = setting(300.0, "s", least=0)
    """Time after which a handler and its awaitable are cancelled and the attempt has failed; 0: no limit."""

    http_port: int = setting(0, least=-1, most=65535)
    """Port of `/healthz` and `/metrics`; 0: none; -1: any free port, which progress records contain."""
    max_batch_mb: int = setting(MAX_BATCH_MB, "MB", least=1)
    """Largest unpacked batch. A larger one becomes one failed event."""
    on_log_reset: OnLogReset = setting(OnLogReset.FAIL)
    """Handling of a partition whose log was re-created, truncated, or deleted before it was served."""

    RULES: ClassVar[Rules] = (PLAN_PROTOCOL_ONLY, ("retry_backoff_max_s", _backoff_max_error))

    def backoff_s(self, failures: int) -> float:
        """Return the pause after this number of failed attempts (s)."""
        return min(self.retry_backoff_s * 2.0 ** min(failures - 1, 64), self.retry_backoff_max_s)


class Event(msgspec.Struct, frozen=True, gc=False):  # created in a quarter of a dataclass's time
    """One record of the input topic."""

    topic: str
    """Full name on the broker, namespace included."""
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    timestamp_us: int
    """The record's own timestamp (µs since the epoch, in whole milliseconds)."""
    received_us: int
    """When the event was polled (µs since the epoch)."""
    epoch: int
    """Epoch of the plan that assigned the partition; 0 without a plan."""
    generation: int | None = None
    """Group generation in which the partition was taken; None if another runtime polled the event. (epoch, generation)
    is the event's fencing token: the partition's next owner has a greater one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Health of a replica."""

    ok: bool
    reasons: tuple[str, ...]
    """Why the replica is unhealthy, one sentence each. Empty: it is healthy."""
    notes: tuple[str, ...] = ()
    """Problems of other members of the group, if this replica leads it. They do not make this replica unhealthy."""
    state: ReplicaState
    partitions: tuple[int, ...]
    """Partitions that it serves, ascending."""
    lease_age_s: float
    """Seconds since the last request by which the group confirmed the membership."""
    commit_age_s: float
    """Seconds since the offsets of all done events were last committed."""
    reports_lost: int = 0
    """Progress reports that could not be written since the start. Events are served without them."""
    reports_problem: str = ""
    """Why the newest progress report could not be written. Empty: it was written."""


Completion = Awaitable[Any] | None
"""None: the event is done. An awaitable: the event is done once it completes, and the next event need not wait for it.
An error of the awaitable counts as an error of the handler."""
Handler = Callable[[Event], Awaitable[Completion]]
"""Handles one event. An error, of the handler or of the awaitable it returned, causes a retry. See Options.attempts."""
BatchHandler = Callable[[Sequence[Event]], Awaitable[Completion]]
"""Handles consecutive events of one partition."""
OnError = Callable[[Event, Exception], Awaitable[None]]
"""Gets an event that has failed for good and the last attempt's error. An error of this callback ends the consumer."""
PartitionListener = Callable[[Sequence[int]], Awaitable[None]]


async def _ignore(partitions: Sequence[int]) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Callbacks for partitions (ascending) that this replica gets or gives up. A listener's error ends the consumer."""

    on_partitions_taken: PartitionListener = _ignore
    """This replica owns the partitions from now on. None of their events is handled before this returns."""
    on_partitions_released: PartitionListener = _ignore
    """All events are done and committed. No other replica gets the partitions before this returns."""
    on_partitions_lost: PartitionListener = _ignore
    """Another replica owns, or will own, the partitions, but not all events are committed. The group removed this
    replica, or it left while an event was slow or no broker answered. The last events may be served again."""


@dataclass(slots=True)
class ListenerCalls:
    """Calls the listeners, one at a time and in order.

    For each partition, `on_taken` alternates with `on_released` or `on_lost`: calls that would break this are left out.
    Each method returns a future that is done when the listener has returned.
    """

    listeners: Listeners
    _taken_partitions: set[int] = field(default_factory=set)
    """Partitions announced as taken and not yet as released or lost."""
    _last_call: "asyncio.Future[None] | None" = None

    def on_taken(self, partitions: Iterable[int]) -> "asyncio.Future[None]":
        """Call `on_partitions_taken` for those of `partitions` that are not announced as taken."""
        new = set(partitions) - self._taken_partitions
        self._taken_partitions |= new
        return self._call(self.listeners.on_partitions_taken, new)

    def on_released(self, partitions: Iterable[int]) -> "asyncio.Future[None]":
        """Call `on_partitions_released` for those of `partitions` that are announced as taken."""
        return self._call(self.listeners.on_partitions_released, self._forget(partitions))

    def on_lost(self, partitions: Iterable[int]) -> "asyncio.Future[None]":
        """Call `on_partitions_lost` for those of `partitions` that are announced as taken."""
        return self._call(self.listeners.on_partitions_lost, self._forget(partitions))

    def _forget(self, partitions: Iterable[int]) -> set[int]:
        dropped = self._taken_partitions.intersection(partitions)
        self._taken_partitions -= dropped
        return dropped

    def _call(self, listener: PartitionListener, partitions: set[int]) -> "asyncio.Future[None]":
        loop, before = asyncio.get_running_loop(), self._last_call
        if not partitions:
            nothing: asyncio.Future[None] = loop.create_future()
            nothing.set_result(None)
            return nothing

        async def turn() -> None:
            if before is not None and not before.done():
                await asyncio.wait([before])
            await listener(sorted(partitions))

        self._last_call = loop.create_task(turn())
        return self._last_call
