"""Reads any topic of any Kafka, and changes nothing there: no group is joined, no offset committed."""

import secrets
import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as At

from contracts.connection import Connection
from loadgen.event_writer import NO_KEY, EventWriter, Row
from loadgen.trace import key_hash

REQUEST_TIMEOUT_S: Final = 10.0
MAX_SILENCE_S: Final = 60.0
"""Without anything read, while something is there to be read."""
BATCH: Final = 10_000
CLIENT: Final[dict[str, Any]] = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",  # where retention removes what was to be read next
    "queued.max.messages.kbytes": 32_768,
    "log_level": 0,
}


class RecordingError(Exception):
    """The topic cannot be recorded; the text says what is wrong, where and what to do."""


class Recording:
    """A topic from its beginning, or from where a group has committed, up to the ends that it has now.

    group: "" is none. Raises RecordingError for a topic or a group that is not there, or no answer.
    """

    def __init__(self, connection: Connection, topic: str, group: str = "") -> None:
        self._address = connection.bootstrap_servers
        self._topic = topic
        self._errors: list[KafkaError] = []
        self._secret = secrets.token_bytes(16)  # forgotten afterwards, so that nobody can find keys by trying
        told = {"group.id": group or "tailpack-record", "error_cb": self._errors.append}
        try:
            self._consumer = Consumer(CLIENT | connection.librdkafka() | told)
        except KafkaException as error:
            raise RecordingError(f"Kafka client for {self._address}: {error.args[0].str()}") from error
        try:
            self.partitions = self._count()
            kept = {one: self._query(self._retained_range, one) for one in range(self.partitions)}
            self._ends = {one: end for one, (_, end) in kept.items()}
            self._begins = self._committed(group) if group else dict.fromkeys(self._ends, OFFSET_BEGINNING)
        except RecordingError:
            self._consumer.close()
            raise
        self.expected_records = sum(max(0, end - max(begin, self._begins[one])) for one, (begin, end) in kept.items())
        """Records up to the ends: fewer where a topic is compacted."""

    def run(self, into: EventWriter, *, seconds: float | None, on_progress: Callable[[int], None]) -> None:
        """Write all records to `into`. seconds: go on with new arrivals that long. on_progress: gets the row count.

        Raises RecordingError for records without a time, and where the broker goes away; KeyboardInterrupt. What was
        read before has been handed over. The connection is closed in any case.
        """
        try:
            self._read(into, seconds, on_progress)
        finally:
            self._consumer.close()

    def _read(self, into: EventWriter, seconds: float | None, on_progress: Callable[[int], None]) -> None:
        began = progress_at = time.monotonic()
        unfinished = set(self._ends)
        self._consumer.assign([At(self._topic, one, begin) for one, begin in self._begins.items()])
        while unfinished:
            rows: list[Row] = []
            for message in self._consumer.consume(BATCH, 0.2):
                partition, error = message.partition(), message.error()
                if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    continue  # no group is needed; librdkafka looks for one all the same
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise RecordingError(f"topic {self._topic} at {self._address}: {error.str()}")
                if error is None and (seconds or message.offset() < self._ends[partition]):
                    rows.append(self._row(message))
                at_end = error is not None or message.offset() >= self._ends[partition] - 1
                if at_end and not seconds and partition in unfinished:
                    unfinished.remove(partition)
                    self._consumer.pause([At(self._topic, partition)])
            into.add(rows)
            now = time.monotonic()
            if rows:
                progress_at = now
                on_progress(into.rows)
            if seconds and now >= began + seconds:
                return
            if not seconds and now >= progress_at + MAX_SILENCE_S:
                raise RecordingError(f"Kafka at {self._address}: nothing came for {MAX_SILENCE_S:.0f} s{self._why()}")

    def _row(self, message: Message) -> Row:
        kind, at_ms = message.timestamp()
        if kind == TIMESTAMP_NOT_AVAILABLE or at_ms < 0:
            raise RecordingError(
                f"topic {self._topic}, partition {message.partition()}, offset {message.offset()}: the record has no "
                "timestamp; set message.timestamp.type=LogAppendTime and record what comes from then on (--group, "
                "--seconds)"
            )
        key = message.key()
        size = len(message) + (0 if key is None else len(key))
        hashed = NO_KEY if key is None else key_hash(bytes(key, "utf-8") if isinstance(key, str) else key, self._secret)
        return at_ms, hashed, message.partition(), size

    def _count(self) -> int:
        found = self._query(lambda: self._consumer.list_topics(self._topic, timeout=REQUEST_TIMEOUT_S)).topics[
            self._topic
        ]
        if found.error is not None:
            raise RecordingError(f"topic {self._topic} at {self._address}: {found.error.str()}; name one that exists")
        return len(found.partitions)

    def _retained_range(self, partition: int) -> tuple[int, int]:
        """Return the first offset that is kept, and the end."""
        begin, end = self._consumer.get_watermark_offsets(At(self._topic, partition), timeout=REQUEST_TIMEOUT_S)
        return begin, end

    def _committed(self, group: str) -> dict[int, int]:
        asked = [At(self._topic, one) for one in self._ends]
        found = self._query(lambda: self._consumer.committed(asked, timeout=REQUEST_TIMEOUT_S))
        offsets = {one.partition: one.offset if one.offset >= 0 else OFFSET_BEGINNING for one in found}
        if all(offset < 0 for offset in offsets.values()):
            raise RecordingError(
                f"group {group} at {self._address} has committed nothing of topic {self._topic}: name one that reads it"
            )
        return offsets

    def _query(self, question: Callable[..., Any], *about: Any) -> Any:
        """Return the broker's answer. Raises RecordingError where there is none."""
        try:
            return question(*about)
        except KafkaException as error:
            told = error.args[0].str()
            raise RecordingError(f"Kafka at {self._address} does not answer ({told}){self._why()}") from error

    def _why(self) -> str:
        """Return the client's reason, where it gives one, and what to do."""
        self._consumer.poll(0)  # errors are told in here
        telling = [error.str() for error in self._errors if error.code() != KafkaError._ALL_BROKERS_DOWN]
        reason = f": {telling[-1]}" if telling else ""
        return f"{reason}; start it, or correct --bootstrap-servers and --client-properties"
