"""CPU and memory are counted by name, over restarts, and only of processes that exist."""

import os
import subprocess
import sys
from collections import namedtuple
from contextlib import nullcontext

import psutil
import pytest

from tailpack.local.resources import ResourceMeter, Usage

MIB = 2**20
Times = namedtuple("Times", "user system idle iowait guest", defaults=(0,) * 3)
Memory = namedtuple("Memory", "pss uss")
Running = dict[int, tuple[float, float]]


class Process:
    """A process as psutil would show it."""

    oneshot = nullcontext

    def __init__(self, cpu_s: float, mib: float) -> None:
        self.cpu_times = lambda: Times(0.75 * cpu_s, 0.25 * cpu_s)
        self.memory_full_info = lambda: Memory(mib * MIB, 1)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Running:
    """The processes that psutil finds: pid → (CPU seconds, PSS in MiB)."""
    shown: Running = {}
    monkeypatch.setattr(psutil, "Process", lambda pid: Process(*shown[pid]))
    return shown


def test_cores_are_cpu_seconds_over_the_time_watched_and_restarts_count_as_one(running: Running) -> None:
    meter = ResourceMeter()
    for now, pid, cpu_s in ((10.0, 7, 5.0), (12.0, 7, 6.0), (14.0, 8, 0.5), (16.0, 8, 1.0)):
        running[pid] = (cpu_s, 100.0)
        meter.sample({"order": pid}, now)
    assert meter.usages["order"] == Usage(name="order", cpu_s=1.5, watched_s=4.0, peak_mib=100.0)
    assert meter.usages["order"].cores == 0.375, "what it used before it was watched is not counted"


def test_real_processes_have_memory_and_dead_ones_do_not() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait(30)
    meter = ResourceMeter()
    assert 5 < meter.sample({"this": os.getpid(), "dead": dead.pid}, 0.0) < 2000
    assert set(meter.usages) == {"this"}
