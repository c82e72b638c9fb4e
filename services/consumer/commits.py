"""Commits that only the present generation can make, and never while joining."""

import asyncio
import logging
from collections.abc import Collection
from typing import Any, Final

from aiokafka import errors
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from services.consumer.lane import Lane
from services.consumer.lanes import Lanes

log = logging.getLogger(__name__)

FENCED: Final = (
    errors.UnknownMemberIdError,
    errors.IllegalGenerationError,
    errors.RebalanceInProgressError,
    errors.CommitFailedError,
)
"""Answers that mean: the group has moved on. aiokafka has taken note and rejoins."""
LAST_COMMIT_S: Final = 2.0
"""How long the commit before a handover is tried; below the rebalance time-out, which costs the membership."""
RETRY_S: Final = 0.05


class Committer:
    """Commits what the lanes have done. Held: no commit leaves.

    aiokafka sends JoinGroup and OffsetCommit on one connection, which the broker serves in order. A commit made while
    joining is answered after the round, as one of an old generation, and aiokafka then throws its member id away.
    A member without a generation must be silent too: an empty group would accept its commit.
    """

    def __init__(self, coordinator: Any, lanes: Lanes, topic: str, interval_s: float) -> None:
        self._coordinator = coordinator
        self._lanes = lanes
        self._topic = topic
        self._interval_s = interval_s
        self._lock = asyncio.Lock()
        self._generation = -1

    def open(self, generation: int) -> None:
        """Commit in the name of `generation` from now on."""
        self._generation = generation

    def hold(self) -> None:
        """Commit nothing until the next `open`."""
        self._generation = -1

    async def run(self) -> None:
        """Commit at every interval, until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            await self.commit()

    async def last_commit(self, partitions: Collection[int]) -> bool:
        """Commit what `partitions` have done before others take them; return whether that is with the group."""
        try:
            async with asyncio.timeout(LAST_COMMIT_S):
                # The coordinator moves or restarts, and nothing tells when it is back.
                while not (done := await self.commit(partitions)) and self._may_commit():  # noqa: ASYNC110
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            log.warning("the last commit was not answered within %g s; its events may be served again", LAST_COMMIT_S)
            return False
        return done

    async def commit(self, partitions: Collection[int] | None = None) -> bool:
        """Commit; return whether all that is done is now with the group. A refusal loses nothing: events repeat.

        partitions: None for all that are held.
        """
        async with self._lock:
            lanes, offsets = self._committable(partitions)
            if not offsets:
                return True
            # Checked and sent without a pause between: aiokafka's own commit() may wait for a coordinator first, and
            # would then send these offsets under whatever generation it has by that time.
            if not self._may_commit():
                return False
            at = {TopicPartition(self._topic, p): OffsetAndMetadata(offset, "") for p, offset in offsets.items()}
            try:
                await self._coordinator._do_commit_offsets(None, at)
            except FENCED as moved_on:
                log.info(
                    "commit refused (%s): the events since the last one will be served again", type(moved_on).__name__
                )
                return False
            except errors.KafkaError as away:
                if not away.retriable:
                    raise
                return False
            for partition, offset in offsets.items():
                lanes[partition].committed(offset)
            return True

    def _committable(self, partitions: Collection[int] | None) -> tuple[dict[int, Lane], dict[int, int]]:
        lanes = {p: lane for p, lane in self._lanes.items() if partitions is None or p in partitions}
        offsets = {p: offset for p, lane in lanes.items() if (offset := lane.committable) is not None}
        return lanes, offsets

    def _may_commit(self) -> bool:
        return bool(0 < self._generation == self._coordinator.generation and not self._coordinator.joining)
