"""Start Spark, check that its master answers, and write its messages to a file."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from contracts.waiting import until
from report import ReportError
from report.spark import innermost_cause

CONNECT_TIMEOUT_S: Final = 5.0
WORKER_WAIT_KEY: Final = "spark.scheduler.maxRegisteredResourcesWaitingTime"
"""Setting of Spark: time to wait for executors before it starts without them."""
WORKER_WAIT: Final = "60s"
STANDALONE: Final = "spark://"
SPARK_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.python.authenticate.socketTimeout": "60s",  # Python may be late on a busy machine
}
LOCAL_SETTINGS: Final = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",  # else Spark does not start if the host name does not resolve
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Settings for one machine; a cluster configures them in spark-defaults.conf ($SPARK_CONF_DIR)."""
JAVA_TOO_NEW_ERROR: Final = "getSubject is not supported"
"""Error of Java 24 and newer with the Hadoop of Spark 4.0."""


def open_session(master: str, log: Path) -> SparkSession:
    """Start Spark on `master`, or return the open session of this process.

    log: file for the output of the JVM. Raises ReportError for an invalid master, or if Spark does not start.
    """
    check_master(master)
    settings = SPARK_SETTINGS | (LOCAL_SETTINGS if master.startswith("local") else {})
    builder = SparkSession.builder.master(master).appName("tailpack report").config(map=settings)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers use the packages of this process
    try:
        with _stderr_to(log):
            return builder.getOrCreate()
    except Exception as failed:  # Py4J and PySpark share no base class below Exception
        if JAVA_TOO_NEW_ERROR in str(failed) or JAVA_TOO_NEW_ERROR in log.read_text(encoding="utf-8", errors="replace"):
            raise ReportError("this Java is too new for Spark: set JAVA_HOME to a Java 17 or 21") from failed
        raise ReportError(f"Spark did not start on {master}: {innermost_cause(failed)}; see {log}") from failed


def end_jvm() -> None:
    """Stop the Spark of this process, if any, and wait until its JVM has exited; PySpark does not wait."""
    if (context := SparkContext._active_spark_context) is not None:
        gateway = context._gateway
        context.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM exits at the end of this stream
        gateway.proc.wait()


def check_master(master: str) -> None:
    """Raise ReportError if `master` is invalid, or a standalone master does not accept connections within 5 s."""
    if not master.startswith(("local", "yarn", "k8s://", STANDALONE)):
        raise ReportError(f"--master {master}: not a master of Spark; examples: local[2], spark://HOST:7077")
    refusals = []
    for place in master.removeprefix(STANDALONE).split(",") if master.startswith(STANDALONE) else ():
        host, _, port = place.rpartition(":")
        if not (host and port.isdigit()):
            raise ReportError(f"--master {master}: {place} is not an address; example: spark://HOST:7077")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
        except (OSError, OverflowError) as refused:
            refusals.append(str(refused))
        else:
            return
    if refusals:
        remedy = "start it, or omit --master to use this machine"
        raise ReportError(f"--master {master}: no master answers ({refusals[0]}); {remedy}")


def await_workers(spark: SparkSession) -> None:
    """Wait until a standalone master has given `spark` its first executor.

    Raises ReportError after a minute, or after the time in WORKER_WAIT_KEY. Spark would wait forever without a message.
    """
    context = spark.sparkContext
    on_demand = context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"
    if on_demand or not context.master.startswith(STANDALONE):
        return
    within_s = context._jsc.sc().conf().getTimeAsSeconds(WORKER_WAIT_KEY, WORKER_WAIT)
    executors = context._jsc.sc().getExecutorMemoryStatus  # the driver is one of them
    try:
        until(lambda: executors().size() >= 2, within_s, "a worker gives it a core")
    except TimeoutError as late:
        raise ReportError(f"--master {context.master}: {late}; check that workers run and have free cores") from late


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
