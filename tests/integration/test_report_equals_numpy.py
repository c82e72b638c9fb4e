"""Spark and numpy compute the same definitions: equal to the microsecond on the same run."""

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from kafka_helpers import create_topics
from published_runs import PARTITIONS, made_up_run, publish, run_info
from spark_helpers import SPARK, spark

from contracts.connection import Connection
from report import measures
from report.result import Result
from report.spark.job import Cluster, report_run
from report.spark.read import EVENTS
from tailpack.local.jars import ensure

pytestmark = [pytest.mark.kafka, *SPARK, pytest.mark.long]
STARTED_US = 1_700_000_000_000_000
EVENT_COUNT = 3_000


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="module")
def reported(kafka: str, session: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Any]:
    folder, namespace = tmp_path_factory.mktemp("run"), f"test-{uuid.uuid4().hex[:10]}"
    connection = Connection(bootstrap_servers=kafka, namespace=namespace)
    run = made_up_run(EVENT_COUNT, rate=180.0, started_us=STARTED_US, seed=3)
    create_topics(kafka, namespace, PARTITIONS)
    publish(connection, run, pipeline=False)
    info = msgspec.structs.replace(run_info(connection, run, pipeline=False), latency_target_s=0.012)
    info.save(folder)
    result = report_run(folder, Cluster("local[2]", [ensure("spark")]))
    return result, session.read.parquet(str(folder / EVENTS)).collect()


def test_percentiles_and_share_are_equal(reported: tuple[Result, Any]) -> None:
    result, rows = reported
    latency_us = np.array([row.done_us - row.intended_us for row in rows])
    sla = result.stages[0]
    quantiles = (sla.p50_s, sla.p90_s, sla.p95_s, sla.p99_s, sla.p999_s, sla.p9999_s, sla.max_s)
    expected = [measures.percentile_us(latency_us, q) / 1e6 for q in (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0)]
    assert list(quantiles) == expected
    assert result.in_sla == measures.in_sla_share(latency_us, 0.012)
    assert 0 < result.in_sla < 1, "the target must divide the events, or this test shows nothing"


def test_every_second_is_equal(reported: tuple[Result, Any]) -> None:
    result, rows = reported
    seconds: dict[int, list[int]] = {}
    for row in rows:
        seconds.setdefault((row.intended_us - STARTED_US) // 1_000_000, []).append(row.done_us - row.intended_us)
    assert sum(result.series.arrivals) == EVENT_COUNT
    for k, latencies in seconds.items():
        assert result.series.arrivals[k] == len(latencies)
        assert result.series.p99_s[k] == measures.percentile_us(np.array(latencies), 0.99) / 1e6
        assert result.series.max_s[k] == max(latencies) / 1e6
