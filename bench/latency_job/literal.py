"""Small tables that Python knows: as part of the plan. Spark's own way to take them costs two jobs."""

from collections.abc import Sequence
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def rows_of(spark: SparkSession, rows: Sequence[Sequence[Any]], columns: str) -> DataFrame:
    """Return `rows`, in the order of `columns`, which are as in "name type, name type"."""
    names = [column.split()[0] for column in columns.split(",")]
    text = msgspec.json.encode([dict(zip(names, row, strict=True)) for row in rows]).decode()
    every = f.from_json(f.lit(text), f"array<struct<{columns.replace(' ', ':').replace(',:', ',')}>>")
    return spark.range(1, numPartitions=1).select(f.inline(every))
