"""Commits that only the present generation can make, and never while joining."""

import asyncio
import logging
import time
from typing import Any, Final

from aiokafka import errors
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from services.consumer.ledger import Ledger

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
    """Commits a ledger's offsets. Held: no commit leaves.

    aiokafka sends JoinGroup and OffsetCommit on one connection, which the broker serves in order. A commit made while
    joining is answered after the round, as one of an old generation, and aiokafka then throws its member id away.
    A member without a generation must be silent too: an empty group would accept its commit.
    """

    def __init__(self, coordinator: Any, topic: str, interval_s: float) -> None:
        self._coordinator = coordinator
        self._topic = topic
        self._interval_s = interval_s
        self._lock = asyncio.Lock()
        self._generation = -1
        self.ledger = Ledger()
        """Of the present assignment."""

    def open(self, generation: int) -> Ledger:
        """Begin an assignment made in `generation`; return its empty ledger."""
        self._generation = generation
        self.ledger = Ledger()
        return self.ledger

    async def close(self) -> bool:
        """Commit what may be committed, then hold until the next assignment; return whether all of it is committed."""
        deadline = time.monotonic() + LAST_COMMIT_S
        while not (done := await self.commit()) and self._may_commit():
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(RETRY_S)  # the coordinator moves or the broker restarts; nothing tells when it is back
        self._generation = -1
        return done

    def _may_commit(self) -> bool:
        return bool(0 < self._generation == self._coordinator.generation)

    async def run(self) -> None:
        """Commit at every interval, until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            await self.commit()

    async def commit(self) -> bool:
        """Commit the ledger; return whether all of it is now with the group. A refusal loses nothing: events repeat."""
        async with self._lock:
            ledger = self.ledger
            offsets = ledger.committable()
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
            ledger.committed(offsets)
            return True
