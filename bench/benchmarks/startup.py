"""How long a replica takes from its request until it is ready, as a process of this machine."""

import os
import tempfile
from dataclasses import dataclass
from typing import Final

import numpy as np

from autoscaler.live.composition import launcher_from
from autoscaler.live.launcher import LOOK_S, LauncherError
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.replicas import ReplicaScaler
from autoscaler.live.settings import AutoscalerSettings
from bench import BenchError
from bench.benchmark import Benchmark, Row, Tools
from contracts.clock import steady_s
from contracts.connection import Connection
from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.validation import as_environment
from contracts.waiting import NotWithinError, until

STARTS: Final = 12
ENOUGH_S: Final = 20.0
"""No start begins later."""
DEADLINE_S: Final = 30.0
FAILED: Final = (ReplicaChange.START_FAILED, ReplicaChange.DIED)


@dataclass(kw_only=True)
class Startup(Benchmark):
    """Measure how long a replica takes from its request until it is ready."""

    def measure(self, case: str, tools: Tools) -> Row:
        """Start and stop one replica after the other; return seconds from the request."""
        took = list[float]()
        with tools.kafka("startup", 4) as connection, tempfile.TemporaryDirectory() as folder:
            try:
                one, began_s = _One(connection, folder), steady_s()
                while len(took) < STARTS and steady_s() - began_s < ENOUGH_S:
                    tools.announce(said=f"start {len(took) + 1} of {STARTS}")
                    took.append(one.start(f"payment-{len(took)}"))
                one.close()
            except (LauncherError, NotWithinError) as wrong:
                raise BenchError(str(wrong)) from wrong
        p50, p99 = np.percentile(took, (50, 99))
        return {"n": len(took), "asked_to_ready_p50_s": float(p50), "p99_s": float(p99)}


class _One:
    """One replica at a time."""

    def __init__(self, connection: Connection, folder: str) -> None:
        settings = AutoscalerSettings(policy="static", launcher="processes", state_dir=folder)
        self._launcher = launcher_from(settings, os.environ | as_environment(connection) | as_environment(settings))
        self._changes: list[ReplicaChanged] = []
        self._scaler, self._reports = ReplicaScaler(self._launcher, self._changes.append), ProgressReader(connection)

    def start(self, name: str) -> float:
        """Start it, wait until it is ready, stop it; return the time until it was ready (s)."""
        asked_s = steady_s()
        self._scaler.request([name])
        try:
            until(lambda: self._seen(name, ReplicaChange.READY), DEADLINE_S, f"{name} is ready", LOOK_S)
            return steady_s() - asked_s
        finally:
            self._scaler.stop_all()
            until(lambda: self._seen(name, ReplicaChange.LEFT), DEADLINE_S, f"{name} has ended", LOOK_S)

    def _seen(self, name: str, wanted: ReplicaChange) -> bool:
        self._scaler.reconcile(self._reports.poll())
        mine = {one.change: one.detail for one in self._changes if one.replica == name}
        if wanted is ReplicaChange.READY and (failed := next((one for one in FAILED if one in mine), None)):
            raise BenchError(f"{name} did not start: {mine[failed]}")
        return wanted in mine

    def close(self) -> None:
        """Leave the brokers."""
        self._reports.close()
        self._launcher.close()
