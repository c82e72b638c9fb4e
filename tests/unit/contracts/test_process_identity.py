"""The identity of a process is unique and independent of the wall clock."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from clock_that_steps import SteppedClock, needs_libfaketime

from autoscaler.live.launchers.processes import process_identity


def test_a_process_has_one_unique_identity_until_it_ends() -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    try:
        own = process_identity(sleeper.pid)
        assert own
        assert own == process_identity(sleeper.pid)
        assert own != process_identity(os.getpid())
    finally:
        sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert process_identity(sleeper.pid) == "", "it has ended, though it was not collected"
    sleeper.wait()
    assert process_identity(sleeper.pid) == ""


@needs_libfaketime
@pytest.mark.parametrize("step", [3600, -3600, 15])
def test_the_identity_does_not_depend_on_the_wall_clock(step: int, tmp_path: Path) -> None:
    read = f"from autoscaler.live.launchers.processes import process_identity; print(process_identity({os.getpid()}))"
    clock = SteppedClock(tmp_path)
    clock.set(step)
    environ = os.environ | clock.environ
    ended = subprocess.run([sys.executable, "-c", read], env=environ, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == process_identity(os.getpid())
