"""Exactly once: what events have written and how far they are done reach Kafka in one transaction, or not at all.

A transaction is short: all of it is known before it begins. The group fences it by member and generation, so a member
that was taken for dead cannot commit; who takes the partition asks for offsets that no open transaction may change.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

from aiokafka import AIOKafkaProducer, errors
from aiokafka.client import CoordinationType
from aiokafka.producer.sender import Sender, TxnOffsetCommitHandler
from aiokafka.protocol.transaction import InitProducerIdRequest
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contracts.plan import Eviction
from contracts.topics import DEFAULT_LARGEST
from services.consumer.connections import Client
from services.consumer.outbox import Outbox, Record
from services.consumer.output import Committer, limit_batches
from services.consumer.partition_queue import PartitionQueue
from services.consumer.requests import Raw, txn_offset_commit

log = logging.getLogger(__name__)

REFUSED: Final = (errors.UnknownMemberIdError, errors.IllegalGenerationError, errors.RebalanceInProgressError)
"""The group's answers to who is no member of its generation."""
NO_RIGHTS: Final = (
    errors.TransactionalIdAuthorizationFailed,
    errors.GroupAuthorizationFailedError,
    errors.TopicAuthorizationFailedError,
)
STOP_S: Final = 1.0  # how long a producer that is of no use any more may take to end
MOST_LOST: Final = 5  # transactions in a row that somebody else ended, after which the replica gives up

Member = tuple[int, str]  # generation and member id


class TransactionLostError(errors.KafkaError):  # type: ignore[misc]  # aiokafka ships no types
    """The transaction was ended by somebody else: it took too long, or this replica was evicted."""


class MemberSender(Sender):  # type: ignore[misc]
    """aiokafka's sender, with the group's offsets sent in the name of a member."""

    member: Member

    async def _do_txn_offset_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata], group_id: str) -> None:
        node = await self._find_coordinator(CoordinationType.GROUP, group_id)
        await _MemberOffsets(self, offsets, group_id).do(node)


class _MemberOffsets(TxnOffsetCommitHandler):  # type: ignore[misc]
    def create_request(self) -> Raw:
        manager = self._sender._txn_manager
        producer = (manager.transactional_id, manager.producer_id, manager.producer_epoch)
        return txn_offset_commit(producer, self._group_id, self._sender.member, self._offsets)

    def handle_response(self, response: Any) -> float | None:
        answers = [(topic, [(p, code) for p, code, _ in partitions]) for topic, partitions, _ in response.topics]
        codes = {code for _, partitions in answers for _, code in partitions}
        for refused in REFUSED:
            if refused.errno in codes:
                # Not error_transaction: it forgets what is in the transaction, and sends no abort of nothing; what was
                # written would be committed with the next one.
                _, _, asked = self._sender._txn_manager._pending_txn_offsets.popleft()
                asked.set_exception(refused())
                return None
        back_off: float | None = super().handle_response(SimpleNamespace(errors=answers))
        return back_off


class Transactions:
    """The transactional producer of one replica, replaced where somebody else ended its transaction.

    connection: aiokafka's arguments. timeout_s: after so long the broker ends a transaction that was left open.
    """

    def __init__(
        self, connection: Mapping[str, Any], group: str, replica: str, incarnation: str, timeout_s: float
    ) -> None:
        self._connection = connection
        self._group = group
        self._id = _transactional_id(group, replica, incarnation)
        self._timeout_ms = round(timeout_s * 1000)
        self._largest_batch = DEFAULT_LARGEST
        self._producer: AIOKafkaProducer | None = None

    async def start(self) -> None:
        """Connect, and end what a predecessor of this id left open. May be called again after an error."""
        producer = AIOKafkaProducer(
            **self._connection, transactional_id=self._id, transaction_timeout_ms=self._timeout_ms, linger_ms=0
        )
        producer._sender.__class__ = MemberSender
        Client.adopt(producer.client)
        limit_batches(producer, self._largest_batch)
        try:
            await producer.start()
            # Found now, while nobody waits: the first transaction may be the last commit before a handover.
            await producer._sender._find_coordinator(CoordinationType.GROUP, self._group)
        except BaseException:
            await _end(producer)
            raise
        self._producer = producer

    def limit_batches(self, largest: int) -> None:
        """Send no more than `largest` bytes together."""
        self._largest_batch = largest
        if self._producer is not None:
            limit_batches(self._producer, largest)

    async def stop(self) -> None:
        """Disconnect."""
        if self._producer is not None:
            await self._producer.stop()

    async def write(
        self, records: Sequence[Record], offsets: Mapping[TopicPartition, OffsetAndMetadata], member: Member
    ) -> None:
        """Write records and offsets, all or nothing. Raises KafkaError: nothing is written, and it may be tried again.

        The errors REFUSED: the member is none of the group's generation. TransactionLostError: it may be none any more.
        """
        if self._producer is None:
            await self.start()
        assert self._producer is not None
        producer = self._producer
        producer._sender.member = member
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._write(producer, records, offsets)
        except TimeoutError as unanswered:
            await self._forget(producer)
            raise TransactionLostError(f"not ended within {self._timeout_ms / 1000:g} s") from unanswered
        except errors.KafkaError as wrong:
            if await self._abort(producer) or isinstance(wrong, NO_RIGHTS):
                raise
            raise TransactionLostError(str(wrong) or type(wrong).__name__) from wrong

    async def _write(
        self, producer: AIOKafkaProducer, records: Sequence[Record], offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        await producer.begin_transaction()
        sent = [await producer.send(one.topic, value=one.value, key=one.key, headers=one.headers) for one in records]
        for each in sent:
            each.add_done_callback(_retrieve)
        await producer.send_offsets_to_transaction(dict(offsets), self._group)
        for each in sent:
            await each
        await producer.commit_transaction()

    async def end(self, dead: Eviction) -> None:
        """End what a dead replica may have left open, so that nobody has to wait until it times out."""
        if self._producer is None or not dead.incarnation:
            return
        name, client = _transactional_id(self._group, dead.replica, dead.incarnation), self._producer.client
        try:
            node = await client.coordinator_lookup(CoordinationType.TRANSACTION, name)
            await client.send(node, InitProducerIdRequest(name, self._timeout_ms))
        except errors.KafkaError as unanswered:
            log.warning("the transaction of %s, if there is one, has to time out: %r", dead.replica, unanswered)

    async def _abort(self, producer: AIOKafkaProducer) -> bool:
        """End the transaction with nothing written; return False where that, and all, is left to the broker."""
        _retrieve(producer._txn_manager.wait_for_transaction_end())
        if not producer._txn_manager.is_fatal_error():
            with suppress(errors.KafkaError, TimeoutError):
                async with asyncio.timeout(self._timeout_ms / 1000):
                    await producer.abort_transaction()
                return True
        await self._forget(producer)
        return False

    async def _forget(self, producer: AIOKafkaProducer) -> None:
        """Leave its transaction to the next producer of this id, or to the broker."""
        self._producer = None
        await _end(producer)


class AtomicCommitter(Committer):
    """Commits what events have written with the offsets of these events."""

    def __init__(self, *where: Any, outbox: Outbox, transactions: Transactions) -> None:
        super().__init__(*where)
        self._outbox = outbox
        self._transactions = transactions
        self._lost = 0

    async def run(self) -> None:
        """Commit at every interval, earlier when much is kept, until cancelled."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._outbox.is_early.wait(), self._interval_s)
            if not await self.commit():
                await asyncio.sleep(self._interval_s)

    async def commit(self, partitions: Any = None) -> bool:
        """Commit as Committer does. Who is not waiting any longer leaves the transaction to come to its end."""
        return await asyncio.shield(asyncio.ensure_future(super().commit(partitions)))

    async def _write(self, queues: Mapping[int, PartitionQueue], offsets: Mapping[int, int]) -> None:
        member = (self._generation, str(self._coordinator.member_id))
        takings = {p: (p, queues[p].generation) for p in offsets}
        self._outbox.keep_only([(p, queue.generation) for p, queue in self._queues.items()])
        records = [record for p, offset in offsets.items() for record in self._outbox.due(takings[p], offset)]
        try:
            await self._transactions.write(records, self._at(offsets), member)
        except REFUSED as refused:
            if not isinstance(refused, errors.RebalanceInProgressError):
                self._leave(member)
            raise
        except errors.KafkaTimeoutError as away:
            raise errors.RequestTimedOutError from away  # no leader for an output yet: tried again
        except TransactionLostError as lost:
            self._lost += 1
            if self._lost >= MOST_LOST:
                raise
            log.warning("a transaction was ended by somebody else (%s): joining the group anew", lost)
            self._leave(member)
            raise errors.CommitFailedError from lost
        self._lost = 0
        self._outbox.committed({takings[p]: offset for p, offset in offsets.items()})

    def _leave(self, member: Member) -> None:
        """Give everything up, unless the membership is another one by now, or about to be."""
        if self._may_commit() and member == (self._generation, self._coordinator.member_id):
            self._coordinator.reset_generation()


def _transactional_id(group: str, replica: str, incarnation: str) -> str:
    """Return the id of one process: it never fences another one that is alive."""
    return f"{group}.{replica}.{incarnation}"


async def _end(producer: AIOKafkaProducer) -> None:
    with suppress(Exception):
        await asyncio.wait_for(producer.stop(), STOP_S)


def _retrieve(done: "asyncio.Future[Any]") -> None:
    """Take note of an error that is told elsewhere, else asyncio would say that nobody did."""
    if done.done() and not done.cancelled():
        done.exception()
