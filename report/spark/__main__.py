"""`python -m report.spark RUN_DIR`: report on a run by Spark; write its Parquet files, result.json and report.html.

With `--window`: count the windows of the run, or of a topic, while it goes on (`tailpack sla`).
"""

import argparse
import sys
from pathlib import Path

from contracts.connection import Connection
from contracts.topics import Topic, qualified
from contracts.validation import InvalidSettingsError
from report.page import page
from report.result import Result
from report.run_info import RUN_FILE
from report.spark import ReportError
from report.spark.files import Files
from report.spark.job import Cluster, report_files, report_run, report_topic
from report.spark.read import Promise, load_run
from report.spark.session import end_jvm
from report.spark.streaming import Question, watch


def main() -> int:
    """Return 0 at the end, 1 when there can be no report, 2 for wrong arguments, 130 for a stream that was stopped."""
    arguments = _parser().parse_args()
    cluster = Cluster(master=arguments.master, jars=arguments.jars)
    try:
        try:
            if arguments.window is not None:
                return _windows(arguments, cluster)
            result = _reported(arguments, cluster)
        finally:
            end_jvm()
        page.write(result, arguments.folder / page.PAGE_FILE)
    except ReportError as wrong:
        said, status = [str(wrong)], 1
    except InvalidSettingsError as wrong:
        said, status = list(wrong.problems), 2
    except OSError as refused:
        said, status = [f"{refused.filename or arguments.folder}: cannot be written ({refused.strerror})"], 1
    else:
        sys.stdout.write(result.verdict + "\n")
        return 0
    sys.stderr.writelines(f"{'report' if arguments.window is None else 'sla'}: {one}\n" for one in said)
    return status


def _reported(arguments: argparse.Namespace, cluster: Cluster) -> Result:
    """Report on a topic, events from elsewhere, or the run. Raises ReportError, InvalidSettingsError."""
    folder, promise = arguments.folder, Promise(arguments.latency_target_s, arguments.percentile)
    if arguments.topic is not None:
        return report_topic(folder, arguments.topic, _connection(arguments), promise, cluster)
    files = None if arguments.events is None else Files(arguments.events, arguments.journal)
    if files is None or (folder / RUN_FILE).exists():
        return report_run(folder, cluster, files=files, reread=arguments.reread)
    return report_files(folder, files, promise, cluster, command=arguments.command)


def _windows(arguments: argparse.Namespace, cluster: Cluster) -> int:
    """Tell the windows of a topic, or of the run until it is drained. Raises ReportError, InvalidSettingsError."""
    lengths = (arguments.window, arguments.delay)
    if arguments.topic is None:
        run = load_run(arguments.folder)
        first = Topic.ORDERS_PLACED if run.topology == "pipeline" else Topic.PAYMENTS_REQUESTED
        topics = {qualified(run.run, topic): topic for topic in (first, Topic.PAYMENTS_SETTLED)}
        question = Question(topics, run.latency_target_s, *lengths)
        connection = Connection(bootstrap_servers=run.bootstrap_servers, client_properties=run.client_properties)
    else:
        question = Question({arguments.topic: Topic.PAYMENTS_SETTLED}, arguments.latency_target_s, *lengths)
        connection = _connection(arguments)

    def ended() -> bool:
        run = load_run(arguments.folder) if arguments.topic is None else None
        return bool(arguments.ended or (run and (run.drained_us is not None or run.interrupted)))

    how = {"as_json": arguments.json, "once": arguments.once}
    return watch(question, connection, arguments.out or arguments.folder, cluster, **how, ended=ended)


def _connection(arguments: argparse.Namespace) -> Connection:
    return Connection(bootstrap_servers=arguments.bootstrap_servers, client_properties=arguments.client_properties)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m report.spark", description=__doc__)
    add = parser.add_argument
    add("folder", type=Path, metavar="RUN_DIR", help="folder with run.json, or where the result goes")
    add("--master", default="local[2]", help="Spark master (default: %(default)s)")
    add("--jars", type=Path, action="append", default=[], help="jar, or folder of jars, of Spark's Kafka connector")
    add("--reread", action="store_true", help="read the topics again although events.parquet is there")
    add("--events", metavar="URI", help="events of the run, or without run.json of a stranger: Parquet or JSON lines")
    add("--journal", metavar="URI", help="with --events (default: journal.parquet beside them, if it is there)")
    add("--command", default="", help="with --events and no run.json: what the report says it was made by")
    add("--topic", help="report on this bare timeline topic instead of a run")
    add("--bootstrap-servers", default="127.0.0.1:9092", help="with --topic: Kafka's address (default: %(default)s)")
    add("--client-properties", default="", help="with --topic: properties file for TLS and SASL")
    add("--latency-target-s", type=float, default=0.5, help="without run.json (default: %(default)s)")
    add("--percentile", type=float, default=0.999, help="without run.json: share promised (default: %(default)s)")
    add("--window", type=int, help="count windows of so many seconds, and make no report")
    add("--delay", type=float, default=10.0, help="with --window: seconds that a window waits (default: %(default)s)")
    add("--out", type=Path, help="with --window: folder of windows and checkpoint (default: RUN_DIR)")
    add("--once", action="store_true", help="with --window: count what is there now, and end")
    add("--ended", action="store_true", help="with --window: nothing more comes, so close every window")
    add("--json", action="store_true", help="with --window: one JSON object for each")
    return parser


if __name__ == "__main__":
    sys.exit(main())
