"""A topic of another application is recorded: every record once, with time and partition; then simulated."""

import json
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import command_line
import numpy as np
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic
from kafka_helpers import DEADLINE_S, admin, create_topics, produce
from odd_headers import produce_bomb
from pyarrow import parquet

from contracts.topics import Topic
from loadgen import recording
from tailpack.cli import record
from tailpack.errors import TailpackError

pytestmark = pytest.mark.kafka

PARTITIONS = 4
BEGAN_MS = 1_767_225_600_250


def create(kafka: str, topic: str, partitions: int) -> None:
    asked = admin(kafka)  # it must live until it has the answer
    asked.create_topics([NewTopic(topic, partitions, 1)])[topic].result(DEADLINE_S)


def foreign(kafka: str, topic: str, events: int) -> list[tuple[int, int, int]]:
    """Write with a plain producer, times out of order; return time (ms), partition and key of each record."""
    create(kafka, topic, PARTITIONS)
    random = np.random.default_rng(3)
    at_ms = (BEGAN_MS + random.integers(0, 30_000, events)).tolist()
    partitions = random.choice(PARTITIONS, events, p=[0.5, 0.3, 0.2, 0.0]).tolist()
    rows = list(zip(at_ms, partitions, random.integers(0, 50, events).tolist(), strict=True))
    producer = Producer({"bootstrap.servers": kafka, "compression.type": "lz4", "linger.ms": 20})
    for at_ms, partition, key in rows:
        producer.produce(topic, b"x" * (key + 1), f"k{key}".encode(), partition, timestamp=at_ms)
    assert producer.flush(DEADLINE_S) == 0
    return rows


def test_a_foreign_topic_is_recorded_simulated_and_sorted(kafka: str, namespace: str, tmp_path: Path) -> None:
    rows = sorted(foreign(kafka, namespace, 3000))
    trace = tmp_path / "mine.parquet"
    reach = ("--bootstrap-servers", kafka, "--topic", namespace)
    printed = json.loads(command_line.run("record", *reach, "--out", trace, "--json").stdout)
    assert (printed["events"], printed["partitions"], printed["missing"]) == (3000, PARTITIONS, [])
    found = parquet.read_table(trace)
    begin_s = rows[0][0] // 1000
    assert [round(at_s * 1000) for at_s in found["at_s"].to_pylist()] == [row[0] - begin_s * 1000 for row in rows]
    assert Counter(found["partition"].to_pylist()) == Counter(row[1] for row in rows)
    assert Counter(Counter(found["key"].to_pylist()).values()) == Counter(Counter(row[2] for row in rows).values())
    assert sum(found["size"].to_pylist()) == sum(row[2] + 1 + len(f"k{row[2]}") for row in rows)
    assert list(tmp_path.iterdir()) == [trace]

    few = ["--set", "max_replicas=4", "--out", tmp_path / "run"]
    assert command_line.run("simulate", "w1", "--trace", trace, *few).exit_code == 0
    played = parquet.read_table(tmp_path / "run" / "events.parquet")["partition"].to_pylist()
    assert Counter(played) == Counter(row[1] for row in rows)


def test_only_records_that_can_be_replayed_are_recorded_and_all_others_are_named(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    rows = foreign(kafka, namespace, 500)
    asked = admin(kafka)
    asked.delete_records([TopicPartition(namespace, 1, 40)])[TopicPartition(namespace, 1)].result(DEADLINE_S)
    transactional = Producer({"bootstrap.servers": kafka, "transactional.id": namespace, "linger.ms": 0})
    transactional.init_transactions(DEADLINE_S)
    plain = Producer({"bootstrap.servers": kafka})
    for at_ms in (BEGAN_MS // 1000, -1):  # seconds, none
        plain.produce(namespace, None, partition=2, timestamp=at_ms)
    for end in (transactional.commit_transaction, transactional.abort_transaction):
        transactional.begin_transaction()
        for _ in range(5):
            transactional.produce(namespace, None, partition=3)  # a tombstone without a key
        end(DEADLINE_S)  # leaves a marker where the partition ends
    reader = Consumer({"bootstrap.servers": kafka, "group.id": namespace})
    reader.commit(offsets=[TopicPartition(namespace, n, at) for n, at in ((0, 100), (1, 10))], asynchronous=False)
    transactional.begin_transaction()
    transactional.produce(namespace, None, partition=3)
    transactional.flush(DEADLINE_S)
    plain.produce(namespace, None, partition=3)
    plain.flush(DEADLINE_S)
    reach = ["--bootstrap-servers", kafka, "--topic", namespace, "--group", namespace, "--json"]
    printed = json.loads(command_line.run("record", *reach, "--out", tmp_path / "rest.parquet").stdout)
    missing = {part["reason"]: (part["partitions"], part["records"]) for part in printed["missing"]}
    assert missing == {"open-transaction": ([3], 2), "time": ([2], 2), "removed": ([1], 30)}
    found = Counter(parquet.read_table(tmp_path / "rest.parquet")["partition"].to_pylist())
    assert found == Counter(row[1] for row in rows) - Counter({0: 100, 1: 40}) + Counter({3: 5})
    assert reader.committed([TopicPartition(namespace, 0)], DEADLINE_S)[0].offset == 100, "it is only read"
    reader.close()


def test_a_missing_topic_or_group_is_one_line_and_leaves_no_file(kafka: str, namespace: str, tmp_path: Path) -> None:
    create(kafka, namespace, 1)
    timeless = f"{namespace}-timeless"
    create(kafka, timeless, 1)
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(timeless, b"", timestamp=-1)
    assert producer.flush(DEADLINE_S) == 0
    here, away = (["--bootstrap-servers", address] for address in (kafka, "127.0.0.1:1"))
    for reach, problem in (
        ([*here, "--topic", "nobody"], "topic nobody at .*; name an existing one"),
        ([*here, "--topic", namespace, "--group", "nobody"], "group nobody at .* has no committed offset of topic"),
        ([*here, "--topic", namespace], "no record to save"),
        ([*here, "--topic", timeless], f"no record to save; .* first topic {timeless}, partition 0, offset 0"),
        ([*away, "--topic", namespace], "Kafka at 127.0.0.1:1 does not answer"),
    ):
        with pytest.raises(TailpackError, match=problem):
            command_line.run("record", *reach, "--out", tmp_path / "none" / "mine.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_growing_topic_is_recorded_until_ctrl_c_which_saves_the_trace(
    kafka: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign(kafka, namespace, 200)
    client = admin(kafka)

    def tell(*, completed: int) -> None:
        if completed > 200:
            raise KeyboardInterrupt
        client.create_partitions([NewPartitions(namespace, PARTITIONS + 1)])[namespace].result(DEADLINE_S)
        late = Producer({"bootstrap.servers": kafka})  # it knows the new partition
        late.produce(namespace, b"late", partition=PARTITIONS)
        assert late.flush(DEADLINE_S) == 0

    monkeypatch.setattr(recording, "COUNT_EVERY_S", 0.0)
    monkeypatch.setattr(record, "progress", lambda _, total: nullcontext(tell))
    reach = ["--bootstrap-servers", kafka, "--topic", namespace, "--seconds", "600"]
    done = command_line.run("record", *reach, "--out", tmp_path / "mine.parquet", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["interrupted"]) == (130, True)
    partitions = parquet.read_table(tmp_path / "mine.parquet")["partition"].to_pylist()
    assert len(partitions) == found["events"] > 200, "where it ended at the start is no end here"
    assert (PARTITIONS in partitions, found["partitions"]) == (True, PARTITIONS + 1)


PROGRESS_THEN_RECORD = """
import atexit, pathlib, runpy, sys; from autoscaler.live.progress_reader import Connection, ProgressReader
atexit.register(lambda: print(pathlib.Path("/proc/self/status").read_text()))
print(ProgressReader(Connection(bootstrap_servers=sys.argv[3], namespace=sys.argv[5].split(".")[0])).unreadable)
runpy.run_module("tailpack", run_name="__main__")
"""


def test_batches_that_unpack_to_500_mb_exhaust_no_reader(kafka: str, namespace: str, tmp_path: Path) -> None:
    create_topics(kafka, namespace, 1)
    for codec, mb in (("gzip", 500), ("lz4", 240)):
        produce_bomb(kafka, namespace, Topic.PROGRESS, 0, codec, mb=mb)
    produce(kafka, namespace, Topic.PROGRESS, [b"{}"])
    reach = ["--bootstrap-servers", kafka, "--topic", f"{namespace}.{Topic.PROGRESS}", "--out", tmp_path / "a.parquet"]
    child = [sys.executable, "-c", PROGRESS_THEN_RECORD, "record", *map(str, reach), "--json"]
    output = subprocess.check_output(child, text=True)
    assert "skipped offset 2" in output
    assert '"missing":[{"reason":"unreadable","partitions":[0],"records":2' in output
    assert int(output.partition("VmHWM:")[2].split()[0]) < 200_000, "kB"
