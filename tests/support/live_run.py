"""Run `tailpack run` as a process, as a user does, and find its child processes."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from kafka_helpers import wait_for


@dataclass(slots=True)
class LiveRun:
    """A run that was started. `out` is the folder for its folder."""

    out: Path
    process: "subprocess.Popen[str]"
    errors: str = ""

    @property
    def folder(self) -> Path:
        """Wait until the run has a folder, and return it."""
        return wait_for(lambda: next(iter(self.out.glob("*/")), None), "the run's folder")

    def wait_for_second(self, second: float) -> None:
        """Wait until this second of the workload."""
        start = wait_for(lambda: self.folder.joinpath("start_at"), "start")
        wait_for(start.exists, "the start of the load", deadline_s=90)
        due = int(start.read_text()) / 1e6 + second
        wait_for(lambda: time.time() >= due, f"second {second}")

    def child(self, module: str) -> psutil.Process:
        """Return the process that runs `module`, e.g. autoscaler.live."""
        return wait_for(lambda: next(iter(self.running(module)), None), f"a process of {module}")

    def running(self, module: str) -> list[psutil.Process]:
        """Return all processes that run `module`."""
        found = []
        for child in self.family():
            with suppress(psutil.Error):  # one that has just ended, such as git or `java -version`
                found += [child] if module in child.cmdline() else []
        return found

    def family(self) -> list[psutil.Process]:
        """Return all processes that the run has started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Send SIGINT, as Ctrl-C does."""
        os.kill(self.process.pid, number)

    def ended(self, *, deadline_s: float = 150) -> tuple[int, dict[str, Any]]:
        """Wait for the end; return the exit status and the printed result.json, or {}."""
        output, errors = self.process.communicate(timeout=deadline_s)
        self.errors = errors
        return self.process.returncode, json.loads(output) if output.strip() else {}


def start_run(out: Path, *options: str) -> LiveRun:
    """Start `tailpack run` with `options`."""
    command = [sys.executable, "-m", "tailpack", "run", "--out", str(out), "--json", *options]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return LiveRun(out, process)
