"""Carries out an assignment in a replica: it takes new partitions, and finishes, commits and gives up removed ones."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from contracts.clock import monotonic_s, now_us
from contracts.progress import Rebalance
from services.consumer.assignor import PlanAssignor
from services.consumer.coordinator import PlanCoordinator
from services.consumer.interface import ListenerCalls
from services.consumer.log_watch import FOREIGN_OFFSET
from services.consumer.metrics import PAUSE, Buckets
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueue, PartitionQueues
from services.consumer.rebalance import AssignmentMetadata, HandedOverOffset

log = logging.getLogger(__name__)

MAX_RELEASE_S: Final = 1.0
"""Longest time that a rebalance waits for events in flight of partitions to give up, seconds. It is below the session
and rebalance time-outs. After it the replica rejoins, still claims the partition, and the other members continue."""
FIRST_MAX_RELEASE_S: Final = 0.05
"""As MAX_RELEASE_S, in the first rebalance of a plan, in which all moves wait. It doubles with each follow-up."""
ABANDON_TIMEOUT_S: Final = 0.25  # for handlers at work whose events cannot be committed any more
STOP_TIMEOUT_S: Final = 5.0
"""Eager protocol: longest wait for events in flight before a join. All members wait for it, so it must be short."""


@dataclass(slots=True)
class Handover:
    """Carries out the assignments of one replica, one after the other."""

    coordinator: PlanCoordinator
    assignor: PlanAssignor
    queues: PartitionQueues
    committer: Committer
    calls: ListenerCalls
    is_eager: bool
    max_release_s: float = MAX_RELEASE_S
    rebalances: int = 0
    """Number of completed rebalances."""
    partitions_taken: int = 0
    """Number of partitions taken in all rebalances."""
    rebalance_reports: list[Rebalance] = field(default_factory=list)
    """Rebalances that changed this replica's partitions and are not reported yet. The reporter clears the list."""
    pauses: Buckets = field(default_factory=lambda: Buckets(PAUSE))
    """For each partition taken over from another replica: how long no replica served it (s)."""
    _assigned_s: float = 0.0
    """When the last assignment arrived, by `monotonic_s`."""
    _previous_s: float | None = None  # the same for the generation before; None: this replica got none
    _rejoin_tasks: "set[asyncio.Future[None]]" = field(default_factory=set)
    _last_member: tuple[str, int] = ("", -1)
    """Member id and generation of the last assignment."""

    async def stop_serving(self) -> None:
        """Eager protocol: stop serving, commit and release all partitions before the replica joins the group."""
        owned = self.queues.owned_partitions
        self.queues.close(owned)
        done = await self._finish(await self.queues.wait_until_idle(owned, STOP_TIMEOUT_S))
        self.committer.suspend()
        await self.calls.on_released(done)  # partitions that are not done stay or are lost, as the leader decides

    async def apply_assignment(self, partitions: frozenset[int], generation: int) -> bool:
        """Serve exactly `partitions` from now on. Return whether the replica should rejoin the group at once."""
        assignment, assignor = self.assignor.last_assignment, self.assignor
        owned = self.queues.owned_partitions
        if self.is_eager and owned and self._last_member != (self.coordinator.member_id, generation - 1):
            self.queues.drop(owned)  # another member may have served them in a rebalance without this one
            await self.calls.on_lost(owned)
            await self.coordinator.fetch((), {})  # the backlog is gone: fetch again from the committed offsets
            owned = frozenset()
        self._previous_s = self._assigned_s if self._last_member[1] == generation - 1 else None
        self._assigned_s, self._last_member = monotonic_s(), (str(self.coordinator.member_id), generation)
        assignor.start_generation(generation)
        self.committer.resume(generation)
        taken, released = partitions - owned, owned - partitions
        cut_off = {p for p in released if self.queues[p].cut_off_reason}  # its offset is useless to the next owner
        self.queues.drop(cut_off)
        await self.calls.on_lost(cut_off)
        released -= cut_off
        self.queues.pass_over(self.coordinator.next_fetch_offsets)  # unknown once the partitions are no longer fetched
        self.queues.close(released)
        if self.is_eager:
            self.queues.drop(released)  # at once: their new owner serves them, so no late event may be committed
            await self.calls.on_lost(released)  # without effect for those that `stop_serving` has released
        pause_us = await self._take(partitions, taken, assignment)
        if self._membership_is_lost:
            return False
        if not self.is_eager:
            await self._release(released)
        self.rebalances += 1
        if taken or released:
            self._record_rebalance(len(taken), len(released), pause_us)
        return assignment.rejoin or bool(assignor.handed_over)  # handed-over partitions wait for the next rebalance

    async def give_up_all(self, timeout_s: float) -> None:
        """Give up all partitions before leaving the group. Events that end within the timeout are committed."""
        owned = self.queues.owned_partitions
        self.queues.close(owned)
        idle = await self.queues.wait_until_idle(owned, timeout_s)
        if busy := owned - idle:
            log.warning("Events of partitions %s are not done; they will be served again", sorted(busy))
        done = await self._finish(idle)
        self.committer.suspend()
        owned = self.queues.owned_partitions
        self.queues.drop(owned)
        await self.calls.on_released(done)
        await self.calls.on_lost(owned - done)

    async def abandon(self) -> None:
        """Stop serving while the group cannot be reached.

        Calls `on_partitions_lost`, not released: state saved by a listener would be ahead of the committed offsets.
        """
        owned = self.queues.owned_partitions
        self.queues.close(owned)
        await self.queues.wait_until_idle(owned, min(ABANDON_TIMEOUT_S, self.max_release_s))
        await self.lose_all()

    def lose_all(self) -> "asyncio.Future[None]":
        """Drop all partitions, which others own or may soon own. The future is done when the listener has returned."""
        owned = self.queues.owned_partitions
        self.queues.drop(owned)
        self.committer.suspend()
        self.assignor.forget()
        return self.calls.on_lost(owned)

    @property
    def _membership_is_lost(self) -> bool:
        return self.assignor.generation < 0  # `lose_all` was called while an assignment was carried out

    async def _take(self, partitions: frozenset[int], taken: Iterable[int], assignment: AssignmentMetadata) -> int:
        """Open new partitions and continue the others. Return the longest pause (µs) of those handed over."""
        handed_over, epoch = assignment.handed_over, assignment.epoch
        offsets: dict[int, int | None] = {p: handed_over[p].offset if p in handed_over else None for p in taken}
        unknown = [p for p, offset in offsets.items() if offset is None]
        committed, foreign = await self.coordinator.committed_offsets(unknown)
        offsets |= committed
        if not self._membership_is_lost:
            await self.calls.on_taken(partitions if self.is_eager else offsets)
        if self._membership_is_lost:
            await self.calls.on_lost(partitions)
            return 0
        self.queues.open(offsets, epoch, self.assignor.generation)
        for partition in foreign:
            self.queues.cut_off(partition, FOREIGN_OFFSET)
        self.queues.reopen([p for p in partitions if p not in offsets], epoch)
        fetched = self.coordinator.fetched_partitions
        starts = {p: self.queues[p].next_fetch_offset for p in partitions if p not in fetched} | offsets
        await self.coordinator.fetch(partitions, {p: start for p, start in starts.items() if start is not None})
        return max((self._pause_us(handed_over[p]) for p in offsets if p in handed_over), default=0)

    def _pause_us(self, handed_over: HandedOverOffset) -> int:
        """Return how long no replica served the partition; 0: unknown. Compares durations, not clocks of two hosts."""
        if self._previous_s is None or handed_over.served_us < 0:
            return 0
        pause_us = max(0, round((monotonic_s() - self._previous_s) * 1e6) - handed_over.served_us)
        self.pauses.observe(pause_us / 1e6)
        return pause_us

    async def _release(self, partitions: frozenset[int]) -> None:
        timeout_s = min(self.max_release_s, FIRST_MAX_RELEASE_S * 2**self.assignor.last_assignment.follow_ups)
        done = await self._finish(await self.queues.wait_until_idle(partitions, timeout_s))
        for partition in (partitions - done) & self.queues.owned_partitions:
            task = asyncio.ensure_future(self._rejoin_when_idle(partition, self.queues[partition]))
            self._rejoin_tasks.add(task)
            task.add_done_callback(self._rejoin_tasks.discard)
        self.queues.drop(done)
        await self.calls.on_released(done)

    async def _finish(self, idle: set[int]) -> set[int]:
        """Commit, and note the offsets for the next owners. Return the `idle` partitions that are fully committed.

        A partition without a confirmed commit is claimed for another rebalance: its next owner would begin at an offset
        whose state no listener has saved.
        """
        stopped_us, served_us = now_us(), round((monotonic_s() - self._assigned_s) * 1e6)
        await self.committer.last_commit()  # busy ones too: fewer of their events repeat
        queues = {p: self.queues[p] for p in idle & self.queues.owned_partitions}
        done = {p for p, queue in queues.items() if queue.committable_offset is None and not queue.cut_off_reason}
        for p in done:
            if (position := queues[p].position) is not None:
                self.assignor.handed_over[p] = HandedOverOffset(position, stopped_us, served_us)
        return done

    async def _rejoin_when_idle(self, partition: int, queue: PartitionQueue) -> None:
        """Request another rebalance once the partition, claimed until then, has no events in flight."""
        await queue.wait_until_idle()
        if partition in self.queues.owned_partitions and self.queues[partition] is queue and not queue.is_open:
            self.coordinator.request_rejoin()

    def _record_rebalance(self, taken: int, released: int, pause_us: int) -> None:
        self.partitions_taken += taken
        assignment = self.assignor.last_assignment
        self.rebalance_reports.append(
            Rebalance(
                generation=self.assignor.generation,
                epoch=assignment.epoch,
                kind=assignment.kind,
                members=assignment.members,
                moved=assignment.moved,
                taken=taken,
                released=released,
                pause_us=pause_us,
                at_us=now_us(),
            )
        )
