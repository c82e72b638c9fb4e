"""One replica in a group that answers at once: rounds are told to it one by one. For the handover's unit tests."""

from collections.abc import Awaitable, Callable, Sequence

from consumer_fakes import TOPIC, FakeCoordinator, records

from contracts.plan import PlanRecord
from contracts.progress import RoundKind
from services.consumer.assignor import PlanAssignor
from services.consumer.handover import Handover, Listeners
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueue, PartitionQueues, Taken
from services.consumer.rounds import Given, Origin


class Story:
    """One replica that holds nothing yet; `told` is what its listeners heard, in order with its requests."""

    def __init__(self, *, eager: bool = False) -> None:
        self.group = FakeCoordinator(generation=0)
        self.queues = PartitionQueues(per_partition=1, batch_size=1)
        self.plan: PlanRecord | None = None
        self.assignor = PlanAssignor("me", "1", lambda: self.plan, eager=eager)
        self.assignor.claims = lambda: self.queues.held
        self.handover = Handover(
            coordinator=self.group,  # type: ignore[arg-type]
            assignor=self.assignor,
            queues=self.queues,
            committer=Committer(self.group, self.queues, TOPIC, interval_s=60),
            listeners=Listeners(
                on_partitions_taken=self.hear("taken"),
                on_partitions_released=self.hear("released"),
                on_partitions_lost=self.hear("lost"),
            ),
            newest_plan=lambda: self.plan,
            eager=eager,
            release_s=0.02,
        )

    def hear(self, what: str) -> Callable[[Sequence[int]], Awaitable[None]]:
        async def heard(partitions: Sequence[int]) -> None:
            self.group.asked.append(f"{what} {list(partitions)}")
            assert what != "taken" or not set(partitions) & set(self.queues.serving), "told before any event is handled"

        return heard

    async def round(
        self,
        generation: int,
        *partitions: int,
        given: dict[int, Given] | None = None,
        again: bool = False,
        epoch: int = 1,
    ) -> bool:
        """One round as the coordinator runs it: stop where it is eager, then carry out."""
        if self.handover.eager:
            await self.handover.stop()
        self.group.generation = generation
        self.assignor.last = Origin(
            epoch=epoch, kind=RoundKind.PLAN, members=2, moved=1, given=given or {}, again=again
        )
        return await self.handover.carry_out(frozenset(partitions), generation)

    def start(self, partition: int) -> tuple[PartitionQueue, Taken]:
        """A handler begins with the next event of a partition; the queue's next record is made up."""
        queue = self.queues[partition]
        queue.put(records(queue.expected or 0, 1), 1)
        return queue, queue.start(1)

    def serve(self, partition: int, count: int = 1) -> None:
        for _ in range(count):
            end(*self.start(partition))


def end(queue: PartitionQueue, taken: Taken) -> None:
    queue.returned(taken)
    queue.finished(taken)
