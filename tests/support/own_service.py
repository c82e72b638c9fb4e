"""Perform the steps of docs/tutorials/own-consumer.md, so that its test can check each step."""

import json
import subprocess
import urllib.request
from pathlib import Path

import follow
import psutil
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic
from kafka_helpers import admin, end_offsets, wait_for

from autoscaler.live.launchers.processes import read_pid_files

PAGE = follow.DOCS / "tutorials" / "own-consumer.md"
PARTITIONS = 8


class Reader(follow.Reader):
    """A user of that page. The files of the page exist."""

    def __init__(self, folder: Path, kafka: str, suite: str = "", **stands_for: str) -> None:
        super().__init__(PAGE, folder, kafka, suite, **stands_for)
        for block in self.blocks:
            self.write(block)
        self.create, self.autoscale, see, *differs = self.commands()
        self.load, *self.looks = see.splitlines()
        assert len(differs) == bool(suite), "a block that no test types"
        self.differs = "\n".join(differs).splitlines()

    def plan(self) -> list[str]:
        """Return the replicas of the plan in force, as in step 5; empty without an answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['8600']}/plan", timeout=10) as answer:
                return (json.load(answer).get("in_force") or {}).get("replicas", [])
        except OSError:
            return []

    def topics(self) -> None:
        """Create the events topic, then perform step 3."""
        client = admin(self.kafka)
        client.create_topics([NewTopic("names", PARTITIONS)])["names"].result(60)
        created = self.type(self.create)
        assert created.returncode == 0, created.stderr

    def scaled(self, running: "subprocess.Popen[str]") -> list[str]:
        """Perform step 5 until every event is committed; return the largest plan."""

        def in_force(least: int) -> list[str]:
            assert running.poll() is None, running.communicate()
            plan = self.plan()
            return plan if len(plan) >= least else []

        wait_for(lambda: in_force(1), "the first plan")
        load = self.start(self.load)
        most = wait_for(lambda: in_force(3), "three replicas for 250 events/s")
        assert load.wait(timeout=120) == 0
        wait_for(lambda: self._committed() == end_offsets(self.kafka, "names"), "every event is committed")
        return most

    def _committed(self) -> list[int]:
        asks = Consumer({"bootstrap.servers": self.kafka, "group.id": "greeters"})
        try:
            return [place.offset for place in asks.committed([TopicPartition("names", p) for p in range(PARTITIONS)])]
        finally:
            asks.close()

    def close(self) -> None:
        """End all processes that were started."""
        super().close()
        for _, _, process in read_pid_files(self.folder / "state"):
            if process is not None:
                psutil.Process(process.pid).kill()
