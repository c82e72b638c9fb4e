"""Columns of Parquet files on this machine, from a footer. Spark starts a job to look: half a second at its start."""

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema


def known_columns(place: str) -> t.StructType | None:
    """Return the columns of the first file at `place`, a path or a file:// address of a file or of a folder.

    None where none can be read here: Spark looks by itself then, and says what is wrong.
    """
    path = Path(place.removeprefix("file://"))
    inside = sorted(path.glob("[!._]*")) if path.is_dir() else [path]
    try:
        return from_arrow_schema(parquet.read_schema(inside[0])) if inside else None
    except (OSError, pa.ArrowException, PySparkException):
        return None
