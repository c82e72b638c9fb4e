"""The autoscaler's membership in a group of consumers, in its own thread, so that a slow decision cannot end it."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final

from autoscaler.live.foreign import wire
from autoscaler.live.foreign.coordinator import Coordinator, describe_error
from autoscaler.live.foreign.members import Member, Replicas
from autoscaler.live.foreign.wire import Partitions
from autoscaler.live.settings import AutoscalerSettings
from contracts.connection import Connection
from contracts.plan import PlanRecord

RETRY_S: Final = 0.2
IDLE_EVERY_S: Final = 0.25
"""Time between two readings of the committed offsets."""
REBALANCE_EVERY_S: Final = 0.05
"""Time between two readings during a rebalance."""
MAX_PARTITIONS: Final = 200  # so many are read, which is cheap
WINDOW_S: Final = 60.0
"""Time without a rebalance from which the commit interval is learned."""


@dataclass(frozen=True, slots=True)
class View:
    """The group after a rebalance."""

    seen_s: float = 0.0
    """Last time at which the coordinator confirmed this view (monotonic clock)."""
    generation: int = -1
    leads: bool = False
    """Whether plans are followed."""
    protocol: str = ""
    epoch: int = 0
    """Epoch of the plan that this rebalance carried out completely; 0: none."""
    members: tuple[Member, ...] = ()
    places: Mapping[str, Partitions] = field(default_factory=dict)
    """Member id → its partitions, including those that it must still release."""


class Membership(ABC):
    """A membership whose group follows plans.

    notify: called from the thread with lines for an operator.
    """

    def __init__(
        self, connection: Connection, settings: AutoscalerSettings, notify: Callable[[str], None] = lambda _: None
    ) -> None:
        self._coordinator = Coordinator(connection, settings.group_in(connection.namespace))
        self._topic, self._settings, self._notify = settings.topic_in(connection.namespace), settings, notify
        self.view = View()
        self.problem = ""
        """Why plans are not followed now; empty: they are. Like `view`, it may be read from another thread."""
        self.is_fenced = False
        """Whether another autoscaler has this membership."""
        self.commits = CommitTimes()
        """May be read from another thread."""
        self._pauses_s = SimpleQueue[float]()
        self._removed: list[Member] = []
        self._given: tuple[PlanRecord | None, Replicas] = None, Replicas()
        self._loop = asyncio.new_event_loop()
        self._due = asyncio.Event()
        self._main: asyncio.Task[None]
        self._thread = threading.Thread(target=self._run_thread, name="group membership", daemon=True)
        self.start = self._thread.start
        """Joins the group, in the background."""

    def carry_out(self, plan: PlanRecord | None, replicas: Replicas) -> None:
        """Set the plan and the running replicas. If that changes an owner, a rebalance begins."""
        if (plan, replicas) != self._given and not self._loop.is_closed():
            self._given = plan, replicas
            self._loop.call_soon_threadsafe(self._compare)

    def take_pauses(self) -> list[float]:
        """Return how long plans have stopped partitions since the last call, seconds."""
        return [self._pauses_s.get() for _ in range(self._pauses_s.qsize())]

    def remove(self, members: Iterable[Member]) -> None:
        """Remove members whose processes have exited, so that the group does not wait for their sessions."""
        asyncio.run_coroutine_threadsafe(self._remove_again(members), self._loop)

    def close(self, *, leave: bool) -> None:
        """End the thread. leave: leave the group too. Else the membership lasts until the end of its session."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(leave=leave), self._loop)
            self._thread.join(wire.ANSWER_TIMEOUT_S)

    @abstractmethod
    async def _serve(self) -> None:
        """Carry out plans until fenced. Raises KafkaError if the coordinator is lost."""

    @abstractmethod
    def _compare(self) -> None:
        """Begin a rebalance if the plan changes an owner."""

    @abstractmethod
    async def _remove(self, members: "list[Member]") -> None:
        """Let members leave."""

    @abstractmethod
    async def _leave(self) -> None:
        """Leave the group."""

    async def _remove_again(self, members: Iterable[Member] = ()) -> None:
        """Let members leave, and those that were to leave and have not yet."""
        listed = {member.id for member in self.view.members}
        self._removed = [*members, *(member for member in self._removed if member.id in listed)]
        await self._remove(self._removed)

    async def _end(self, *, leave: bool) -> None:
        if leave:
            await self._leave()
        self._main.cancel()

    def _run_thread(self) -> None:
        self._main = self._loop.create_task(self._run())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._main)
        self._loop.close()

    async def _run(self) -> None:
        while not self.is_fenced:
            try:
                await self._coordinator.connect()
                await self._serve()
            except Exception as failed:  # whatever it is: without this thread the group would be lost for ever
                self.problem = f"group {self._coordinator.group}: {describe_error(failed)}"
            finally:
                await self._coordinator.close()
            await asyncio.sleep(RETRY_S)


class CommitTimes:
    """Learns the commit interval of a group, and how long rebalances stop it, from the times of its commits."""

    def __init__(self) -> None:
        self.age_s = 0.0
        """Mean age of a commit: half the commit interval. 0: unknown, or too short to be seen."""
        self._offsets: dict[int, int] = {}
        self._advanced_s: dict[int, tuple[float, float]] = {}
        """Partition → between which two readings its offset advanced last."""
        self._advances = Counter[int]()
        self._quiet_s = self._read_s = 0.0

    def observe(self, at_s: float, offsets: Mapping[int, int], *, rebalances: bool) -> None:
        """Add one reading of the committed offsets by partition."""
        advanced = [number for number, offset in offsets.items() if offset > self._offsets.get(number, offset)]
        self._offsets.update(offsets)
        self._advanced_s |= dict.fromkeys(advanced, (self._read_s, at_s))
        if not rebalances:
            self._advances.update(advanced)
            self._quiet_s += min(at_s - self._read_s, 2 * IDLE_EVERY_S)
        self._read_s = at_s
        if self._quiet_s >= WINDOW_S:
            (_, most), *_ = self._advances.most_common(1) or [(0, 0)]
            interval_s = self._quiet_s / most if most else 0.0  # the busiest partition has an event for each commit
            self.age_s = interval_s / 2 if interval_s > 2 * IDLE_EVERY_S else 0.0
            self._advances, self._quiet_s = Counter(), 0.0

    def pauses(self, began_s: float, ended_s: float) -> list[float]:
        """Return the longest time for which a rebalance may have stopped each partition, seconds.

        It begins at the last commit in the rebalance, because consumers commit when they stop. A partition without such
        a commit is left out. Call it after the first reading that follows the end.
        """
        found = [(since_s, at_s) for since_s, at_s in self._advanced_s.values() if at_s > began_s]
        stopped_s = [max(since_s, began_s) for since_s, at_s in found if since_s >= began_s or at_s >= ended_s]
        return [ended_s - at_s for at_s in stopped_s if at_s <= ended_s]
