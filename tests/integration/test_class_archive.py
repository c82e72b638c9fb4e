"""The archive of Spark's classes that `make env` leaves in the environment: used where it fits, harmless where not."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark import SparkContext
from spark_helpers import SPARK, spark

from report.spark.class_archive import ARCHIVE

pytestmark = SPARK
STARTED = """
import sys
from pathlib import Path
from report.spark import class_archive, session
archive, log = map(Path, sys.argv[1:])
class_archive.options.__defaults__ = (archive,)
print(session.open_session("local[1]", (), log, short=True).range(3).count())
session.end_jvm()
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which files a process has mapped")
@pytest.mark.usefixtures("session")
def test_spark_starts_from_the_archive_of_this_environment() -> None:
    assert ARCHIVE.is_file(), "python -m bench.report_speed.class_archive makes it, as make env does"
    gateway = SparkContext._gateway
    assert gateway is not None
    mapped = {Path(one.path) for one in psutil.Process(gateway.proc.pid).memory_maps()}
    assert ARCHIVE.resolve() in mapped, "the JVM looked at it and went on without"


def test_an_archive_that_does_not_fit_is_as_none(tmp_path: Path) -> None:
    archive, log = tmp_path / "of another Java.jsa", tmp_path / "spark.log"
    archive.write_bytes(b"of another Java" * 10_000)
    command = [sys.executable, "-c", STARTED, str(archive), str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr + log.read_text()
