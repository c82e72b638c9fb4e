"""Records a topic of any Kafka cluster. Read-only: it joins no group and commits no offset."""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from aiokafka.errors import OffsetOutOfRangeError
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as At

from contracts.connection import Connection
from contracts.record_reader import RecordReader
from contracts.unpacking import Unreadable
from loadgen.event_writer import NO_KEY, EventWriter, Row
from loadgen.trace import key_hash

REQUEST_TIMEOUT_S: Final = 10.0
MAX_SILENCE_S: Final = 60.0
"""The recording fails if no record arrives for this time although some are left."""
COUNT_EVERY_S: Final = 2.0
"""Interval at which a recording of new events looks for new partitions."""
EARLIEST_MS: Final = 946_684_800_000
"""Start of the year 2000, ms since the epoch. An earlier time of a record is an error, such as seconds for ms."""
MAX_AHEAD_MS: Final = 86_400_000
"""Largest lead of a producer's clock, ms. A later time of a record is an error, such as µs for ms."""
BATCH: Final = 10_000  # records
MAX_BATCH_MB: Final = 64
"""Largest unpacked batch that is recorded."""
CLIENT: Final[dict[str, Any]] = {"enable.auto.commit": False, "log_level": 0}
READING: Final[dict[str, Any]] = {
    "isolation_level": "read_committed",
    "auto_offset_reset": "none",
}  # none: report what was removed


class RecordingError(Exception):
    """The topic cannot be recorded. The message has the problem, its place and a remedy."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Records of the topic that are missing from a recording for the same reason."""

    reason: str
    """open-transaction, time, removed, unread or unreadable."""
    partitions: list[int]
    records: int
    """Upper bound of the number of missing records, because some offsets belong to no record."""
    message: str
    """One sentence: what is left out, where, and what to do."""


class Recording:
    """A recording of a topic, from its beginning or a group's committed offsets up to its current ends.

    group: empty for none. Raises RecordingError if topic or group does not exist, or the broker does not answer.
    """

    def __init__(self, connection: Connection, topic: str, group: str = "") -> None:
        self._connection, self._address, self._topic = connection, connection.bootstrap_servers, topic
        self._errors: list[KafkaError] = []
        self._secret = secrets.token_bytes(16)  # never stored, so that keys cannot be found by trying
        own = {"group.id": group or "tailpack-record", "error_cb": self._errors.append}
        try:
            self._consumer = Consumer(CLIENT | connection.librdkafka() | own)
            self._all = Consumer(CLIENT | connection.librdkafka() | own | {"isolation.level": "read_uncommitted"})
        except KafkaException as error:
            raise RecordingError(f"cannot create a Kafka client for {self._address}: {error.args[0].str()}") from error
        self._unstable: Mapping[int, int] = {}
        """Partition → number of offsets from the start of its first open transaction."""
        self._removed, self._untimed, self._unreadable = Counter[int](), Counter[int](), Counter[int]()
        """Partition → records that retention removed before they were read, with an impossible time, unreadable."""
        self._first_untimed = ""
        try:
            self.partitions = self._count()
            ranges = self._ranges()
            self._ends = {number: end for number, (_, end) in ranges.items()}
            self._reached = {number: begin for number, (begin, _) in ranges.items()}
            """Partition → offset before which everything was read."""
            self._reached |= self._committed(group) if group else {}
        except RecordingError:
            self._close()
            raise
        self.expected_records = sum(max(0, end - max(begin, self._reached[n])) for n, (begin, end) in ranges.items())
        """Upper bound of the records up to the ends. A compacted topic has fewer."""

    def run(self, into: EventWriter, *, seconds: float | None, on_progress: Callable[[int], None]) -> None:
        """Write all records to `into`. seconds: record for this time, also new records; None: up to the current ends.

        on_progress: gets the number of rows. Raises RecordingError if a broker is lost. After this error, and after a
        KeyboardInterrupt, `into` has the records read so far. The connection is always closed.
        """
        begins = {(self._topic, number): begin for number, begin in self._reached.items()}
        self._records = RecordReader(self._connection, begins, max_batch_mb=MAX_BATCH_MB, **READING)
        try:
            self._read(into, seconds, on_progress)
            with suppress(RecordingError):  # without an answer the last known state counts
                if seconds:
                    self._ranges()
                self._add_partitions()
        finally:
            self._records.close()
            self._close()

    def missing(self) -> list[Missing]:
        """Return the records that are missing from the recording, by reason."""
        remedies = {
            "open-transaction": (self._unstable, "follow the start of an open transaction; end it and record again"),
            "time": (self._untimed, f"have an impossible time, first {self._first_untimed}; correct the producer"),
            "removed": (self._removed, "were deleted by retention before they were read"),
            "unreadable": (self._unreadable, f"are in damaged batches, or in batches of more than {MAX_BATCH_MB} MB"),
            "unread": ({n: self._ends[n] - at for n, at in self._reached.items()}, "were not read; record for longer"),
        }
        found = []
        for reason, (records, why) in remedies.items():
            numbers = sorted(number for number, count in records.items() if count > 0)
            if numbers:
                count, places = sum(records[number] for number in numbers), ", ".join(map(str, numbers))
                message = f"not in the file (at most {count:,} records, partitions {places}): they {why}"
                found.append(Missing(reason, numbers, count, message))
        return found

    def _read(self, into: EventWriter, seconds: float | None, on_progress: Callable[[int], None]) -> None:
        began = progress_at = counted_at = time.monotonic()
        unfinished = set(self._ends)
        while unfinished:
            try:
                found = self._records.read(BATCH, 0.2)
            except OffsetOutOfRangeError as removed:
                self._skip_removed(place.partition for place in removed.args[0])
                continue
            new = (one for one in found if seconds or one.offset < self._ends[one.partition])
            rows = [self._row(one) for one in new if self._is_usable(one)]
            self._reached |= {number: offset for (_, number), (offset, _) in self._records.positions().items()}
            for partition in [] if seconds else [one for one in unfinished if self._reached[one] >= self._ends[one]]:
                unfinished.remove(partition)
                self._records.pause((self._topic, partition))
            into.add(rows)
            now = time.monotonic()
            if self._records.error or (not rows and not seconds and now >= progress_at + MAX_SILENCE_S):
                reason = self._records.error or f"no record for {MAX_SILENCE_S:.0f} s{self._why()}"
                raise RecordingError(f"topic {self._topic} at {self._address}: {reason}")
            if rows:
                progress_at = now
                on_progress(into.rows)
            if seconds and now >= began + seconds:
                return
            if seconds and now >= counted_at + COUNT_EVERY_S:
                counted_at = now
                self._add_partitions()

    def _add_partitions(self) -> None:
        """Record partitions that the topic has gained, from their beginning."""
        before, self.partitions = self.partitions, self._count()
        if added := range(before, self.partitions):
            self._ends |= {number: end for number, (_, end) in self._ranges().items() if number in added}
            self._reached |= dict.fromkeys(added, 0)
            self._records.seek({(self._topic, number): 0 for number in added})

    def _skip_removed(self, partitions: Iterable[int]) -> None:
        """Go on at the first retained records."""
        for partition in partitions:
            begin, _ = self._query(self._retained_range, self._consumer, partition)
            self._removed[partition] += begin - self._reached[partition]
            self._records.seek({(self._topic, partition): begin})

    def _is_usable(self, record: Any) -> bool:
        """Return whether a record could be read and its time is possible. If not, count what is missing."""
        if isinstance(record.value, Unreadable):
            self._unreadable[record.partition] += record.value.offsets
            return False
        if EARLIEST_MS <= record.timestamp <= time.time() * 1000 + MAX_AHEAD_MS:
            return True
        self._untimed[record.partition] += 1
        place = f"topic {self._topic}, partition {record.partition}, offset {record.offset}"
        self._first_untimed = self._first_untimed or f"{place}: {record.timestamp} ms since 1970"
        return False

    def _row(self, record: Any) -> Row:
        size = len(record.value or b"") + len(record.key or b"")
        hashed = NO_KEY if record.key is None else key_hash(record.key, self._secret)
        return record.timestamp, hashed, record.partition, size

    def _count(self) -> int:
        metadata = self._query(self._consumer.list_topics, self._topic, REQUEST_TIMEOUT_S).topics[self._topic]
        if metadata.error is not None:
            raise RecordingError(
                f"topic {self._topic} at {self._address}: {metadata.error.str()}; name an existing one"
            )
        return len(metadata.partitions)

    def _ranges(self) -> dict[int, tuple[int, int]]:
        """Return partition → the first retained offset and the last stable offset. Note what follows the latter."""
        numbers = range(self.partitions)
        self._query(self._all.list_topics, self._topic, REQUEST_TIMEOUT_S)  # it knows new partitions then
        ends = {number: self._query(self._retained_range, self._all, number)[1] for number in numbers}
        ranges = {number: self._query(self._retained_range, self._consumer, number) for number in numbers}
        self._unstable = {number: ends[number] - ranges[number][1] for number in numbers}
        return ranges

    def _retained_range(self, consumer: Consumer, partition: int) -> tuple[int, int]:
        """Return the first retained offset and the end offset for the isolation level of `consumer`."""
        begin, end = consumer.get_watermark_offsets(At(self._topic, partition), timeout=REQUEST_TIMEOUT_S)
        return begin, end

    def _close(self) -> None:
        for consumer in (self._consumer, self._all):
            consumer.close()

    def _committed(self, group: str) -> dict[int, int]:
        places = [At(self._topic, number) for number in self._ends]
        committed = self._query(self._consumer.committed, places, REQUEST_TIMEOUT_S)
        offsets = {at.partition: at.offset for at in committed if at.offset >= 0}
        if not offsets:
            problem = f"group {group} at {self._address} has no committed offset of topic {self._topic}"
            raise RecordingError(f"{problem}: name a group that reads it")
        return offsets

    def _query(self, request: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return request(*arguments)
        except KafkaException as error:
            why = f"does not answer ({error.args[0].str()}){self._why()}"
            raise RecordingError(f"Kafka at {self._address} {why}") from error

    def _why(self) -> str:
        self._consumer.poll(0)  # runs error_cb
        reasons = [error.str() for error in self._errors if error.code() != KafkaError._ALL_BROKERS_DOWN]
        reason = f": {reasons[-1]}" if reasons else ""
        return f"{reason}; start it, or correct --bootstrap-servers and --client-properties"
