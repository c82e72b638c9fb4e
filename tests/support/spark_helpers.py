"""Fixtures of the tests on a real Spark: one session for the whole process, opened as the job opens it."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from report.spark.session import open_session

SPARK: Final = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]
"""Marks of a module that uses Spark. PySpark leaves the socket of each `collect()` to the garbage collector."""


def spark(log_folder: Path) -> Iterator[Any]:
    """Yield this process's session; what it left behind is collected under the filter."""
    yield open_session("local[2]", log_folder / "spark.log")
    gc.collect()
