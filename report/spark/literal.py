"""Small tables that Python knows: as part of the plan. Spark's own way to take them costs two jobs."""

from collections.abc import Sequence
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f


def rows_of(spark: SparkSession, rows: Sequence[Sequence[Any]], columns: str) -> DataFrame:
    """Return `rows`, in the order of `columns`, which are as in "name type, name type"."""
    names = [column.split()[0] for column in columns.split(",")]
    named = [dict(zip(names, row, strict=True)) for row in rows]
    every = array_of(named, f"struct<{columns.replace(' ', ':').replace(',:', ',')}>")
    return spark.range(1, numPartitions=1).select(f.inline(every))


def array_of(values: Sequence[Any], kind: str) -> Column:
    """Return an array of `values`, whose type for Spark is `kind`; one call for all, not one for each."""
    return f.from_json(f.lit(msgspec.json.encode(values).decode()), f"array<{kind}>")
