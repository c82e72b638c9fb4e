"""The SLA share of each window of a run, while it goes on: `tailpack sla`."""

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from contracts.connection import Connection
from contracts.events import SCHEMA_VERSION
from contracts.topics import Topic
from contracts.validation import InvalidSettingsError
from report import replace_file
from report.spark import ReportError, cause
from report.spark.events import typed_records
from report.spark.job import Cluster
from report.spark.kafka import kafka_options, read_topics, reading, topics_on
from report.spark.session import LOG_FILE, await_workers, jar_files, open_session
from report.wording import duration, several, share

STOPPED: Final = 130
"""Exit status after a signal, as shells have it."""
AHEAD_US: Final = 60_000_000
"""So far may an intended time lie ahead of this machine's clock; beyond, it would close all windows up to itself."""
STATE_ON_DISK: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class SlaWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Events intended in [start_us, start_us + length_s), epoch µs: integers, so that sums over windows stay exact."""

    start_us: int
    length_s: int
    events: int
    """Distinct events seen on any topic."""
    done: int
    """Of these, completed when the window was closed."""
    in_sla: int
    slowest_us: int | None
    """Largest latency of those completed; None when none was."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a stream. Lengths in seconds. Raises InvalidSettingsError for windows that cannot be right."""

    topics: Mapping[str, Topic]
    """Name on the broker → topic. The input topic counts what was asked for, the settled payments what was done."""
    latency_target_s: float
    window_s: int
    delay_s: float
    """A window is closed when an event intended so long after its end was seen."""

    def __post_init__(self) -> None:
        if self.window_s < 1 or self.delay_s <= self.latency_target_s:
            raise InvalidSettingsError(
                [
                    f"--window {self.window_s} --delay {self.delay_s:g}: a window has a second at least, and the delay "
                    f"must exceed the latency target, {self.latency_target_s:g} s; else an event in time could come "
                    "too late"
                ]
            )


class Told:
    """The windows told so far, kept in a folder of its own for each question, which a later start continues."""

    def __init__(self, folder: Path, question: Question, tell: Callable[[SlaWindow], None]) -> None:
        self.folder = folder / f"{question.window_s}-s-windows-after-{question.delay_s:g}-s"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._place, self._length_s, self._tell = self.folder / "windows.jsonl", question.window_s, tell
        lines = self._place.read_bytes().splitlines() if self._place.exists() else []
        self.windows = {one.start_us: one for one in (msgspec.json.decode(text, type=SlaWindow) for text in lines)}
        for window in self.windows.values():
            tell(window)

    def add(self, rows: Iterable[Row]) -> None:
        """Tell the windows that were not told yet. rows: of `sla_windows`."""
        every = (SlaWindow(length_s=self._length_s, **row.asDict()) for row in sorted(rows))
        fresh = [window for window in every if window.start_us not in self.windows]
        self.windows |= {window.start_us: window for window in fresh}
        replace_file(self._place, b"".join(msgspec.json.encode(one) + b"\n" for one in self.windows.values()))
        for window in fresh:
            self._tell(window)


def sla_windows(kafka: DataFrame, question: Question) -> DataFrame:
    """Return start_us, events, done, in_sla, slowest_us: one row for each window that holds an event.

    kafka: rows of the Kafka source, a batch or a stream. An event counts once, in the window of its intended time, with
    its first completion, as in the report. From a stream each window comes once, after its watermark.
    """
    read = typed_records(kafka, question.topics)
    version = f.concat(f.lit("records of schema version "), f.col("unknown_version").cast("string"))
    refusal = f.raise_error(f.concat(version, f.lit(f" beside {SCHEMA_VERSION}; this release reads that only")))
    intended = f.when(f.col("unknown_version").isNotNull(), refusal).otherwise(f.col("intended_us"))
    records = read.select("event_id", intended.alias("intended_us"), "done_us")
    believable = records.where(f.col("intended_us") <= f.unix_micros(f.current_timestamp()) + AHEAD_US)
    timed = believable.withColumn("at", f.timestamp_micros("intended_us"))
    waiting = timed.withWatermark("at", f"{round(question.delay_s * 1e6)} microseconds")
    events = waiting.groupBy(f.window("at", f"{question.window_s} seconds"), "event_id").agg(
        f.min("intended_us").alias("intended_us"), f.min("done_us").alias("done_us")
    )
    latency_us = f.col("done_us") - f.col("intended_us")
    counted = events.groupBy("window").agg(
        f.count("event_id").alias("events"),
        f.count(latency_us).alias("done"),
        f.count_if(latency_us <= round(question.latency_target_s * 1e6)).alias("in_sla"),
        f.max(latency_us).alias("slowest_us"),
    )
    return counted.select(f.unix_micros("window.start").alias("start_us"), "events", "done", "in_sla", "slowest_us")


def follow(
    spark: SparkSession, options: Mapping[str, str], question: Question, told: Told, until: Callable[[], bool]
) -> None:
    """Tell each window as soon as it is over, from where the folder's checkpoint was left, until told to stop.

    No limit per batch: whatever was written together is read together, else one partition's share would close windows
    of another's. Raises the errors of Spark when the query fails; a new start goes on.
    """
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))  # each a state store
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_ON_DISK)
    kafka = spark.readStream.format("kafka").options(**reading(options, list(question.topics))).load()
    stream = sla_windows(kafka, question).writeStream.outputMode("append").trigger(processingTime="2 seconds")
    stream = stream.option("checkpointLocation", str((told.folder / "checkpoint").resolve()))
    query = stream.foreachBatch(lambda frame, _: told.add(frame.collect())).start()
    try:
        while not until() and not query.awaitTermination(1.0):
            pass
    finally:
        query.stop()


def count(spark: SparkSession, options: Mapping[str, str], question: Question, told: Told, *, ended: bool) -> None:
    """Tell the windows of what the topics hold now; with `ended` the last ones too, for which nothing more comes."""
    rows = sla_windows(read_topics(spark, options, list(question.topics)), question).collect()
    over_us = max((row["start_us"] for row in rows), default=0) - round((question.window_s + question.delay_s) * 1e6)
    told.add([row for row in rows if ended or row["start_us"] <= over_us])


def line(window: SlaWindow, latency_target_s: float) -> str:
    """Return what is known of a window, as a person wants to read it; its time is UTC."""
    begin = datetime.fromtimestamp(window.start_us // 1_000_000, tz=UTC)
    slowest = None if window.slowest_us is None else window.slowest_us / 1e6
    missing = f", {window.events - window.done:,} not done" if window.done < window.events else ""
    return (
        f"{begin:%Y-%m-%d %H:%M:%S}  {several(window.events, 'event'):>14}  {share(window.in_sla / window.events):>8} "
        f"within {duration(latency_target_s)}, slowest {duration(slowest)}{missing}"
    )


def watch(
    question: Question,
    connection: Connection,
    folder: Path,
    cluster: Cluster,
    *,
    as_json: bool,
    once: bool,
    ended: Callable[[], bool],
) -> int:
    """Print each window on standard output; return 0 at the end, or `STOPPED` when a signal cut it short.

    folder: keeps windows and checkpoint. once: of what is there now. ended: tells whether nothing more comes.
    Raises ReportError, InvalidSettingsError.
    """
    if missing := sorted(set(question.topics) - topics_on(connection)):
        raise ReportError(f"{missing[0]}: no such topic at {connection.bootstrap_servers}")
    options, stop = kafka_options(connection), threading.Event()

    def tell(window: SlaWindow) -> None:
        text = msgspec.json.encode(window).decode() if as_json else line(window, question.latency_target_s)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    told = Told(folder, question, tell)
    try:
        spark = open_session(cluster.master, jar_files(cluster.jars), told.folder / LOG_FILE, short=False)
        await_workers(spark)
        for number in (signal.SIGINT, signal.SIGTERM):  # after PySpark, which has a handler of its own
            signal.signal(number, lambda *_: stop.set())
        if not once and not ended():
            follow(spark, options, question, told, lambda: stop.is_set() or ended())
        if not stop.is_set():
            count(spark, options, question, told, ended=ended())
    except (PySparkException, Py4JError) as failed:
        raise ReportError(f"the stream ended ({cause(failed)}); the same command goes on") from failed
    events, in_sla = (sum(getattr(one, name) for one in told.windows.values()) for name in ("events", "in_sla"))
    said = f"{several(events, 'event')}, {share(in_sla / events)} in time" if events else "none is over yet"
    sys.stderr.write(f"{several(len(told.windows), 'window')}: {said}\n")
    return STOPPED if stop.is_set() else 0
