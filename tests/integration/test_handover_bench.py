"""The harness on real Kafka: a few handovers, analysed, and nothing left behind."""

import psutil
import pytest

from bench.handover.courses import Steps, handover
from bench.handover.setup import Setup
from contracts.connection import Connection
from tailpack.local.topics import create_topics

pytestmark = [pytest.mark.kafka, pytest.mark.long]


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def test_partitions_move_under_load_and_every_event_is_accounted_for(kafka: str, namespace: str) -> None:
    before = children()
    said: list[tuple[str, int]] = []
    setup = Setup(replicas=2, partitions=4, rate=60, heartbeat_s=1.0)
    connection = Connection(bootstrap_servers=kafka, namespace=namespace)
    create_topics(connection, setup.partitions)
    result, rounds = handover(
        setup, connection, lambda words, done: said.append((words, done)), steps=Steps.MIXED, enough=3
    )
    figures = result.figures
    assert figures.handovers >= 3
    assert sum(one.taken for one in rounds) >= 3, "the replicas told of them"
    assert {one.kind for one in figures.kinds} == {"move 1", "move 2"}, "with two replicas two partitions change places"
    assert (figures.lost, figures.duplicates, figures.order_violations, figures.offset_regressions) == (0, 0, 0, 0)
    assert figures.unfinished == 0
    assert figures.moved_p99_s is not None
    assert 0 < figures.moved_p99_s <= (figures.moved_max_s or 0)
    assert figures.worst is not None
    assert figures.worst.latency_s == figures.moved_max_s
    assert said[-1][1] >= 3, "the progress line heard of all"
    assert children() <= before, "no process is left behind"
