"""Run the autoscaler as a process under test, and read its topics."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import psutil
from journal_entries import entries
from kafka_helpers import DEADLINE_S, create_topics, read_all, wait_for
from tailpack_command import tailpack

from autoscaler.live.launchers.processes import read_pid_files
from contracts.clock import now_us
from contracts.journal import JournalEntry, PlanWritten, ReplicaChanged, TickRecord
from contracts.plan import PlanRecord
from contracts.topics import Topic
from tailpack.local.ports import free_port

TESTS = Path(__file__).parent
EXIT_DEADLINE_S = 60.0
PARTITIONS = 4


def alive(pid: int) -> bool:
    """Return whether the process runs. A zombie counts as dead."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@dataclass
class Autoscaler:
    """An autoscaler and its replicas. All processes end with its block."""

    kafka: str
    namespace: str
    folder: Path
    policy: str = "static"
    partitions: int = PARTITIONS
    initial_replicas: int = 2
    replica_module: str = "stub_replica"
    more: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[str] | None" = None
    _started_us: int = 0

    def __enter__(self) -> "Autoscaler":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        output = "" if self.process is None else self.process.communicate(timeout=EXIT_DEADLINE_S)[1]
        for pid in self.pids().values():
            if alive(pid):
                psutil.Process(pid).kill()
        if kind is not None:
            print(f"--- autoscaler, exit code {self.process and self.process.returncode}\n{output}")  # noqa: T201  # pytest shows it with the failure
            for log in sorted(self.folder.rglob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-2000:]}")  # noqa: T201

    def start(self) -> None:
        """Start the autoscaler, and return at once."""
        self._started_us = now_us()
        self.process = self._run("autoscaler.live")

    def stop_replicas(self) -> tuple[int, str]:
        """Stop the replicas of an earlier autoscaler by the command; return its exit status and output."""
        process = self._run("tailpack", "autoscale", "--stop-replicas")
        _, output = process.communicate(timeout=EXIT_DEADLINE_S)
        return process.returncode, output

    def _run(self, *command: str) -> "subprocess.Popen[str]":
        settings = {
            "BOOTSTRAP_SERVERS": self.kafka, "NAMESPACE": self.namespace, "POLICY": self.policy,
            "PAYMENT_PARTITIONS": str(self.partitions), "INITIAL_REPLICAS": str(self.initial_replicas),
            "STATE_DIR": str(self.folder), "HTTP_PORT": str(self.port), "REPLICA_MODULE": self.replica_module,
        }  # fmt: skip
        environ = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
        settings["TAKEN_WITHIN_S"] = "120"  # on a busy machine a plan may take long; it is not written again for that
        environ |= {f"TAILPACK_{name}": value for name, value in settings.items()}
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            env=environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])} | self.more,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the caller, who ends it
        )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def ended(self) -> tuple[int, str]:
        """Wait until the autoscaler has ended; return its exit status and output."""
        assert self.process is not None
        _, output = self.process.communicate(timeout=EXIT_DEADLINE_S)
        return self.process.returncode, output

    def pids(self) -> dict[str, int]:
        """Replica → pid, by the pid files."""
        return {name: entry.pid for name, entry, _ in read_pid_files(self.folder)}

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=DEADLINE_S) as answer:
            return json.loads(answer.read())

    def command(self, *words: str) -> str:
        """Return what a command prints about this autoscaler."""
        environ = {"BOOTSTRAP_SERVERS": self.kafka, "NAMESPACE": self.namespace, "HTTP_PORT": str(self.port)}
        own = self.more | {f"TAILPACK_{name}": value for name, value in environ.items()}
        done = tailpack(*words, deadline_s=60, environ=os.environ | own)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def acting(self, reason: str) -> dict[str, Any]:
        """Return the condition Acting. Wait until it has this reason."""

        def found() -> dict[str, Any] | None:
            with suppress(OSError):  # the page is opened again
                shown = self.get("/status")["conditions"]
                return next((one for one in shown if (one["type"], one["reason"]) == ("Acting", reason)), None)
            return None

        return wait_for(found, f"act = {reason}")  # type: ignore[no-any-return]

    def plans(self) -> list[PlanRecord]:
        """Every plan that was committed, oldest first."""
        records = read_all(self.kafka, self.namespace, Topic.PLANS)
        return [msgspec.json.decode(record.value(), type=PlanRecord) for record in records]

    def journal(self) -> list[JournalEntry]:
        records = read_all(self.kafka, self.namespace, Topic.JOURNAL)
        return entries(record.value() or b"" for record in records)

    def changes(self, replica: str) -> list[ReplicaChanged]:
        return [entry for entry in self.journal() if isinstance(entry, ReplicaChanged) and entry.replica == replica]

    def ticks(self) -> list[TickRecord]:
        return [entry for entry in self.journal() if isinstance(entry, TickRecord)]

    def wait_for_tick(self, condition: Callable[[TickRecord], object], what: str) -> TickRecord:
        """Return the newest tick since the last start. Wait until it exists and the condition holds for it."""

        def newest() -> TickRecord | None:
            ticks = [tick for tick in self.ticks() if tick.at_us > self._started_us]
            return ticks[-1] if ticks and condition(ticks[-1]) else None

        return wait_for(newest, what)

    def written(self) -> list[PlanWritten]:
        return [entry for entry in self.journal() if isinstance(entry, PlanWritten)]

    def wait_for_plan(self, count: int, *, deadline_s: float = DEADLINE_S) -> list[PlanRecord]:
        """Wait until there are `count` plans, and return all plans."""

        def enough() -> list[PlanRecord] | None:
            assert self.process is not None
            assert self.process.poll() is None, self.process.communicate()
            plans = self.plans()
            return plans if len(plans) >= count else None

        return wait_for(enough, f"{count} plans", deadline_s=deadline_s)


def two_replicas(kafka: str, namespace: str, folder: Path, **more: str) -> Autoscaler:
    """Return an autoscaler of two Payment replicas, not started yet. more: settings, TAILPACK_ left out."""
    create_topics(kafka, namespace, PARTITIONS)
    return Autoscaler(
        kafka,
        namespace,
        folder / "state",
        replica_module="services.payment",
        more={f"TAILPACK_{name}": value for name, value in more.items()},
    )
