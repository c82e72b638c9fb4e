"""The plan topic, written by one controller at a time.

The producer is transactional and its id names the group, so Kafka rejects writes of a replaced autoscaler. This only
fences writes: it elects no leader.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from contracts.connection import Connection
from contracts.fields import MAX_EPOCH, MAX_REASON_CHARS
from contracts.plan import Eviction, PlanRecord, decode_plan, plan_key
from contracts.preflight import client_config
from contracts.record_reader import BEGINNING, RecordReader
from contracts.topics import PAYMENT_GROUP, ScaledGroup, Topic, qualified
from contracts.validation import DECODE_ERRORS
from contracts.waiting import WaitTimeoutError, until

TRANSACTION_TIMEOUT_S: Final = 5.0
"""Short, because an open transaction hides all later records from read_committed readers. The default is a minute."""
LARGEST_PLAN_BYTES: Final = 10_000_000
"""Largest plan before compression. A plan of 400,000 partitions compresses to the brokers' limit of 1 MB."""
MAX_RECORDS: Final = 1000


class FencedError(Exception):
    """Another autoscaler has taken over the plan topic. This process must exit.

    Brokers that do not answer within the transaction timeout cause the same error. The replicas keep running.
    """


class PlanNotWrittenError(Exception):
    """The brokers did not accept the plan. The caller may write it again."""


@dataclass(slots=True)
class _Unfinished:
    """An open transaction and its only record."""

    record: PlanRecord
    stored: bool = False
    committing: bool = False
    """A commit was requested. Only repeating it shows the outcome. False after a failed commit. Then an abort was
    requested, and only the abort may be repeated."""

    def delivered(self, error: KafkaError | None, _message: object) -> None:
        self.stored = error is None


class PlanLog:
    """The plan in force, and the only way to replace it."""

    def __init__(
        self,
        connection: Connection,
        scaled: ScaledGroup = PAYMENT_GROUP,
        *,
        deadline_s: float = 15.0,
        write_deadline_s: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Fence every earlier writer, then read the topic to its end. Raises PlanNotWrittenError or FencedError.

        deadline_s: time limit of each step of the start. A broker that has just started needs several seconds.
        write_deadline_s: time limit of a write, which blocks the control loop.
        """
        self._topic = qualified(connection.namespace, Topic.PLANS)
        self._group, self._events = scaled.group_in(connection.namespace), scaled.topic_in(connection.namespace)
        self._deadline_s, self._clock = write_deadline_s, clock
        self._unfinished: _Unfinished | None = None
        self._producer = Producer(
            client_config(
                connection,
                transactional_id=f"{self._group}-autoscaler",
                transaction_timeout_ms=int(TRANSACTION_TIMEOUT_S * 1000),
                message_timeout_ms=int(TRANSACTION_TIMEOUT_S * 1000),
                linger_ms=0,
                retry_backoff_ms=10,
                compression_type="gzip",
                message_max_bytes=LARGEST_PLAN_BYTES,
            )
        )
        self._call(lambda: self._producer.init_transactions(deadline_s), "take over the plan topic")
        plans = read_plans(connection, scaled, deadline_s)
        self.newest = plans.newest
        """The plan in force; None: no plan yet."""
        self.epoch = plans.highest_epoch  # of the group's last plan, even if that was not acknowledged
        self.unusable = plans.unusable  # why a plan found at the start is not in force, until the next is written

    def stay_above(self, epoch: int) -> None:
        """Make later epochs higher than `epoch`. Replicas may have higher epochs if the plan topic was re-created."""
        self.epoch = max(self.epoch, epoch)

    def write(
        self,
        replicas: tuple[str, ...],
        assignment: Mapping[int, str] | None,
        reason: str,
        evictions: tuple[Eviction, ...] = (),
        grace_s: float = 0.0,
        *,
        wanted: int = 0,
    ) -> PlanRecord:
        """Commit the next plan and return it.

        Raises FencedError. Raises PlanNotWrittenError if it is not certain that the plan is in force: then call again.
        """
        if self._unfinished is not None:
            self._settle(self._unfinished)
        if self.epoch >= MAX_EPOCH:
            raise PlanNotWrittenError(f"no epoch is left above {self.epoch}; delete and create {self._topic}")
        self.epoch += 1  # even if the write fails: an epoch is never used for two plans
        record = PlanRecord(
            epoch=self.epoch,
            at_us=int(self._clock() * 1e6),
            replicas=replicas,
            assignment=None if assignment is None else dict(assignment),
            reason=reason[:MAX_REASON_CHARS],
            evictions=evictions,
            grace_s=grace_s,
            wanted=wanted,
            group=self._group,
            topic=self._events,
        )
        action = f"write plan {record.epoch}"
        self._call(self._producer.begin_transaction, action)
        self._unfinished = transaction = _Unfinished(record)
        key, value = plan_key(record.group, record.topic), msgspec.json.encode(record)
        produce = partial(self._producer.produce, self._topic, value, key=key, partition=0)
        self._call(lambda: produce(on_delivery=transaction.delivered), action)
        self._commit(transaction, action)
        return record

    def _commit(self, transaction: _Unfinished, action: str) -> None:
        """Commit. The plan counts as written only if its record was acknowledged, because an empty commit succeeds."""
        transaction.committing = True
        self._call(lambda: self._producer.commit_transaction(self._deadline_s), action)
        self._unfinished = None
        if not transaction.stored:
            raise PlanNotWrittenError(f"cannot {action}: no broker has acknowledged it")
        self.newest, self.unusable = transaction.record, ""

    def _settle(self, transaction: _Unfinished) -> None:
        """End a transaction that an earlier write left open. A commit that timed out may only be repeated."""
        action = f"finish the write of plan {transaction.record.epoch}"
        if transaction.committing:
            try:
                self._commit(transaction, action)
            except PlanNotWrittenError as failed:
                cause = failed.__cause__
                if not (isinstance(cause, KafkaException) and cause.args[0].txn_requires_abort()):
                    raise
                transaction.committing = False
            else:
                return
        self._call(lambda: self._producer.abort_transaction(self._deadline_s), action)
        self._unfinished = None

    def _call(self, step: Callable[[], None], action: str) -> None:
        try:
            step()
        except BufferError as overflow:
            raise PlanNotWrittenError(f"cannot {action}: the client's queue is full") from overflow
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            if error.fatal() or error.code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
                expired = ", or our transaction has timed out" if self._unfinished else ""
                raise FencedError(f"cannot {action}: another autoscaler writes {self._topic} now{expired}") from failed
            raise PlanNotWrittenError(f"cannot {action}: {error.str()}") from failed


class PlanReader:
    """Reads a group's plans from the beginning of their topic. `newest` stays while Kafka is unreachable.

    wait_ms: how long a broker may wait for more records before it answers.
    """

    def __init__(self, connection: Connection, scaled: ScaledGroup, *, wait_ms: int) -> None:
        self._group, self._topic = scaled.group_in(connection.namespace), scaled.topic_in(connection.namespace)
        self.place = qualified(connection.namespace, Topic.PLANS), 0
        begins = {self.place: BEGINNING}
        self.records = RecordReader(connection, begins, wait_ms=wait_ms, isolation_level="read_committed")
        self.newest: PlanRecord | None = None
        """The group's plan with the highest epoch; None: it is for another topic, or there is none."""
        self.highest_epoch = 0
        self.unusable = ""
        """Why the newest record is not a plan for this group and topic. Empty: it is one."""
        self.complete = False
        """The end of the topic was reached. Its last offset is a commit marker, which consumers never receive."""

    def read_on(self) -> bool:
        """Process the records that arrive within 0.1 s. Return whether the topic was read to its end."""
        for record in self.records.read(MAX_RECORDS, 0.1):
            self._take(record)
        self.complete = self.complete or self.records.is_at_end()
        return self.complete

    def _take(self, record: Any) -> None:
        try:
            plan = decode_plan(record.value, record.key, self._group)
        except DECODE_ERRORS as error:
            self.unusable = f"skipped an invalid plan at offset {record.offset} of {record.topic}: {error}"
            return
        if plan is None and not self.highest_epoch:
            self.unusable = f"{record.topic} has no plan of group {self._group} yet"
        elif plan is not None and plan.epoch > self.highest_epoch:
            is_usable, self.highest_epoch = plan.is_for(self._topic), plan.epoch
            self.newest = plan if is_usable else None
            self.unusable = "" if is_usable else f"plan {plan.epoch} is for topic {plan.topic}, not {self._topic}"


def read_plans(connection: Connection, scaled: ScaledGroup, deadline_s: float) -> PlanReader:
    """Return the group's plans. Raises PlanNotWrittenError if the end of their topic is not reached in time."""
    plans = PlanReader(connection, scaled, wait_ms=20)
    try:
        until(plans.read_on, deadline_s, "the end of the plans", poll_s=0)
    except WaitTimeoutError as late:
        raise PlanNotWrittenError(f"cannot read {plans.place[0]} to its end within {deadline_s:.0f} s") from late
    finally:
        plans.records.close()
    return plans
