"""`python -m report.spark.streaming [RUN_DIR]`: the SLA share of each minute of a run, while it goes on."""

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from contracts.connection import Connection
from contracts.topics import Topic
from contracts.validation import InvalidSettingsError
from report.spark.errors import ReportError
from report.spark.job import load_run
from report.spark.masters import await_workers
from report.spark.security import kafka_options
from report.spark.session import LOG_FILE, end_jvm, jar_files, open_session
from report.spark.source import topics_on
from report.spark.streaming.follow import LeftOut, finish, follow
from report.spark.streaming.query import WindowStream, own_session
from report.spark.streaming.question import DELAY_S, Question, topics_of_run
from report.spark.streaming.windows import SlaWindow
from report.spark.streaming.words import line, summary

STOPPED: Final = 130
"""Exit status after a signal, as shells have it."""


def main() -> int:
    """Return 0 at the end, 1 when the topics cannot be read, 2 for wrong arguments, 130 when it was stopped."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it would print the traceback of what is told in one line
    arguments = _parser().parse_args()
    try:
        stopped = _count(arguments)
    except ReportError as wrong:
        sys.stderr.write(f"sla: {wrong}\n")
        return 1
    except InvalidSettingsError as wrong:
        for problem in wrong.problems:
            sys.stderr.write(f"sla: {problem}\n")
        return 2
    except OSError as refused:
        sys.stderr.write(f"sla: {refused.filename or arguments.out}: {refused.strerror}\n")
        return 1
    finally:
        end_jvm()
    return STOPPED if stopped else 0


def _count(arguments: argparse.Namespace) -> bool:
    """Tell the windows; return whether a signal cut it short."""
    question, connection = _asked(arguments)
    if problems := question.problems():
        raise InvalidSettingsError(problems)
    if missing := sorted(set(question.topics) - topics_on(connection)):
        raise ReportError(f"{missing[0]}: no such topic at {connection.bootstrap_servers}")
    options, jars, folder = kafka_options(connection), jar_files(arguments.jars), arguments.out
    question.keep(folder)
    live = not arguments.once and not _ended(arguments)
    spark = own_session(open_session(arguments.master, jars, folder / LOG_FILE, short=not live))
    await_workers(spark)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # after PySpark, which has a handler of its own
        signal.signal(number, lambda *_: stop.set())
    tell = partial(_tell, latency_target_s=question.latency_target_s, as_json=arguments.json)
    stream = WindowStream(spark, options, question, folder, tell)
    tell(stream.windows())
    parts = [LeftOut()]
    if live:
        parts.append(follow(stream, lambda: stop.is_set() or _ended(arguments), arguments.every))
    if not stop.is_set():
        parts.append(finish(stream, ended=_ended(arguments), until=stop.is_set))
    said = summary(
        stream.windows(),
        question.latency_target_s,
        late=sum(part.late for part in parts),
        ahead=sum(part.ahead for part in parts),
        unreadable=sum(part.unreadable for part in parts),
    )
    sys.stderr.writelines(f"{text}\n" for text in said)
    return stop.is_set()


def _tell(windows: Sequence[SlaWindow], *, latency_target_s: float, as_json: bool) -> None:
    for window in windows:
        text = msgspec.json.encode(window).decode() if as_json else line(window, latency_target_s)
        sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _asked(arguments: argparse.Namespace) -> tuple[Question, Connection]:
    """Return the question and where its topics are. Raises ReportError when the run is not there."""
    if arguments.topic is not None:
        address, properties = arguments.bootstrap_servers, arguments.client_properties
        topics, target_s = {arguments.topic: Topic.PAYMENTS_SETTLED}, arguments.latency_target_s
    else:
        run = load_run(arguments.folder)
        address, properties = run.bootstrap_servers, run.client_properties
        topics, target_s = topics_of_run(run), run.latency_target_s
    question = Question(topics=topics, latency_target_s=target_s, window_s=arguments.window, delay_s=arguments.delay)
    return question, Connection(bootstrap_servers=address, client_properties=properties)


def _ended(arguments: argparse.Namespace) -> bool:
    """Whether nothing more comes: a run says so itself, of a bare topic the caller must."""
    if arguments.ended or arguments.folder is None:
        return bool(arguments.ended)
    run = load_run(arguments.folder)
    return run.drained_us is not None or run.interrupted


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m report.spark.streaming", description=__doc__)
    add = parser.add_argument
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("folder", type=Path, nargs="?", metavar="RUN_DIR", help="folder with run.json")
    source.add_argument("--topic", help="count this bare timeline topic instead of a run")
    add("--out", type=Path, required=True, help="folder of the windows and of the checkpoint")
    add("--window", type=int, default=60, help="length of a window, s (default: %(default)s)")
    add("--delay", type=float, default=DELAY_S, help="how long a window waits for its events, s (default: %(default)s)")
    add("--every", type=float, default=2.0, help="seconds between micro-batches (default: %(default)s)")
    add("--once", action="store_true", help="count what is there now, and end")
    add("--ended", action="store_true", help="nothing more comes: close every window")
    add("--json", action="store_true", help="one JSON object for each window")
    add("--master", default="local[2]", help="Spark master (default: %(default)s)")
    add("--jars", type=Path, action="append", default=[], help="jar, or folder of jars, of Spark's Kafka connector")
    add("--bootstrap-servers", default="127.0.0.1:9092", help="with --topic: Kafka's address (default: %(default)s)")
    add("--client-properties", default="", help="with --topic: properties file for TLS and SASL")
    add("--latency-target-s", type=float, default=0.5, help="with --topic (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
