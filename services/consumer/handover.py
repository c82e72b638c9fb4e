"""What a replica does in a round: keeps what stays, takes what is new, finishes and gives up what goes."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Histogram

from contracts.clock import now_us
from contracts.plan import PlanRecord
from contracts.progress import Round, RoundKind
from services.consumer.assignor import PlanAssignor
from services.consumer.coordinator import PlanCoordinator
from services.consumer.interface import Calls
from services.consumer.log_watch import FOREIGN
from services.consumer.metrics import PAUSE
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueues
from services.consumer.rebalance import Given

log = logging.getLogger(__name__)

RELEASE_S: Final = 1.0
"""How long a round waits at most for the events in flight of partitions that are to be given up. After that the replica
rejoins with its claim, and everybody else goes on; below the session time-out and the rebalance time-out."""
FIRST_RELEASE_S: Final = 0.05
"""… and in the first round of a plan: what else the plan moves waits as long. Doubled with each round that follows."""
ABANDON_S: Final = 0.25  # how long a handler at work is waited for when nothing of it can be committed any more
STOP_S: Final = 5.0
"""Eager: how long everything may take to stop, for everybody waits; below the rebalance time-out."""


@dataclass(slots=True)
class Handover:
    """Carries out one assignment after the other."""

    coordinator: PlanCoordinator
    assignor: PlanAssignor
    queues: PartitionQueues
    committer: Committer
    calls: Calls
    newest_plan: Callable[[], PlanRecord | None]
    eager: bool
    release_s: float = RELEASE_S
    rounds: int = 0
    """Completed so far."""
    taken: int = 0
    """Partitions, in all rounds."""
    released: int = 0
    timings: list[Round] = field(default_factory=list)
    """Of rounds that changed something; whoever reports them empties it."""
    pauses: Histogram = field(default_factory=lambda: PAUSE.kept(None))
    """Of partitions taken over from another replica (s)."""
    _watched: "set[asyncio.Future[None]]" = field(default_factory=set)
    _member: tuple[str, int] = ("", -1)

    async def stop(self) -> None:
        """Eager: give up everything before the group is joined."""
        held = self.queues.held
        self.queues.close(held)
        done = await self._finish(await self.queues.settle(held, STOP_S))
        self.committer.hold()
        await self.calls.released(done)  # of what is late the round decides whether it is lost or stays

    async def carry_out(self, partitions: frozenset[int], generation: int) -> bool:
        """Make `partitions` the ones that are served; return whether the group should be joined again at once."""
        origin, assignor = self.assignor.last, self.assignor
        if self.eager and self.queues.held and self._member != (self.coordinator.member_id, generation - 1):
            missed = self.queues.held  # somebody else may have served them in the round that was missed
            self.queues.drop(missed)
            await self.calls.lost(missed)
            await self.coordinator.fetch((), {})  # what waited was fetched already: begin at the group's offsets
        self._member = (str(self.coordinator.member_id), generation)
        assignor.assigned(generation)
        self.committer.open(generation)
        held = self.queues.held
        taken, released = partitions - held, held - partitions
        cut_off = {p for p in released if self.queues[p].cut_off}  # its offset means nothing to the next owner
        self.queues.drop(cut_off)
        await self.calls.lost(cut_off)
        released -= cut_off
        self.queues.close(released)
        if self.eager:
            self.queues.drop(released)  # first: an event that ends late must not be committed over its new owner
            await self.calls.lost(released)  # apart from what was finished before the round
        pause_us = await self._take(partitions, taken, origin.given, origin.epoch)
        if self._is_lost:
            return False
        if not self.eager:
            await self._release(released)
        self.rounds += 1
        if taken or released:
            self._note(len(taken), len(released), pause_us)
        return origin.again or bool(assignor.given)  # what was given up is nobody's until a round grants it

    async def give_up_all(self, patience_s: float) -> None:
        """Before leaving: finish and commit what can be finished in time."""
        held = self.queues.held
        self.queues.close(held)
        settled = await self.queues.settle(held, patience_s)
        if late := held - settled:
            log.warning("events of partitions %s are not done; they will be served again", sorted(late))
        done = await self._finish(settled)
        self.committer.hold()
        undone = self.queues.held - done
        self.queues.drop(self.queues.held)
        await self.calls.released(done)
        await self.calls.lost(undone)

    async def abandon(self) -> dict[int, range]:
        """Before leaving unheard: let handlers end what they are at; return which offsets are begun and not committed.

        Partitions count as lost: what a listener saved of them would be ahead of what the group has.
        """
        held = self.queues.held
        self.queues.close(held)
        await self.queues.settle(held, min(ABANDON_S, self.release_s))
        uncommitted = {partition: queue.uncommitted for partition, queue in self.queues.items() if queue.uncommitted}
        await self.lose()
        return uncommitted

    def lose(self) -> "asyncio.Future[None]":
        """The group has given everything away: drop it at once; the future is done when the listener is."""
        held = self.queues.held
        self.queues.drop(held)
        self.committer.hold()
        self.assignor.forget()
        return self.calls.lost(held)

    @property
    def _is_lost(self) -> bool:
        """Whether the group gave everything away while a round was carried out; `lose` has forgotten it."""
        return self.assignor.generation < 0

    async def _take(self, partitions: frozenset[int], taken: Iterable[int], given: dict[int, Given], epoch: int) -> int:
        """Open what is new, go on with what stays; return the longest pause (µs) of what was handed over."""
        offsets: dict[int, int | None] = {p: given[p].offset if p in given else None for p in taken}
        committed, foreign = await self.coordinator.committed([p for p, offset in offsets.items() if offset is None])
        offsets |= committed
        if not self._is_lost:
            await self.calls.taken(partitions if self.eager else offsets)
        if self._is_lost:
            await self.calls.lost(partitions)
            return 0
        self.queues.open(offsets, epoch, self.assignor.generation)
        for partition in foreign:
            self.queues.cut_off(partition, FOREIGN)
        self.queues.reopen([p for p in partitions if p not in offsets], epoch)
        fetched = self.coordinator.fetched
        again = {p: self.queues[p].expected for p in partitions if p not in fetched} | offsets
        await self.coordinator.fetch(partitions, {p: at for p, at in again.items() if at is not None})
        at_us = now_us()
        pauses_us = [max(0, at_us - given[p].at_us) for p in offsets if p in given]
        for pause_us in pauses_us:
            self.pauses.observe(pause_us / 1e6)
        return max(pauses_us, default=0)

    async def _release(self, partitions: frozenset[int]) -> None:
        patience_s = min(self.release_s, FIRST_RELEASE_S * 2**self.assignor.last.follow_ups)
        done = await self._finish(await self.queues.settle(partitions, patience_s))
        for partition in (partitions - done) & self.queues.held:
            self._watch(partition)
        self.queues.drop(done)
        await self.calls.released(done)

    async def _finish(self, settled: set[int]) -> set[int]:
        """Commit what is done and note where others go on; return which of `settled` are finished with the group.

        What the group has not confirmed is claimed for another round: whoever began at an uncommitted offset would have
        to rely on a state that nobody has saved.
        """
        stopped_us = now_us()
        await self.committer.last_commit(self.queues.held)  # all of it: a partition with an event late loses no more
        queues = {p: self.queues[p] for p in settled & self.queues.held}
        done = {p for p, queue in queues.items() if queue.committable is None and not queue.cut_off}
        positions = {p: self.queues[p].position for p in done}
        self.assignor.given |= {p: Given(at, stopped_us) for p, at in positions.items() if at is not None}
        return done

    def _watch(self, partition: int) -> None:
        """Ask for another round once the partition's events in flight are done: it is claimed until then."""

        async def ask() -> None:
            await queue.idle()
            if partition in self.queues.held and self.queues[partition] is queue and not queue.is_open:
                self.coordinator.request_rejoin()

        queue = self.queues[partition]
        task = asyncio.ensure_future(ask())
        self._watched.add(task)
        task.add_done_callback(self._watched.discard)

    def _note(self, taken: int, released: int, pause_us: int) -> None:
        self.taken += taken
        self.released += released
        origin, plan, at_us = self.assignor.last, self.newest_plan(), now_us()
        planned = origin.kind is not RoundKind.MEMBERSHIP and plan is not None and plan.epoch == origin.epoch
        self.timings.append(
            Round(
                generation=self.assignor.generation,
                epoch=origin.epoch,
                kind=origin.kind,
                members=origin.members,
                moved=origin.moved,
                taken=taken,
                released=released,
                pause_us=pause_us,
                plan_us=max(0, at_us - plan.at_us) if planned and plan is not None else 0,
                at_us=at_us,
            )
        )
