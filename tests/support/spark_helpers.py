"""Fixtures of tests with a real Spark. One session, opened as in the report job, is used by the whole process."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from report.spark.session import jar_files, open_session
from tailpack.local.jars import ensure

SPARK: Final = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]
"""Marks of a module that uses Spark. PySpark does not close the socket of a `collect()`."""


def spark(log_folder: Path) -> Iterator[Any]:
    """Yield the session of this process, with the Kafka connector. Its open sockets cause no warning."""
    yield open_session("local[2]", jar_files([ensure("spark")]), log_folder / "spark.log", short=True)
    gc.collect()
