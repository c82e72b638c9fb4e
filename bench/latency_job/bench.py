"""`python -m bench.latency_job.bench`: how long the report job takes for a made-up payment-only run, and where.

Prints the wall time of each step and the peak memory of the JVM and of Python.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from bench.latency_job.job import SHORT_EVENTS, Cluster, report_run
from bench.latency_job.publishing import create_topics, publish, run_info
from bench.latency_job.samples import made_up_run
from bench.latency_job.session import LOG_FILE, jar_files, open_session
from contracts.connection import Connection

STARTED_US: Final = 1_700_000_000_000_000


def main() -> int:
    """Publish, report twice (from Kafka, then from the Parquet files), print."""
    arguments = _parser().parse_args()
    name = f"report-bench-{uuid.uuid4().hex[:8]}"
    connection = Connection(bootstrap_servers=arguments.bootstrap_servers, namespace=name)
    run = made_up_run(arguments.events, rate=arguments.rate, started_us=STARTED_US, seed=1)
    cluster = Cluster(master=arguments.master, jars=arguments.jars)
    create_topics(connection)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run_info(connection, run, pipeline=arguments.pipeline).save(folder)
        _timed("publish", lambda: publish(connection, run, pipeline=arguments.pipeline))
        jars, short = jar_files(cluster.jars), arguments.events <= SHORT_EVENTS
        _timed("session start", lambda: open_session(cluster.master, jars, folder / LOG_FILE, short=short))
        _timed("report from Kafka", lambda: report_run(folder, cluster))
        _timed("report from Parquet", lambda: report_run(folder, cluster))
        _say(f"{'peak memory':<20} JVM {_jvm_peak_mib():.0f} MiB, Python {_python_peak_mib():.0f} MiB")
    return 0


def _timed(step: str, run: Callable[[], object]) -> None:
    before = time.perf_counter()
    run()
    _say(f"{step:<20} {time.perf_counter() - before:6.1f} s")


def _jvm_peak_mib() -> float:
    """Return the resident peak of the JVM that PySpark started, MiB (Linux)."""
    peaks = [0]
    for child in psutil.Process(os.getpid()).children(recursive=True):
        status = Path(f"/proc/{child.pid}/status").read_text(encoding="utf-8").splitlines()
        peaks += [int(line.split()[1]) for line in status if line.startswith("VmHWM")]
    return max(peaks) / 1024


def _python_peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.latency_job.bench", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True, help="a broker that may be filled")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=900.0, help="events/s of the made-up run (default: %(default)s)")
    parser.add_argument("--pipeline", action="store_true", help="all topics, not only those of a payment-only run")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--jars", type=Path, action="append", default=[])
    return parser


if __name__ == "__main__":
    sys.exit(main())
