"""docs/own-service.md, block by block, on a real Kafka: a consumer of one's own becomes one that is scaled."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kafka_helpers import admin, wait_for

from autoscaler.live.launchers.processes import remembered
from tailpack.local.ports import free_port

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own-service.md").read_text(encoding="utf-8")
FILE = re.compile(r"```(?:python|toml)\n# (\S+)\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)
BEFORE = 40
"""Names that the plain consumers greet."""


class Reader:
    """Somebody who follows the page in a folder."""

    def __init__(self, folder: Path, kafka: str) -> None:
        self.folder, self.kafka, self.port = folder, kafka, free_port()
        for name, text in FILE.findall(PAGE):
            (folder / name).write_text(self._here(text))
        self.create, self.autoscale, see = (self._here(block).strip() for block in COMMANDS.findall(PAGE))
        self.load, *self.looks = see.splitlines()
        tools = folder / "bin"
        tools.mkdir()
        for name, arguments in (("tailpack", "-m tailpack "), ("python", "")):
            (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments}"$@"\n')
            (tools / name).chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
        self.environ = kept | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}"}
        self.started: list[subprocess.Popen[str]] = []

    def _here(self, text: str) -> str:
        return text.replace("127.0.0.1:9092", self.kafka).replace("8600", str(self.port))

    def start(self, line: str) -> "subprocess.Popen[str]":
        """Type a line; its output is read at the end."""
        words = {"cwd": self.folder, "env": self.environ, "text": True}
        pipe = subprocess.PIPE
        self.started.append(subprocess.Popen(shlex.split(line), stdout=pipe, stderr=pipe, **words))
        return self.started[-1]

    def type(self, line: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(line)
        said, complained = process.communicate(timeout=120)
        return subprocess.CompletedProcess(line, process.returncode, said, complained)

    def plan(self) -> list[str]:
        """Return the replicas of the plan in force, as step 5 looks at it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/plan", timeout=10) as answer:
            return (json.load(answer)["in_force"] or {}).get("replicas", [])

    def greeted(self) -> Counter[str]:
        logs = (self.folder / "state" / "logs").glob("greeter-*.log")
        return Counter(line for log in logs for line in log.read_text().splitlines() if line.startswith("hello "))

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()
        for _, _, process in remembered(self.folder / "state"):
            if process is not None:
                psutil.Process(process.pid).kill()


@pytest.fixture
def reader(kafka: str, tmp_path: Path) -> Iterator[Reader]:
    follows = Reader(tmp_path, kafka)
    yield follows
    follows.close()


def test_from_a_consumer_that_exists_to_one_that_is_scaled(reader: Reader, kafka: str) -> None:
    # What there is: the topic, events in it, and a group of plain clients.
    client = admin(kafka)
    client.create_topics([NewTopic("names", 8)])["names"].result(60)
    producer = Producer({"bootstrap.servers": kafka})
    for number in range(BEFORE):
        producer.produce("names", f"before-{number}", partition=number % 8)
    assert producer.flush(60) == 0
    missing = reader.type(reader.autoscale)
    assert (missing.returncode, missing.stderr.count("\n")) == (4, 1), missing.stderr
    assert "create it with tailpack topics create" in missing.stderr

    created = reader.type(reader.create)
    assert created.returncode == 0, created.stderr
    assert "kafka-acls --add --allow-principal User:replica --topic names --operation Read" in created.stdout

    old = reader.start("python before.py")
    assert old.stdout is not None
    before = Counter(old.stdout.readline().strip() for _ in range(BEFORE))
    refused = reader.type(reader.autoscale)
    assert (refused.returncode, refused.stderr.count("\n")) == (4, 1), refused.stderr
    assert "the group greeters follows no plans: its 1 members are plain Kafka clients (assignor " in refused.stderr
    assert not list((reader.folder / "state").rglob("*.log")), "nothing was started"
    old.send_signal(signal.SIGINT)
    assert old.communicate(timeout=60)

    scaled = reader.start(reader.autoscale)

    def in_force() -> list[str] | None:
        assert scaled.poll() is None, scaled.communicate()
        try:
            return reader.plan()
        except OSError:
            return None

    wait_for(in_force, "the first plan")
    load = reader.start(reader.load)
    most = wait_for(lambda: len(reader.plan()) >= 3 and reader.plan(), "three replicas for 250 events/s")
    assert all(name.startswith("greeter-") for name in most)
    assert load.wait(timeout=120) == 0
    for look in reader.looks:
        seen = reader.type(look)
        assert json.loads(seen.stdout), seen.stderr
    wait_for(lambda: sum(reader.greeted().values()) >= 5000, "everybody is greeted")
    wait_for(lambda: len(reader.plan()) == 1, "one replica again", deadline_s=120)
    after = reader.greeted()
    assert {f"hello name-{number}" for number in range(5000)} <= after.keys(), "nobody was left out"
    assert max((before + after).values()) == 1, "and nobody was greeted twice"

    scaled.send_signal(signal.SIGINT)
    assert scaled.wait(timeout=60) == 0, scaled.communicate()
    assert not [name for name, _, process in remembered(reader.folder / "state") if process is not None]
