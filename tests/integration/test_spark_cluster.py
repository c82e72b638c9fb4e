"""The report by a real standalone cluster, a master and two workers on loopback, is that of one machine."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyspark
import pytest
from kafka_helpers import create_topics, wait_for
from published_runs import PARTITIONS, made_up_run, publish, run_info
from tailpack_command import tailpack

from contracts.connection import Connection
from contracts.topics import Topic
from tailpack.local.ports import free_port

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]
STARTED_US: Final = 1_700_000_000_000_000
WORKERS: Final = 2
DEADLINE_S: Final = 120.0
SPARK_HOME: Final = Path(pyspark.__file__).parent
SETTINGS: Final = """
spark.executor.memory 512m
spark.executor.extraJavaOptions -XX:+UseSerialGC
spark.sql.shuffle.partitions 6
"""


@dataclass(slots=True)
class Standalone:
    """A Spark cluster of this test's own, in a folder of its own."""

    folder: Path
    processes: "list[subprocess.Popen[bytes]]"
    master: str = ""

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_CONF_DIR": str(self.folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
        }

    def start(self, *, workers: int) -> None:
        (self.folder / "spark-defaults.conf").write_text(SETTINGS)
        port = free_port()
        here = ("--host", "127.0.0.1", "--webui-port", "0")
        log = self._start("master", "org.apache.spark.deploy.master.Master", *here, "--port", str(port))
        self.master = f"spark://127.0.0.1:{port}"
        wait_for(lambda: b"Starting Spark master" in log.read_bytes(), "the master is up", deadline_s=DEADLINE_S)
        for number in range(workers):
            room = ("--cores", "1", "--memory", "512m", "--work-dir", str(self.work(number)))
            self._start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *here, *room, self.master)
        registered = b"Registering worker"
        wait_for(lambda: log.read_bytes().count(registered) == workers, "the workers are known", deadline_s=DEADLINE_S)

    def work(self, number: int) -> Path:
        """Where the worker keeps a folder for each application, and in it one for each executor."""
        return self.folder / f"work-{number}"

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, name: str, kind: str, *arguments: str) -> Path:
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            command = [str(SPARK_HOME / "bin" / "spark-class"), kind, *arguments]
            self.processes.append(
                subprocess.Popen(command, env=self.environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            )
        return log


@pytest.fixture(params=[WORKERS], ids=["two workers"])
def standalone(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Standalone]:
    cluster = Standalone(tmp_path_factory.mktemp("standalone"), [])
    try:
        cluster.start(workers=request.param)
        yield cluster
    finally:
        cluster.stop()


def report(folder: Path, master: str, environ: dict[str, str]) -> dict[str, Any]:
    """What result.json says, apart from its provenance, after the command a person would give."""
    done = tailpack("report", str(folder), "--master", master, environ=environ, deadline_s=400)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    del result["provenance"]
    return result


def test_two_workers_find_what_one_machine_finds(
    kafka: str, namespace: str, tmp_path: Path, standalone: Standalone
) -> None:
    connection = Connection(bootstrap_servers=kafka, namespace=namespace)
    run = made_up_run(2_000, rate=180.0, started_us=STARTED_US, seed=7)
    create_topics(kafka, namespace, PARTITIONS)
    publish(connection, run, pipeline=True, copies=lambda topic, k: int(topic is not Topic.PAYMENTS_SETTLED or k != 3))
    for name in ("local", "cluster"):
        (tmp_path / name).mkdir()
        run_info(connection, run, pipeline=True).save(tmp_path / name)

    alone = report(tmp_path / "local", "local[2]", dict(os.environ))
    together = report(tmp_path / "cluster", standalone.master, standalone.environ)

    assert together == alone
    assert alone["events"] == 2_000
    for number in range(WORKERS):
        assert list(standalone.work(number).glob("app-*/*/stderr")), f"worker {number} had a share in it"
