"""docs/own-service.md as somebody follows it in a folder: its files written, its lines typed."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic
from kafka_helpers import admin, end_offsets, wait_for

from autoscaler.live.launchers.processes import remembered
from tailpack.local.ports import free_port

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own-service.md").read_text(encoding="utf-8")
FILE = re.compile(r"```(?:python|toml|dockerfile|yaml)\n# (\S+)(, more)?\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)
PARTITIONS = 8


class Reader:
    """Somebody who follows the page in `folder`; `stands_for` replaces words of it.

    at: the heading of what differs from processes; empty: nothing.
    """

    def __init__(self, folder: Path, kafka: str, at: str = "", **stands_for: str) -> None:
        self.folder, self.kafka, self.port = folder, kafka, free_port()
        self._stands_for = {"127.0.0.1:9092": kafka, "8600": str(self.port)} | stands_for
        general, *others = re.split(r"^## (?=As )", PAGE, flags=re.MULTILINE)
        sections = {text.partition("\n")[0]: text for text in others}
        for text in (general, sections.get(at, "")):
            for name, more, content in FILE.findall(text):
                (folder / name).parent.mkdir(exist_ok=True)
                with (folder / name).open("a" if more else "w", encoding="utf-8") as file:
                    file.write(self._here(content))
        self.create, self.autoscale, see = self._commands(general)
        self.load, *self.looks = see.splitlines()
        self.differs = "\n".join(self._commands(sections.get(at, ""))).splitlines()
        tools = folder / "bin"
        tools.mkdir()
        for name, arguments in (("tailpack", "-m tailpack "), ("python", "")):
            (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments}"$@"\n')
            (tools / name).chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
        self.environ = kept | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}"}
        self.started: list[subprocess.Popen[str]] = []

    def _commands(self, text: str) -> list[str]:
        return [self._here(block).strip() for block in COMMANDS.findall(text)]

    def _here(self, text: str) -> str:
        for word, instead in self._stands_for.items():
            text = text.replace(word, instead)
        return text

    def start(self, line: str) -> "subprocess.Popen[str]":
        """Type a line; its output is read at the end."""
        pipe = subprocess.PIPE
        words = ["bash", "-c", line if "\n" in line else f"exec {line}"]
        process = subprocess.Popen(words, stdout=pipe, stderr=pipe, cwd=self.folder, env=self.environ, text=True)
        self.started.append(process)
        return process

    def type(self, line: str) -> "subprocess.CompletedProcess[str]":
        """Type a line and wait for its end."""
        process = self.start(line)
        said, complained = process.communicate(timeout=120)
        return subprocess.CompletedProcess(line, process.returncode, said, complained)

    def plan(self) -> list[str]:
        """Return the replicas of the plan in force, as step 5 looks at it; none while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/plan", timeout=10) as answer:
                return (json.load(answer).get("in_force") or {}).get("replicas", [])
        except OSError:
            return []

    def topics(self) -> None:
        """The topic that is there, and step 3."""
        client = admin(self.kafka)
        client.create_topics([NewTopic("names", PARTITIONS)])["names"].result(60)
        created = self.type(self.create)
        assert created.returncode == 0, created.stderr

    def scaled(self, running: "subprocess.Popen[str]") -> list[str]:
        """Step 5, until every event is committed; return the largest plan that was seen."""

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
            return [one.offset for one in asks.committed([TopicPartition("names", p) for p in range(PARTITIONS)])]
        finally:
            asks.close()

    def close(self) -> None:
        """End what was started."""
        for process in self.started:
            process.kill()
            process.communicate()
        for _, _, process in remembered(self.folder / "state"):
            if process is not None:
                psutil.Process(process.pid).kill()
