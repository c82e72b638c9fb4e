"""A Spark session: sized for a laptop where it is local, silent on the terminal; a master that is there at all."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from contracts.waiting import until
from report import ReportError
from report.spark import cause

CONNECT_TIMEOUT_S: Final = 5.0
WORKER_WAIT_KEY: Final = "spark.scheduler.maxRegisteredResourcesWaitingTime"
"""Spark's own word for how long executors may take to come; then it begins anyway."""
WORKER_WAIT: Final = "60s"
MIN_EXECUTORS_AND_DRIVER: Final = 2
STANDALONE: Final = "spark://"
LOG_FILE: Final = "spark.log"
JVM_EXIT_TIMEOUT_S: Final = 30.0
SPARK_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # else half a dozen calls to the JVM beside every column
    "spark.sql.ui.explainMode": "simple",  # plans are put into words for a page that is not there: seconds of CPU
    "spark.sql.maxPlanStringLength": "2000",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.authenticate.socketTimeout": "60s",  # on a busy machine Python may come late for its rows
}
LOCAL_SETTINGS: Final = {
    # one machine: every byte stays here, so to compress it is work for nothing; tasks are sized beforehand
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.host": "127.0.0.1",  # where this machine's own name does not resolve, Spark would not start
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Sized for one machine; with a cluster its own spark-defaults.conf ($SPARK_CONF_DIR) says these."""
EVENTS_PER_TASK: Final = 1_500_000
JAVA_OPTIONS: Final = "-XX:+UseSerialGC -XX:-DontCompileHugeMethods"
"""Spark writes one method for each step, and the JVM would interpret those above 8,000 bytes for ever."""
JAVA_TOO_NEW_ERROR: Final = "getSubject is not supported"
"""Of Java 24 and newer, to the Hadoop that comes with Spark 4.0."""
QUICK_START_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""A short job ends before the optimising compiler has paid for itself. The option would also leave a fifth of the usual
room for what is compiled, and eight jobs in one process fill that."""


def jar_files(folders: Sequence[Path]) -> list[Path]:
    """Return the jars in `folders`. Raises ReportError for a folder without one."""
    if missing := [folder for folder in folders if not any(folder.glob("*.jar"))]:
        raise ReportError(f"--jars {missing[0]}: no jar is there; name the folder of Spark's Kafka connector")
    return [jar for folder in folders for jar in sorted(folder.glob("*.jar"))]


def open_session(master: str, jars: Sequence[Path], log: Path, *, short: bool) -> SparkSession:
    """Start Spark on `master`, or return this process's session when one is open.

    log: file for what the JVM prints, in the folder that is worked on. short: the job is small, so start-up is what
    counts. Raises ReportError when there is no Java, no such master, or the session does not start.
    """
    check_master(master)
    java_home = os.environ.get("JAVA_HOME")
    if not (java_home and Path(java_home, "bin", "java").exists()) and shutil.which("java") is None:
        raise ReportError("Java is missing: install 17 or 21 (Debian: apt install openjdk-17-jre-headless)")
    builder = SparkSession.builder.master(master).appName("tailpack report")
    java = f"{JAVA_OPTIONS} {QUICK_START_OPTIONS}" if short else JAVA_OPTIONS
    settings = SPARK_SETTINGS | {"spark.driver.extraJavaOptions": java}
    if master.startswith("local"):
        settings |= LOCAL_SETTINGS | {"spark.driver.memory": "1g" if short else "2g"}
    if jars:
        settings |= {"spark.jars": ",".join(str(jar.resolve()) for jar in jars)}
    for key, value in settings.items():
        builder = builder.config(key, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers count by what this process has installed
    try:
        with _stderr_to(log):
            return builder.getOrCreate()
    except Exception as failed:  # Py4J and PySpark share no base class below Exception
        if JAVA_TOO_NEW_ERROR in str(failed) or JAVA_TOO_NEW_ERROR in log.read_text(encoding="utf-8", errors="replace"):
            raise ReportError("this Java is too new for Spark: set JAVA_HOME to a Java 17 or 21") from failed
        raise ReportError(f"Spark did not start on {master}: {cause(failed)}; {log} says more") from failed


def size_shuffles(spark: SparkSession, events: int) -> None:
    """Give every shuffle as many tasks as `events` rows need to fit in memory, and the cores to be busy."""
    tasks = max(4, 2 * spark.sparkContext.defaultParallelism, -(-events // EVENTS_PER_TASK))
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))


def end_jvm() -> None:
    """Stop this process's Spark, if it has one, and wait until its JVM is gone; by force after a while.

    PySpark leaves the JVM to notice by itself that its parent has ended, some time later.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        return
    if (context := SparkContext._active_spark_context) is not None:
        context.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # what the JVM takes for the end of its parent
    try:
        gateway.proc.wait(JVM_EXIT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


def check_master(master: str) -> None:
    """Raise ReportError unless `master` is one that Spark has, and a standalone one accepts connections within 5 s."""
    if not master.startswith(("local", "yarn", "k8s://", STANDALONE)):
        raise ReportError(f"--master {master}: Spark has no such master; examples: local[2], spark://HOST:7077")
    refusals = []
    for place in master.removeprefix(STANDALONE).split(",") if master.startswith(STANDALONE) else ():
        host, _, port = place.rpartition(":")
        if not (host and port.isdigit()):
            raise ReportError(f"--master {master}: {place} is no address; an example is spark://HOST:7077")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
        except (OSError, OverflowError) as refused:
            refusals.append(str(refused))
        else:
            return
    if refusals:
        way = "start it, or leave --master out to use this machine"
        raise ReportError(f"--master {master}: no master answers ({refusals[0]}); {way}")


def await_workers(spark: SparkSession) -> None:
    """Wait until a standalone master has given `spark` its first executor.

    Raises ReportError when none arrives within a minute, or within the time that Spark is configured with: it would
    wait for ever, without a message.
    """
    context = spark.sparkContext
    on_demand = context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"
    if on_demand or not context.master.startswith(STANDALONE):
        return
    within_s = context._jsc.sc().conf().getTimeAsSeconds(WORKER_WAIT_KEY, WORKER_WAIT)
    try:
        until(
            lambda: context._jsc.sc().getExecutorMemoryStatus().size() >= MIN_EXECUTORS_AND_DRIVER,
            within_s,
            "a worker gives it a core",
        )
    except TimeoutError as late:
        raise ReportError(f"--master {context.master}: {late}; are there workers, and are they free?") from late


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
