"""From the moment a replica is asked for until it serves: what a start costs as a process or pod."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from autoscaler.live.composition import launcher_from
from autoscaler.live.launcher import LOOK_S, Launcher, LauncherError
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.replicas import ReplicaScaler
from autoscaler.live.settings import AutoscalerSettings
from bench import BenchError
from contracts.clock import steady_s
from contracts.connection import Connection
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.validation import as_environment, from_environment

STARTS: Final = 12
ENOUGH_S: Final = 20.0
"""No further start is begun after so long."""
DEADLINE_S: Final = 30.0
FAILED: Final = (ReplicaChange.START_FAILED, ReplicaChange.DIED)


class Startup(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from asked for to ready: in the group, and reporting itself."""

    launcher: str
    n: int
    asked_to_ready_p50_s: float
    p99_s: float
    """Also from asked to ready; of few starts the longest, nearly."""


def measure(connection: Connection, launcher: str, folder: Path, announce: Callable[[str], None]) -> Startup:
    """Start one replica after the other on a topic that nobody else uses. Raises BenchError, LauncherError."""
    settings = AutoscalerSettings(policy="static", launcher=launcher, state_dir=str(folder))
    environ = os.environ | as_environment(connection) | as_environment(settings)
    one = _One(launcher_from(settings, environ), ProgressReader(connection))
    took: list[float] = []
    began_s = steady_s()
    while len(took) < STARTS and steady_s() - began_s < ENOUGH_S:
        announce(f"start {len(took) + 1} of {STARTS}")
        took.append(one.start(f"payment-{len(took)}"))
    one.close()
    p50, p99 = np.percentile(took, (50, 99))
    return Startup(launcher=launcher, n=len(took), asked_to_ready_p50_s=float(p50), p99_s=float(p99))


class _One:
    """One replica at a time."""

    def __init__(self, launcher: Launcher, reports: ProgressReader) -> None:
        self._launcher, self._reports = launcher, reports
        self._changes: list[ReplicaChanged] = []
        self._scaler = ReplicaScaler(launcher, self._changes.append)

    def start(self, name: str) -> float:
        """Start it, wait until it is ready, stop it; return how long the first two took (s)."""
        asked_s = steady_s()
        self._scaler.request([name])
        try:
            self._until(name, ReplicaChange.READY)
            return steady_s() - asked_s
        finally:
            self._scaler.stop_all()
            self._until(name, ReplicaChange.LEFT)

    def close(self) -> None:
        """Nothing runs any more."""
        self._launcher.close()

    def _until(self, name: str, wanted: ReplicaChange) -> None:
        give_up_s = steady_s() + DEADLINE_S
        while True:
            self._scaler.reconcile(self._reports.poll())
            for each in (each for each in self._changes if each.replica == name):
                if each.change is wanted:
                    return
                if each.change in FAILED and wanted is ReplicaChange.READY:
                    raise BenchError(f"{name} did not start: {each.detail}")
            if steady_s() > give_up_s:
                raise BenchError(f"{name} was not {wanted} within {DEADLINE_S:.0f} s; {self._launcher.trouble}")
            time.sleep(LOOK_S)


def main() -> None:
    """Measure from within a pod, told by the environment; the last line printed is the figures as JSON."""
    connection = from_environment(os.environ, Connection)
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(connection, "kubernetes", Path(folder), lambda said: print(said, file=sys.stderr))  # noqa: T201
    except (BenchError, LauncherError) as wrong:
        sys.exit(str(wrong))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
