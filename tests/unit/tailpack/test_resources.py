"""CPU and memory are counted by name, over restarts, and only of what is there."""

import os
import subprocess
import sys
from collections import namedtuple
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from tailpack.local import resources
from tailpack.local.resources import ResourceMeter, Usage

MIB = 2**20


class Process:
    """A process as psutil would show it."""

    def __init__(self, cpu_s: float, mib: float) -> None:
        self.cpu_times = lambda: SimpleNamespace(user=0.75 * cpu_s, system=0.25 * cpu_s)
        self.memory_full_info = lambda: SimpleNamespace(pss=mib * MIB, uss=1)
        self.oneshot = nullcontext


Running = dict[int, tuple[float, float]]


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Running:
    """What psutil finds: pid → (CPU seconds, PSS in MiB)."""
    shown: Running = {}
    monkeypatch.setattr(resources.psutil, "Process", lambda pid: Process(*shown[pid]))
    return shown


def test_cores_are_cpu_seconds_over_the_time_watched(running: Running) -> None:
    meter = ResourceMeter()
    for now, cpu_s in ((10.0, 5.0), (12.0, 5.5), (14.0, 6.0)):
        running |= {7: (cpu_s, 100.0)}
        meter.sample({"order": 7}, now)
    assert meter.usages["order"] == Usage(name="order", cpu_s=1.0, watched_s=4.0, peak_mib=100.0)
    assert meter.usages["order"].cores == 0.25, "what it used before it was watched is not counted"


def test_a_process_that_was_started_again_is_one(running: Running) -> None:
    meter = ResourceMeter()
    for now, pid, cpu_s in ((0.0, 7, 1.0), (2.0, 7, 2.0), (4.0, 8, 0.5), (6.0, 8, 1.0)):
        running |= {pid: (cpu_s, 50.0)}
        meter.sample({"payment-0": pid}, now)
    assert (meter.usages["payment-0"].cpu_s, meter.usages["payment-0"].watched_s) == (1.5, 4.0)


def test_the_peak_is_that_of_all_together_at_one_moment(running: Running) -> None:
    meter = ResourceMeter()
    running |= {1: (0.0, 300.0), 2: (0.0, 100.0)}
    assert meter.sample({"kafka": 1, "order": 2}, 0.0) == 400.0
    running |= {1: (0.0, 200.0), 2: (0.0, 150.0)}
    assert meter.sample({"kafka": 1, "order": 2}, 2.0) == 350.0
    assert meter.peak_mib == 400.0
    assert meter.usages["order"].peak_mib == 150.0


def test_real_processes_have_memory_and_dead_ones_do_not() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait(30)
    meter = ResourceMeter()
    total = meter.sample({"this": os.getpid(), "dead": dead.pid}, 0.0)
    assert set(meter.usages) == {"this"}
    assert 5 < total < 2000


def test_usages_are_kept_largest_consumer_first(running: Running, tmp_path: Path) -> None:
    meter = ResourceMeter()
    running |= {1: (0.0, 10.0), 2: (0.0, 20.0)}
    meter.sample({"idle": 1, "busy": 2}, 0.0)
    running |= {1: (0.1, 10.0), 2: (1.9, 20.0)}
    meter.sample({"idle": 1, "busy": 2}, 2.0)
    meter.save(tmp_path / "processes.json")
    found = msgspec.json.decode((tmp_path / "processes.json").read_bytes(), type=list[Usage])
    assert [usage.name for usage in found] == ["busy", "idle"]
    assert found[0] == meter.usages["busy"]


def test_time_without_a_free_core_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    Times = namedtuple("Times", "user system idle iowait guest")
    at = {0: Times(10, 2, 90, 1, 5), 2: Times(13, 2.9, 90.1, 1, 7), 4: Times(14, 3.9, 90.1, 3, 7)}
    monkeypatch.setattr(resources.psutil, "cpu_count", lambda: 2)
    meter = ResourceMeter()
    for now, times in at.items():
        monkeypatch.setattr(resources.psutil, "cpu_times", lambda times=times: times)
        meter.sample({}, now)
    assert meter.full_s == pytest.approx(2.0), "3.9 of 4 seconds, then 2: waiting for a disk leaves the core free"
