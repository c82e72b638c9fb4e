"""The streaming query: Kafka and the mark of the end → windows → one file per micro-batch that closed any."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from report.spark.records import typed_records
from report.spark.source import ANSWER_WITHIN_S
from report.spark.streaming.question import Question
from report.spark.streaming.transforms import NOBODY, TOLD, believable, of_our_version, sla_windows
from report.spark.streaming.windows import SlaWindow, load_windows, save_windows

WINDOWS: Final = "windows"
MARKS: Final = "marks"
CHECKPOINT: Final = "checkpoint"
READ_WITHIN_S: Final = 30.0
"""A task that gets no record for so long fails; Spark's own limit is two minutes."""
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

Announce = Callable[[Sequence[SlaWindow]], None]


@dataclass(frozen=True, slots=True)
class WindowStream:
    """A question asked of a broker, answered into a folder that a later start continues."""

    spark: SparkSession
    options: Mapping[str, str]
    """`kafka.*` options of the connection."""
    question: Question
    folder: Path
    announce: Announce = lambda _: None
    """Told the windows of each file after it was written; once more when a crash makes Spark repeat the batch."""

    def start(self, *, every_s: float | None) -> StreamingQuery:
        """Start, or go on from the checkpoint: a micro-batch each `every_s`; None: what is there now, then end."""
        for name in (WINDOWS, MARKS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        trigger = (
            {"availableNow": True} if every_s is None else {"processingTime": f"{round(every_s * 1000)} milliseconds"}
        )
        return (
            sla_windows(self._records(), self.question)
            .writeStream.queryName("tailpack sla")
            .outputMode("append")
            .option("checkpointLocation", str((self.folder / CHECKPOINT).resolve()))
            .foreachBatch(self._write)
            .trigger(**trigger)
            .start()
        )

    def end(self) -> None:
        """Say that nothing more comes: the next batch still counts whatever it reads, then every window is closed."""
        mark = self.folder / MARKS / "end.json"
        if mark.exists():
            return
        ends_us = int((time.time() + self.question.window_s + self.question.delay_s) * 1e6)
        mark.parent.mkdir(parents=True, exist_ok=True)
        temporary = mark.with_name(".end.tmp")
        temporary.write_bytes(msgspec.json.encode({"intended_us": ends_us}))
        temporary.replace(mark)

    def windows(self) -> list[SlaWindow]:
        """Return every window closed so far."""
        return load_windows(self.folder / WINDOWS)

    def _records(self) -> DataFrame:
        kafka = stream_topics(self.spark, self.options, list(self.question.topics))
        records = believable(of_our_version(typed_records(kafka, self.question.topics).select(*TOLD)))
        marks = self.spark.readStream.schema("intended_us long").json(str((self.folder / MARKS).resolve()))
        return records.union(marks.select(f.lit(NOBODY), "intended_us", f.lit(None).cast("long")))

    def _write(self, frame: DataFrame, batch: int) -> None:
        rows = frame.collect()  # even when there are none: it is what makes Spark read the batch
        if not rows:
            return
        length_s = self.question.window_s
        windows = [SlaWindow(length_s=length_s, **row.asDict()) for row in sorted(rows, key=lambda row: row.start_us)]
        save_windows(self.folder / WINDOWS, batch, windows)
        self.announce(windows)


def own_session(spark: SparkSession) -> SparkSession:
    """Return a session beside `spark`, on the same JVM, set for streams.

    As many shuffle partitions as cores, because each is a state store that every batch commits. State in RocksDB, so
    that a long backlog lies on disk and not in the heap.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    session.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    return session


def stream_topics(spark: SparkSession, options: Mapping[str, str], topics: Sequence[str]) -> DataFrame:
    """Return the committed records of `topics` as they come, from the first, in the columns of `read_topics`.

    No limit per batch: whatever was written together is read together. Shares of a backlog could be out of step
    between partitions, and the one ahead would close windows of the one behind.
    """
    timeout_ms = str(int(ANSWER_WITHIN_S * 1000))
    return (
        spark.readStream.format("kafka")
        .options(**options)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.request.timeout.ms", timeout_ms)
        .option("kafka.default.api.timeout.ms", timeout_ms)
        .option("kafkaConsumer.pollTimeoutMs", str(int(READ_WITHIN_S * 1000)))
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )
