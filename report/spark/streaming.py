"""`python -m report.spark.streaming [RUN_DIR]`: the SLA share of each minute of a run, while it goes on."""

import argparse
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
from contracts.topics import Topic, qualified
from contracts.validation import InvalidSettingsError
from report import replace_file
from report.spark import ReportError
from report.spark.events import typed_records
from report.spark.job import cause
from report.spark.kafka import kafka_options, read_topics, reading, topics_on
from report.spark.read import load_run
from report.spark.session import LOG_FILE, await_workers, end_jvm, jar_files, open_session
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
    """What is asked of a stream. Lengths in seconds."""

    topics: Mapping[str, Topic]
    """Name on the broker → topic. The input topic counts what was asked for, the settled payments what was done."""
    latency_target_s: float
    window_s: int
    delay_s: float
    """A window is closed when an event intended so long after its end was seen."""


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


def main() -> int:
    """Return 0 at the end, 1 when the topics cannot be read, 2 for wrong arguments, 130 when it was stopped."""
    arguments = _parser().parse_args()
    try:
        return STOPPED if _told(arguments) else 0
    except (PySparkException, Py4JError) as failed:
        said, status = f"the stream ended ({cause(failed)}); the same command goes on", 1
    except ReportError as wrong:
        said, status = str(wrong), 1
    except OSError as refused:
        said, status = f"{refused.filename or arguments.out}: {refused.strerror}", 1
    except InvalidSettingsError as wrong:
        said, status = "; ".join(wrong.problems), 2
    finally:
        end_jvm()
    sys.stderr.write(f"sla: {said}\n")
    return status


def _told(arguments: argparse.Namespace) -> bool:
    """Tell the windows; return whether a signal cut it short."""
    question, connection = _asked(arguments)
    if missing := sorted(set(question.topics) - topics_on(connection)):
        raise ReportError(f"{missing[0]}: no such topic at {connection.bootstrap_servers}")
    options, stop = kafka_options(connection), threading.Event()

    def ended() -> bool:
        run = None if arguments.folder is None else load_run(arguments.folder)
        return bool(arguments.ended or (run and (run.drained_us is not None or run.interrupted)))

    def tell(window: SlaWindow) -> None:
        text = msgspec.json.encode(window).decode() if arguments.json else line(window, question.latency_target_s)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    told = Told(arguments.out, question, tell)
    spark = open_session(arguments.master, jar_files(arguments.jars), told.folder / LOG_FILE, short=False)
    await_workers(spark)
    for number in (signal.SIGINT, signal.SIGTERM):  # after PySpark, which has a handler of its own
        signal.signal(number, lambda *_: stop.set())
    if not arguments.once and not ended():
        follow(spark, options, question, told, lambda: stop.is_set() or ended())
    if not stop.is_set():
        count(spark, options, question, told, ended=ended())
    events, in_sla = (sum(getattr(one, name) for one in told.windows.values()) for name in ("events", "in_sla"))
    said = f"{several(events, 'event')}, {share(in_sla / events)} in time" if events else "none is over yet"
    sys.stderr.write(f"{several(len(told.windows), 'window')}: {said}\n")
    return stop.is_set()


def _asked(arguments: argparse.Namespace) -> tuple[Question, Connection]:
    """Return the question and where its topics are. Raises InvalidSettingsError, ReportError."""
    if arguments.folder is None:
        address, properties = arguments.bootstrap_servers, arguments.client_properties
        topics, target_s = {arguments.topic: Topic.PAYMENTS_SETTLED}, arguments.latency_target_s
    else:
        run = load_run(arguments.folder)
        address, properties, target_s = run.bootstrap_servers, run.client_properties, run.latency_target_s
        first = Topic.ORDERS_PLACED if run.topology == "pipeline" else Topic.PAYMENTS_REQUESTED
        topics = {qualified(run.run, topic): topic for topic in (first, Topic.PAYMENTS_SETTLED)}
    if arguments.window < 1 or arguments.delay <= target_s:
        raise InvalidSettingsError(
            [
                f"--window {arguments.window} --delay {arguments.delay:g}: a window has a second at least, and the "
                f"delay must exceed the latency target, {target_s:g} s; else an event in time could come too late"
            ]
        )
    connection = Connection(bootstrap_servers=address, client_properties=properties)
    return Question(topics, target_s, arguments.window, arguments.delay), connection


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m report.spark.streaming", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("folder", type=Path, nargs="?", metavar="RUN_DIR")
    source.add_argument("--topic")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jars", type=Path, action="append", default=[])
    defaults = {"window": 60, "delay": 10.0, "latency-target-s": 0.5}
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    for name, text in {"master": "local[2]", "bootstrap-servers": "127.0.0.1:9092", "client-properties": ""}.items():
        parser.add_argument(f"--{name}", default=text)
    for name in ("once", "ended", "json"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
