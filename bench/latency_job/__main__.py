"""`python -m bench.latency_job RUN_DIR`: judge a run by Spark; write its Parquet files, result.json and report.html."""

import argparse
import sys
from pathlib import Path

from bench.latency_job.errors import ReportError
from bench.latency_job.job import Cluster, report_run, report_topic
from bench.latency_job.session import end_jvm
from bench.report import page
from contracts.connection import Connection
from contracts.validation import InvalidSettingsError


def main() -> int:
    """Return 0 when the result was written, 1 when the run cannot be judged, 2 for wrong arguments."""
    arguments = _parser().parse_args()
    cluster = Cluster(master=arguments.master, jars=arguments.jars)
    try:
        if arguments.topic is None:
            result = report_run(arguments.folder, cluster, reread=arguments.reread)
        else:
            connection = Connection(
                bootstrap_servers=arguments.bootstrap_servers, client_properties=arguments.client_properties
            )
            target = (arguments.latency_target_s, arguments.percentile)
            result = report_topic(arguments.folder, arguments.topic, connection, target, cluster)
    except ReportError as wrong:
        sys.stderr.write(f"report: {wrong}\n")
        return 1
    except InvalidSettingsError as wrong:
        for problem in wrong.problems:
            sys.stderr.write(f"report: {problem}\n")
        return 2
    finally:
        end_jvm()
    try:
        page.write(result, arguments.folder / page.PAGE_FILE)
    except OSError as refused:
        sys.stderr.write(f"report: {arguments.folder / page.PAGE_FILE}: cannot be written ({refused.strerror})\n")
        return 1
    sys.stdout.write(result.verdict + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.latency_job", description=__doc__)
    add = parser.add_argument
    add("folder", type=Path, metavar="RUN_DIR", help="folder with run.json; with --topic: where the result goes")
    add("--master", default="local[2]", help="Spark master (default: %(default)s)")
    add("--jars", type=Path, action="append", default=[], help="jar, or folder of jars, of Spark's Kafka connector")
    add("--reread", action="store_true", help="read the topics again although events.parquet is there")
    add("--topic", help="judge this bare timeline topic instead of a run")
    add("--bootstrap-servers", default="127.0.0.1:9092", help="with --topic: Kafka's address (default: %(default)s)")
    add("--client-properties", default="", help="with --topic: properties file for TLS and SASL")
    add("--latency-target-s", type=float, default=0.5, help="with --topic (default: %(default)s)")
    add("--percentile", type=float, default=0.999, help="with --topic: share promised (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
