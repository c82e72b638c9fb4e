"""Records a topic of any Kafka cluster. Read-only: it joins no group and commits no offset."""

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as At

from contracts.connection import Connection
from loadgen.event_writer import NO_KEY, EventWriter, Row
from loadgen.trace import key_hash

REQUEST_TIMEOUT_S: Final = 10.0
MAX_SILENCE_S: Final = 60.0
"""The recording fails if nothing arrives for this long although records are left."""
BATCH: Final = 10_000  # records
LEAST_MS: Final = 10**12
"""Time of 2001-09-09. A record with an earlier time was stamped in seconds, or by a clock that was never set."""
MAX_FUTURE_S: Final = 86_400.0
CLIENT: Final[dict[str, Any]] = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",  # if retention removed the next record
    "queued.max.messages.kbytes": 32_768,
    "log_level": 0,
}


class RecordingError(Exception):
    """The topic cannot be recorded. The message has the problem, its place and a remedy."""


class Recording:
    """A recording of a topic, from its beginning or a group's committed offsets up to its current ends.

    group: "": none. Raises RecordingError if the topic or the group does not exist, or the broker does not answer.
    """

    def __init__(self, connection: Connection, topic: str, group: str = "") -> None:
        self._address = connection.bootstrap_servers
        self._topic = topic
        self._errors: list[KafkaError] = []
        self._secret = secrets.token_bytes(16)  # never stored, so that no one can find keys by trying
        own = {"group.id": group or "tailpack-record", "error_cb": self._errors.append}
        self._client = connection.librdkafka() | own
        try:
            self._consumer = Consumer(CLIENT | self._client)
        except KafkaException as error:
            raise RecordingError(f"Kafka client for {self._address}: {error.args[0].str()}") from error
        try:
            self.partitions = self._count()
            ranges = {number: self._query(self._retained_range, number) for number in range(self.partitions)}
            self._ends = {number: end for number, (_, end) in ranges.items()}
            self._open = self._behind_open_transactions(self._ends)
            self._begins = self._committed(group) if group else dict.fromkeys(self._ends, OFFSET_BEGINNING)
        except RecordingError:
            self._consumer.close()
            raise
        self.expected_records = sum(max(0, end - max(begin, self._begins[n])) for n, (begin, end) in ranges.items())
        """Records up to the ends, an upper bound: a compacted topic has fewer."""
        self._untimed = 0
        self._first_untimed = ""
        self.missing: list[str] = []
        """After `run`: the records of the topic that are not in the file, and why; empty: the file has all of them."""

    def run(self, into: EventWriter, *, seconds: float | None, on_progress: Callable[[int], None]) -> None:
        """Write all records to `into`. seconds: also record new arrivals so long. on_progress: gets the row count.

        Raises RecordingError for a record without a timestamp or a lost broker; KeyboardInterrupt. Records read before
        that are in `into`. The connection is always closed.
        """
        try:
            self._read(into, seconds, on_progress)
            self._note_missing(grows=bool(seconds))
        except KeyboardInterrupt:
            self._note_missing(grows=True)
            raise
        finally:
            self._consumer.close()

    def _note_missing(self, *, grows: bool) -> None:
        """Fill `missing`. Without an answer of the broker the last known state counts."""
        if self._untimed:
            when = f"before 2001 or more than a day ahead, first {self._first_untimed}"
            self.missing.append(f"left out {self._untimed:,} records with an impossible time ({when})")
        try:
            partitions = self._count()
            ends = {number: self._retained_range(number)[1] for number in self._ends} if grows else {}
            blocked = self._behind_open_transactions(ends) if grows else self._open
        except (RecordingError, KafkaException):
            partitions, blocked = self.partitions, self._open
        if partitions > self.partitions:
            new = f"{self.partitions} to {partitions - 1}"
            self.missing.append(f"the topic has grown: partitions {new} are not in the file; record it again")
        if blocked:
            names, records = ", ".join(map(str, blocked)), sum(blocked.values())
            text = f"up to {records:,} records behind an open transaction are not in the file (partitions {names})"
            self.missing.append(f"{text}; record again when it has ended")

    def _behind_open_transactions(self, stable: Mapping[int, int]) -> dict[int, int]:
        """Return partition → offsets from the last stable one up to the end, where a transaction is open."""
        every = Consumer(CLIENT | self._client | {"isolation.level": "read_uncommitted"})
        try:
            ends = {
                number: self._query(every.get_watermark_offsets, At(self._topic, number), REQUEST_TIMEOUT_S)[1]
                for number in stable
            }
        finally:
            every.close()
        return {number: end - stable[number] for number, end in ends.items() if end > stable[number]}

    def _read(self, into: EventWriter, seconds: float | None, on_progress: Callable[[int], None]) -> None:
        began = progress_at = time.monotonic()
        unfinished = set(self._ends)
        self._consumer.assign([At(self._topic, number, begin) for number, begin in self._begins.items()])
        while unfinished:
            rows: list[Row] = []
            for message in self._consumer.consume(BATCH, 0.2):
                partition, error = message.partition(), message.error()
                if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    continue  # librdkafka looks for a group although none is needed
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise RecordingError(f"topic {self._topic} at {self._address}: {error.str()}")
                if error is None and (seconds or message.offset() < self._ends[partition]):
                    rows += self._rows(message)
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
                raise RecordingError(f"Kafka at {self._address}: no record for {MAX_SILENCE_S:.0f} s{self._why()}")

    def _rows(self, message: Message) -> list[Row]:
        """Return the row of a record; none, counted, if its time is impossible."""
        kind, at_ms = message.timestamp()
        if kind == TIMESTAMP_NOT_AVAILABLE or at_ms < 0:
            raise RecordingError(
                f"topic {self._topic}, partition {message.partition()}, offset {message.offset()}: the record has no "
                "timestamp; set message.timestamp.type=LogAppendTime and record later arrivals (--group, --seconds)"
            )
        if not LEAST_MS <= at_ms <= (time.time() + MAX_FUTURE_S) * 1000:
            self._untimed += 1
            self._first_untimed = self._first_untimed or f"partition {message.partition()} offset {message.offset()}"
            return []
        key = message.key()
        size = len(message) + (0 if key is None else len(key))
        hashed = NO_KEY if key is None else key_hash(bytes(key, "utf-8") if isinstance(key, str) else key, self._secret)
        return [(at_ms, hashed, message.partition(), size)]

    def _count(self) -> int:
        metadata = self._query(self._consumer.list_topics, self._topic, REQUEST_TIMEOUT_S).topics[self._topic]
        if metadata.error is not None:
            problem = f"topic {self._topic} at {self._address}: {metadata.error.str()}"
            raise RecordingError(f"{problem}; name one that exists")
        return len(metadata.partitions)

    def _retained_range(self, partition: int) -> tuple[int, int]:
        begin, end = self._consumer.get_watermark_offsets(At(self._topic, partition), timeout=REQUEST_TIMEOUT_S)
        return begin, end

    def _committed(self, group: str) -> dict[int, int]:
        places = [At(self._topic, number) for number in self._ends]
        committed = self._query(self._consumer.committed, places, REQUEST_TIMEOUT_S)
        offsets = {at.partition: at.offset if at.offset >= 0 else OFFSET_BEGINNING for at in committed}
        if all(offset < 0 for offset in offsets.values()):
            problem = f"group {group} at {self._address} has no committed offset of topic {self._topic}"
            raise RecordingError(f"{problem}: name a group that reads it")
        return offsets

    def _query(self, request: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return request(*arguments)
        except KafkaException as error:
            problem = f"Kafka at {self._address} does not answer ({error.args[0].str()})"
            raise RecordingError(f"{problem}{self._why()}") from error

    def _why(self) -> str:
        self._consumer.poll(0)  # runs error_cb
        reasons = [error.str() for error in self._errors if error.code() != KafkaError._ALL_BROKERS_DOWN]
        reason = f": {reasons[-1]}" if reasons else ""
        return f"{reason}; start it, or correct --bootstrap-servers and --client-properties"
