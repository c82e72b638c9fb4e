"""A stage is compiled once: planners and tasks of one JVM share what is compiled. And columns come from the footer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import types as t
from spark_helpers import SPARK, spark

from report.spark.footer import known_columns
from report.spark.planning import planners

pytestmark = SPARK


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


def compiled(session: Any) -> int:
    """Return how many pieces of code Spark has compiled in this JVM."""
    return int(session._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount())


def pieces_for(session: Any, columns: int, threads: Any) -> int:
    """Return how many pieces one query of one stage takes. columns: another number, another code."""
    query = session.range(10).selectExpr(*[f"id * {number} as c{number}" for number in range(columns)])
    before = compiled(session)
    assert len(threads.submit(query.collect).result()) == 10
    return compiled(session) - before


def test_a_planner_compiles_a_stage_once_and_another_thread_twice(session: Any) -> None:
    session.range(1).count()
    with planners(session, 1) as sharing, type(sharing)(1) as apart:
        assert (pieces_for(session, 41, sharing), pieces_for(session, 43, apart)) == (1, 2)


def test_columns_are_those_that_spark_finds(session: Any, tmp_path: Path) -> None:
    place = tmp_path / "events.parquet"
    rows = session.range(3).selectExpr("id", "cast(id as int) partition", "id > 1 late", "cast(id as string) name")
    rows.write.parquet(f"file://{place}")
    found = session.read.parquet(f"file://{place}").schema
    file = min(place.glob("*.parquet"))
    for path in (f"file://{place}", str(place), str(file)):
        known = known_columns(path)
        assert known
        assert session.read.schema(known).parquet(f"file://{place}").schema == found


@pytest.mark.parametrize("place", ["nowhere.parquet", "empty", "torn.parquet", "s3a://bucket/events.parquet"])
def test_where_no_footer_can_be_read_spark_is_asked(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    assert known_columns(place if "://" in place else str(tmp_path / place)) is None


def test_a_type_that_spark_lacks_is_left_to_it(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": pa.array([1], pa.uint64())}), tmp_path / "a.parquet")
    assert known_columns(str(tmp_path / "a.parquet")) is None
    parquet.write_table(pa.table({"id": pa.array([1], pa.int64())}), tmp_path / "b.parquet")
    assert known_columns(str(tmp_path / "b.parquet")) == t.StructType([t.StructField("id", t.LongType())])
