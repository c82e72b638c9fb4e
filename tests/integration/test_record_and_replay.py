"""From a topic of another application to a run, by the three commands of docs/howto/own-traffic.md."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kafka_helpers import DEADLINE_S, admin
from pyarrow import parquet

pytestmark = [pytest.mark.kafka, pytest.mark.long]
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "own-traffic.md"
COMMANDS = re.findall(r"^(tailpack .*orders\.parquet)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
PARTITIONS, EVENTS, SECONDS = 5, 800, 8


def somebody_elses(kafka: str, topic: str) -> list[tuple[int, int]]:
    """Let a foreign producer write, unevenly; return time (ms) and partition of each record."""
    asked = admin(kafka)
    asked.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(DEADLINE_S)
    chance = np.random.default_rng(3)
    at_ms = 1_767_225_600_250 + np.sort(chance.integers(0, 1000 * SECONDS, EVENTS))
    partition = chance.choice(PARTITIONS, EVENTS, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    rows = list(zip(at_ms.tolist(), partition.tolist(), strict=True))
    producer = Producer({"bootstrap.servers": kafka, "compression.type": "zstd", "linger.ms": 20})
    for number, (at, to) in enumerate(rows):
        producer.produce(topic, f"<order n='{number}'/>", f"client {number % 40}", to, timestamp=at)
    assert producer.flush(DEADLINE_S) == 0
    return rows


def run(command: str, folder: Path, *more: str) -> None:
    words = [sys.executable, "-m", *shlex.split(command), *more]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_foreign_topic_is_recorded_simulated_and_replayed_by_the_pages_commands(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    assert [shlex.split(command)[1] for command in COMMANDS] == ["record", "simulate", "run"]
    record, simulate, replay = (
        command.replace("kafka:9092", kafka).replace("--topic orders", f"--topic {namespace}") for command in COMMANDS
    )
    rows = somebody_elses(kafka, namespace)
    run(record, tmp_path)
    run(simulate, tmp_path, "--out", "simulated")
    run(replay, tmp_path, "--bootstrap-servers", kafka, "--out", "live")
    (live,) = (tmp_path / "live").iterdir()
    for folder in (tmp_path / "simulated", live):
        found = parquet.read_table(folder / "events.parquet", columns=["intended_us", "partition"])
        intended_us = np.array(found["intended_us"].to_pylist())
        replayed = sorted(zip(intended_us.tolist(), found["partition"].to_pylist(), strict=True))
        recorded = sorted(rows)
        moved_us = replayed[0][0] - 1000 * recorded[0][0]
        assert [(1000 * at_ms + moved_us, partition) for at_ms, partition in recorded] == replayed
