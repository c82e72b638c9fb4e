"""Memory is counted only of processes that exist."""

import os
import subprocess
import sys
from collections import namedtuple

import psutil
import pytest

from tailpack.local.resources import ResourceMeter


def test_real_processes_have_memory_and_dead_ones_do_not() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait(30)
    meter = ResourceMeter()
    assert 5 < meter.sample([os.getpid(), dead.pid], 0.0) < 2000


def test_cores_are_not_busy_with_niced_work(monkeypatch: pytest.MonkeyPatch) -> None:
    Times = namedtuple("Times", "user nice system idle")
    times = iter([Times(0, 0, 0, 0), Times(50, 50, 0, 0), Times(150, 50, 0, 0)])
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(times))
    monkeypatch.setattr(psutil, "cpu_count", lambda: 10)
    meter = ResourceMeter()
    assert [meter.sample([], 0.0) or meter.full_s for _ in range(3)] == [0.0, 0.0, 10.0]
