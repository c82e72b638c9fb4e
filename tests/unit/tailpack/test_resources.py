"""CPU and memory are counted by name, over restarts, and only of processes that exist."""

import os
import subprocess
import sys

from tailpack.local.resources import ResourceMeter


def test_real_processes_have_memory_and_dead_ones_do_not() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait(30)
    meter = ResourceMeter()
    assert 5 < meter.sample({"this": os.getpid(), "dead": dead.pid}, 0.0) < 2000
    assert set(meter.usages) == {"this"}
