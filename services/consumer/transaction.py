"""Exactly once: outputs of events and the offsets of these events are committed in one transaction.

A transaction is short, because all its records are known before it begins. The group fences it by member and
generation, so a removed member cannot commit. The partition's next owner waits for offsets of open transactions.
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
from aiokafka.protocol.transaction import EndTxnRequest, InitProducerIdRequest
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contracts.plan import Eviction
from contracts.topics import DEFAULT_MAX_MESSAGE_BYTES
from services.consumer.connections import Client
from services.consumer.outbox import Outbox, Record
from services.consumer.output import UNANSWERED_ERRORS, Committer, limit_batches
from services.consumer.partition_queue import PartitionQueue
from services.consumer.requests import VersionedRequest, txn_offset_commit

log = logging.getLogger(__name__)

REFUSED_ERRORS: Final = (errors.UnknownMemberIdError, errors.IllegalGenerationError, errors.RebalanceInProgressError)
"""The group's answers to a commit that is not from a member of its current generation."""
AUTHORIZATION_ERRORS: Final = (
    errors.TransactionalIdAuthorizationFailed,
    errors.GroupAuthorizationFailedError,
    errors.TopicAuthorizationFailedError,
)
STOP_TIMEOUT_S: Final = 1.0  # for a producer that is not used any more
MAX_CONSECUTIVE_LOSSES: Final = 5  # lost transactions in a row at which the replica ends

MemberIdentity = tuple[int, str]  # generation and member id


class TransactionLostError(errors.KafkaError):  # type: ignore[misc]  # aiokafka ships no types
    """The broker, or another process, has ended the transaction: it took too long, or this replica was evicted."""


class _Client(Client):
    """Notes a request that the broker may carry out later, then as a part of the producer's next transaction."""

    has_unanswered = False

    async def send(self, node_id: Any, request: Any, **options: Any) -> Any:
        """Send a request and return its response."""
        try:
            return await super().send(node_id, request, **options)
        except UNANSWERED_ERRORS:
            self.has_unanswered |= isinstance(request, VersionedRequest | EndTxnRequest)
            raise


class MemberSender(Sender):  # type: ignore[misc]
    """aiokafka's sender, changed to send offsets in the name of a group member."""

    member: MemberIdentity

    async def _do_txn_offset_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata], group_id: str) -> None:
        node = await self._find_coordinator(CoordinationType.GROUP, group_id)
        await _MemberOffsets(self, offsets, group_id).do(node)


class _MemberOffsets(TxnOffsetCommitHandler):  # type: ignore[misc]
    def create_request(self) -> VersionedRequest:
        manager = self._sender._txn_manager
        producer = (manager.transactional_id, manager.producer_id, manager.producer_epoch)
        return txn_offset_commit(producer, self._group_id, self._sender.member, self._offsets)

    def handle_response(self, response: Any) -> float | None:
        answers = [(topic, [(p, code) for p, code, _ in partitions]) for topic, partitions, _ in response.topics]
        codes = {code for _, partitions in answers for _, code in partitions}
        for error in REFUSED_ERRORS:
            if error.errno in codes:
                # aiokafka's error_transaction would forget the partitions of the transaction and then send no abort, so
                # the next transaction would commit this one's records.
                _, _, pending = self._sender._txn_manager._pending_txn_offsets.popleft()
                pending.set_exception(error())
                return None
        back_off: float | None = super().handle_response(SimpleNamespace(errors=answers))
        return back_off


class Transactions:
    """The transactional producer of one replica, replaced after a lost transaction.

    connection: aiokafka's arguments. timeout_s: the broker aborts a transaction that is open for longer.
    """

    def __init__(
        self, connection: Mapping[str, Any], group: str, replica: str, incarnation: str, timeout_s: float
    ) -> None:
        self._connection, self._group = connection, group
        self._id = _transactional_id(group, replica, incarnation)
        self._timeout_ms = round(timeout_s * 1000)
        self._max_batch_bytes = DEFAULT_MAX_MESSAGE_BYTES
        self._producer: AIOKafkaProducer | None = None

    async def start(self) -> None:
        """Connect, and end an open transaction of the last producer with this id. May be repeated after an error."""
        producer = AIOKafkaProducer(
            **self._connection, transactional_id=self._id, transaction_timeout_ms=self._timeout_ms, linger_ms=0
        )
        producer._sender.__class__ = MemberSender
        _Client.adopt(producer.client)
        limit_batches(producer, self._max_batch_bytes)
        try:
            await producer.start()
            # Looked up now, when it delays nothing: the first transaction may be the last commit before a handover.
            await producer._sender._find_coordinator(CoordinationType.GROUP, self._group)
        except BaseException:
            await _stop_quietly(producer)
            raise
        self._producer = producer

    def limit_batches(self, max_bytes: int) -> None:
        """Limit batches to `max_bytes`."""
        self._max_batch_bytes = max_bytes
        if self._producer is not None:
            limit_batches(self._producer, max_bytes)

    async def stop(self) -> None:
        """Disconnect."""
        if self._producer is not None:
            await self._producer.stop()

    async def write(
        self, records: Sequence[Record], offsets: Mapping[TopicPartition, OffsetAndMetadata], member: MemberIdentity
    ) -> None:
        """Write records and offsets in one transaction. Raises KafkaError if nothing was written. A retry is possible.

        REFUSED_ERRORS: this replica is not in the current generation. TransactionLostError: it may no longer be in it.
        """
        if self._producer is not None and self._producer.client.has_unanswered:
            await self._discard_producer(self._producer)  # the next one has a new epoch, which fences such requests
        if self._producer is None:
            await self.start()
        assert self._producer is not None
        producer = self._producer
        producer._sender.member = member
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._write(producer, records, offsets)
        except TimeoutError as error:
            await self._discard_producer(producer)
            raise TransactionLostError(f"not ended within {self._timeout_ms / 1000:g} s") from error
        except errors.KafkaError as error:
            if await self._abort(producer) or isinstance(error, AUTHORIZATION_ERRORS):
                raise
            raise TransactionLostError(str(error) or type(error).__name__) from error

    async def _write(
        self, producer: AIOKafkaProducer, records: Sequence[Record], offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        await producer.begin_transaction()
        acknowledgements = [await producer.send(r.topic, value=r.value, key=r.key, headers=r.headers) for r in records]
        for acknowledgement in acknowledgements:
            acknowledgement.add_done_callback(_mark_retrieved)
        await producer.send_offsets_to_transaction(dict(offsets), self._group)
        for acknowledgement in acknowledgements:
            await acknowledgement
        await producer.commit_transaction()

    async def end_transaction(self, dead: Eviction) -> None:
        """End a transaction that a dead replica may have left open, before the broker's time-out."""
        if self._producer is None or not dead.incarnation:
            return
        name, client = _transactional_id(self._group, dead.replica, dead.incarnation), self._producer.client
        try:
            node = await client.coordinator_lookup(CoordinationType.TRANSACTION, name)
            await client.send(node, InitProducerIdRequest(name, self._timeout_ms))
        except errors.KafkaError as error:
            log.warning("Cannot end an open transaction of %s; it has to time out: %r", dead.replica, error)

    async def _abort(self, producer: AIOKafkaProducer) -> bool:
        _mark_retrieved(producer._txn_manager.wait_for_transaction_end())
        if not producer._txn_manager.is_fatal_error():
            with suppress(errors.KafkaError, TimeoutError):
                async with asyncio.timeout(self._timeout_ms / 1000):
                    await producer.abort_transaction()
                return True
        await self._discard_producer(producer)
        return False

    async def _discard_producer(self, producer: AIOKafkaProducer) -> None:
        self._producer = None
        await _stop_quietly(producer)


class AtomicCommitter(Committer):
    """Commits the outputs of events together with the offsets of these events."""

    def __init__(self, *where: Any, outbox: Outbox, transactions: Transactions) -> None:
        super().__init__(*where)
        self._outbox, self._transactions = outbox, transactions
        self._consecutive_losses = 0

    async def commit(self) -> bool:
        """Commit as Committer does. If the caller is cancelled, the transaction still runs to its end."""
        return await asyncio.shield(asyncio.ensure_future(super().commit()))

    async def _write(self, queues: Mapping[int, PartitionQueue], offsets: Mapping[int, int]) -> None:
        member = (self._generation, str(self._coordinator.member_id))
        owned = {p: (p, queues[p].generation) for p in offsets}
        self._outbox.retain([(p, queue.generation) for p, queue in self._queues.items()])
        records = [record for p, offset in offsets.items() for record in self._outbox.outputs_before(owned[p], offset)]
        try:
            await self._transactions.write(records, self._with_metadata(offsets), member)
        except REFUSED_ERRORS as error:
            if not isinstance(error, errors.RebalanceInProgressError):
                self._leave_group(member)
            raise
        except (errors.KafkaTimeoutError, *UNANSWERED_ERRORS) as error:
            raise errors.LeaderNotAvailableError from error  # retriable: nothing of it is committed
        except TransactionLostError as lost:
            self._consecutive_losses += 1
            if self._consecutive_losses >= MAX_CONSECUTIVE_LOSSES:
                raise
            log.warning("The transaction was lost (%s); rejoining the group", lost)
            self._leave_group(member)
            raise errors.CommitFailedError from lost
        self._consecutive_losses = 0
        self._outbox.discard_before({owned[p]: offset for p, offset in offsets.items()})

    def _leave_group(self, member: MemberIdentity) -> None:
        if self._may_commit() and member == (self._generation, self._coordinator.member_id):
            self._coordinator.reset_generation()


def _transactional_id(group: str, replica: str, incarnation: str) -> str:
    return f"{group}.{replica}.{incarnation}"  # differs for each process, so it never fences a running one


async def _stop_quietly(producer: AIOKafkaProducer) -> None:
    with suppress(Exception):
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await producer.stop()


def _mark_retrieved(done: "asyncio.Future[Any]") -> None:
    """Retrieve an error that is handled elsewhere, so that asyncio does not report it as never retrieved."""
    if done.done() and not done.cancelled():
        done.exception()
