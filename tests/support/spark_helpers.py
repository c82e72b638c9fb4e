"""Fixtures of tests with a real Spark. One session, opened as in the report job, is used by the whole process."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from report.spark.session import open_session

SPARK: Final = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]
"""Marks of a module that uses Spark. PySpark does not close the socket of a `collect()`."""


def spark(log_folder: Path) -> Iterator[Any]:
    """Yield this process's session; what it left behind is collected under the filter."""
    yield open_session("local[2]", log_folder / "spark.log")
    gc.collect()
