"""Read the topics of a run into events.parquet and journal.parquet. Spark reads the events of large runs."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from contracts.connection import Connection
from contracts.events import INTENDED_AT_HEADER, PLACED_AT_HEADER
from contracts.plan import plan_key
from contracts.preflight import client_config
from contracts.record_reader import BEGINNING, RecordReader
from contracts.topics import PAYMENT_GROUP, Topic, qualified
from report import ReportError, stored
from report.figures import report_stored
from report.records import JoinedEvents, Record, fields_of, journal_table
from report.result import Result
from report.run_info import EVENTS, JOURNAL, load_run

MAX_RECORDS: Final = 1_000_000
"""Most records of events that one process reads; Spark distributes more."""
ANSWER_TIMEOUT_S: Final = 10.0
QUERYING: Final = {"group.id": "tailpack-report", "error_cb": lambda _: None}  # the exception has the message
EventWriter = Callable[[Path, Mapping[str, int]], set[int]]
"""(folder, location of a refused record → its dead letters) → unsupported versions. Writes events as Parquet."""


class RunReader:
    """Reads the committed records of a run."""

    def __init__(self, folder: Path) -> None:
        """Find the topics. Raises ReportError if the broker does not answer, or the input topic is missing."""
        self.folder, run = folder, load_run(folder)
        self._address = run.bootstrap_servers
        self._connection = Connection(bootstrap_servers=self._address, client_properties=run.client_properties)
        self._consumer = Consumer(client_config(self._connection) | QUERYING)
        with self._answered():
            self._listed = self._consumer.list_topics(timeout=ANSWER_TIMEOUT_S).topics
        short = [Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED]
        names = {qualified(run.run, one): one for one in (stored.COLUMN_OF if run.topology == "pipeline" else short)}
        if (first := next(iter(names))) not in self._listed:
            raise ReportError(f"{first}: no such topic at {run.bootstrap_servers}; check that the run used this broker")
        self.events = {name: topic for name, topic in names.items() if name in self._listed}
        """Name on the broker → topic."""
        also = (qualified(run.run, one) for one in (Topic.DEAD_LETTERS, Topic.JOURNAL))
        self.letters, self.journal = ([name] if name in self._listed else [] for name in also)
        self.journal_keys = {None, plan_key(PAYMENT_GROUP.group_in(run.run), PAYMENT_GROUP.topic_in(run.run))}

    def count(self) -> int:
        """Return an upper bound of the number of records of events."""
        with self._answered():
            parts = (TopicPartition(*part) for part in self.partitions(self.events))
            ends = [self._consumer.get_watermark_offsets(part, ANSWER_TIMEOUT_S) for part in parts]
        return sum(high - low for low, high in ends)

    def partitions(self, topics: Iterable[str]) -> list[tuple[str, int]]:
        """Return the partitions of `topics`."""
        return [(topic, number) for topic in topics for number in self._listed[topic].partitions]

    def records(self, partitions: Iterable[tuple[str, int]]) -> Iterator[Record]:
        """Yield the records of partitions. Raises ReportError if the broker does not answer for ANSWER_TIMEOUT_S."""
        begins = dict.fromkeys(partitions, BEGINNING)
        with closing(RecordReader(self._connection, begins, isolation_level="read_committed")) as reader:
            try:
                yield from map(_record, reader.to_end(ANSWER_TIMEOUT_S))
            except TimeoutError as silent:
                raise self._away(str(silent)) from silent

    def write_events(self, place: Path, refused: Mapping[str, int]) -> set[int]:
        """Read the events in this process. Implements EventWriter."""
        joined = JoinedEvents(self.events, refused)
        for record in self.records(self.partitions(self.events)):
            joined.add(record)
        return joined.write(place / "part-0.parquet")

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as away:
            raise self._away(away.args[0].str()) from away

    def _away(self, reason: str) -> ReportError:
        events, remedy = self.folder / EVENTS, "start it, or use a run folder with events.parquet"
        incomplete = f"; {events} is incomplete: it has no {stored.SUCCESS_FILE}" if events.exists() else ""
        return ReportError(f"Kafka at {self._address} does not answer ({reason}): {remedy}{incomplete}")


def _record(found: Any) -> Record:
    headers = dict(reversed(found.headers))  # the first of equal names counts
    times = found.timestamp * 1000, headers.get(INTENDED_AT_HEADER), headers.get(PLACED_AT_HEADER)
    return Record(found.topic, found.partition, found.offset, found.key, found.value, *times)


def report_here(folder: Path) -> Result | None:
    """Report on the run without Spark; None: it is too large. Raises ReportError."""
    if not stored.is_complete(folder / EVENTS):
        reader = RunReader(folder)
        if reader.count() > MAX_RECORDS:
            return None
        gather(reader, folder, reader.write_events)
    return report_stored(folder) if stored.count(folder / EVENTS) <= stored.MAX_EVENTS_IN_MEMORY else None


def gather(reader: RunReader, folder: Path, write_events: EventWriter) -> None:
    """Read the topics once and write events.parquet and journal.parquet atomically.

    Raises ReportError if no event was produced, a schema version is not supported, or the files cannot be written.
    """
    from pyarrow import parquet  # noqa: PLC0415  needs the bench extra

    refused = Counter[str]()
    for record in reader.records(reader.partitions(reader.letters)):
        letter = fields_of(record.value)
        refused["/".join(str(letter.get(name)) for name in ("topic", "partition", "offset"))] += 1
    topics = ", ".join(reader.events)
    try:
        with TemporaryDirectory(prefix="topics-", dir=folder) as temporary:
            places = {name: Path(temporary, name) for name in [JOURNAL] * bool(reader.journal) + [EVENTS]}
            for place in places.values():
                place.mkdir()
            if reader.journal:
                entries = reader.records(reader.partitions(reader.journal))
                entries = (entry for entry in entries if entry.key in reader.journal_keys)  # earlier: no key
                parquet.write_table(journal_table(entries), places[JOURNAL] / "part-0.parquet")
            if versions := write_events(places[EVENTS], refused):
                raise ReportError(f"{topics}: {stored.version_error(versions)}")
            if not stored.count(places[EVENTS]):
                raise ReportError(f"{topics}: no event was produced, so there is nothing to report")
            for name, place in places.items():  # the journal first: events never exist without it
                (place / stored.SUCCESS_FILE).touch()
                shutil.rmtree(folder / name, ignore_errors=True)
                place.rename(folder / name)
    except OSError as refusal:
        raise ReportError(f"{refusal.filename}: cannot be written ({refusal.strerror or refusal})") from refusal
