"""Tests that every launcher must pass. tests/contract runs them with processes, tests/kubernetes on a cluster.

A subclass defines the fixture `nursery`.
"""

import os
import re
from pathlib import Path
from typing import Protocol

import msgspec
import pytest
from kafka_helpers import wait_for

from autoscaler.live.launcher import Launcher, stop_orphans
from autoscaler.live.launchers.processes import ProcessLauncher, ReplicaProcess
from autoscaler.live.replicas import ReplicaScaler
from contracts.children import python_module
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.progress import Progress, ReplicaState


class Nursery(Protocol):
    """Starts replicas of tests/support/reporting_replica.py."""

    killed: str
    """Description of the exit of a killed replica."""
    keeps_the_dead: bool
    """Whether the next autoscaler finds dead replicas. If not, only the session timeout detects them."""

    def launcher(self, **environ: str) -> Launcher:
        """Return a launcher. environ: additional variables. A second launcher stands for a restarted autoscaler."""

    def log_of(self, name: str) -> str:
        """Return the log of the replica `name`; empty before it has started."""


class Processes:
    """Replicas as processes."""

    killed = "killed by SIGKILL"
    keeps_the_dead = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[ReplicaProcess] = []
        self._environ = dict(os.environ) | {"PYTHONPATH": str(Path(__file__).parent)}

    def launcher(self, **environ: str) -> ProcessLauncher:
        started = self.started

        class Noted(ProcessLauncher):
            def start(self, name: str) -> ReplicaProcess:
                started.append(super().start(name))
                return started[-1]

        return Noted(self.folder, python_module("reporting_replica"), self._environ | environ)

    def close(self) -> None:
        """Kill every child and wait for it."""
        for process in self.started:
            process.kill()
            wait_for(process.exit, "its end")

    def log_of(self, name: str) -> str:
        log = self.folder / "logs" / f"{name}.log"
        return log.read_text() if log.exists() else ""


class World:
    """A scaler with a launcher. Reports are read from the replicas' logs."""

    def __init__(self, nursery: Nursery, launcher: Launcher) -> None:
        self.launcher = launcher
        self.changes: list[ReplicaChanged] = []
        self.reports: dict[str, Progress] = {}
        self.scaler = ReplicaScaler(launcher, self.changes.append)
        self._nursery = nursery

    def until(self, change: ReplicaChange, name: str = "payment-0") -> ReplicaChanged:
        """Run ticks until the journal has the change; return it."""

        def step() -> ReplicaChanged | None:
            self.scaler.reconcile(self.reports)
            found = [entry for entry in self.changes if entry.change is change and entry.replica == name]
            return found[-1] if found else None

        return wait_for(step, f"{change} of {name}; so far {self.changes}")

    def wait_for_report(self, name: str = "payment-0", **changes: object) -> Progress:
        """Wait for the report of replica `name` and return it."""
        line = wait_for(lambda: re.findall(r"^{.*}$", self._nursery.log_of(name), re.MULTILINE), f"a report of {name}")
        report = msgspec.json.decode(line[-1], type=Progress)
        self.reports[name] = msgspec.structs.replace(report, **changes)
        return self.reports[name]


class LauncherContract:
    """Subclass it in a test module."""

    def test_a_replica_reports_under_the_name_it_was_started_with(self, nursery: Nursery) -> None:
        world = World(nursery, nursery.launcher())
        world.scaler.request(["payment-0", "payment-1"])
        reports = [world.wait_for_report(name) for name in ("payment-0", "payment-1")]
        for report in reports:
            world.until(ReplicaChange.READY, report.replica)
        assert [report.replica for report in reports] == ["payment-0", "payment-1"]
        world.reports["payment-2"] = reports[0]
        world.scaler.request(["payment-2"])
        world.scaler.reconcile(world.reports)
        assert not world.scaler.is_ready("payment-2"), "that report is another one's"

    def test_a_replica_is_stopped_after_its_drain_and_exits_cleanly(self, nursery: Nursery) -> None:
        world = World(nursery, nursery.launcher())
        world.scaler.request(["payment-0"])
        world.wait_for_report()
        world.until(ReplicaChange.READY)
        world.scaler.release("payment-0")
        world.scaler.reconcile(world.reports)
        assert "gave everything back" not in nursery.log_of("payment-0")
        world.wait_for_report(state=ReplicaState.DRAINED)
        world.until(ReplicaChange.DRAINED)
        assert world.until(ReplicaChange.LEFT).detail == "exit status 0"
        assert world.scaler.evictions == []
        world.launcher.close()
        assert list(nursery.launcher().find_orphans()) == [], "nothing is left of it"

    def test_a_dead_replica_shows_its_exit_status_and_is_replaced(self, nursery: Nursery) -> None:
        world = World(nursery, nursery.launcher())
        world.scaler.request(["payment-0"])
        first = world.wait_for_report()
        world.until(ReplicaChange.READY)
        killed = next(iter(nursery.launcher().find_orphans())).instance
        killed.kill()
        assert nursery.killed in world.until(ReplicaChange.DIED).detail
        assert [eviction.incarnation for eviction in world.scaler.evictions] == [first.incarnation]
        world.changes.clear()
        world.until(ReplicaChange.STARTED)
        wait_for(lambda: world.wait_for_report().incarnation != first.incarnation, "the report of its successor")
        world.until(ReplicaChange.READY)

    def test_a_failed_start_records_its_status_and_last_log_line_and_is_retried(self, nursery: Nursery) -> None:
        world = World(nursery, nursery.launcher(REPLICA_ENDS="3"))
        world.scaler.request(["payment-0"])
        detail = world.until(ReplicaChange.START_FAILED).detail
        assert detail == "exit status 3; last log line: the disk is full; attempt 2 in 0.5 s"
        world.changes.clear()
        world.until(ReplicaChange.STARTED)
        assert "attempt 3 in 1 s" in world.until(ReplicaChange.START_FAILED).detail

    def test_the_next_autoscaler_adopts_running_replicas_and_recognizes_dead_ones(self, nursery: Nursery) -> None:
        first = World(nursery, nursery.launcher())
        first.scaler.request(["payment-0", "payment-1"])
        for name in ("payment-0", "payment-1"):
            first.wait_for_report(name)
            first.until(ReplicaChange.READY, name)
        first.launcher.close()  # from here on no scaler reconciles
        left = {orphan.name: orphan.instance for orphan in nursery.launcher().find_orphans()}
        left["payment-1"].kill()
        wait_for(left["payment-1"].exit, "its end")

        again = World(nursery, nursery.launcher())
        again.scaler.adopt(first.reports)
        assert again.scaler.requested == ("payment-0",)
        again.until(ReplicaChange.ADOPTED)
        again.until(ReplicaChange.READY)
        if nursery.keeps_the_dead:
            again.until(ReplicaChange.DIED, "payment-1")
            assert [eviction.replica for eviction in again.scaler.evictions] == ["payment-1"]
        again.scaler.stop_all()
        again.until(ReplicaChange.LEFT)

    @pytest.mark.parametrize(
        ("drains_s", "patience_s", "as_expected"),
        [("0.3", 20.0, (["payment-0"], [])), ("60", 0.0, ([], ["payment-0"]))],
    )
    def test_stopping_orphans_waits_for_each_and_kills_after_the_timeout(
        self, nursery: Nursery, drains_s: str, patience_s: float, as_expected: tuple[list[str], list[str]]
    ) -> None:
        world = World(nursery, nursery.launcher(REPLICA_DRAINS_S=drains_s))
        world.scaler.request(["payment-0"])
        world.wait_for_report()
        world.launcher.close()
        assert stop_orphans(nursery.launcher(), patience_s) == as_expected
        wait_for(lambda: nursery_is_quiet(nursery), "the end of all")

    def test_a_canceled_start_runs_nothing(self, nursery: Nursery) -> None:
        world = World(nursery, nursery.launcher())
        world.scaler.request(["payment-0"])
        world.scaler.release("payment-0")
        world.until(ReplicaChange.LEFT)
        world.launcher.close()
        assert nursery_is_quiet(nursery)


def nursery_is_quiet(nursery: Nursery) -> bool:
    """Return whether all processes have exited."""
    return all(orphan.instance.exit() is not None for orphan in nursery.launcher().find_orphans())
