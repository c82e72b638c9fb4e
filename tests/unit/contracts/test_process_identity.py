"""What tells a process from any other, whatever the wall clock says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from clock_that_steps import SteppedClock, needs_libfaketime

from contracts.children import process_identity


def test_a_process_keeps_its_identity_and_no_other_has_it() -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    try:
        who = process_identity(sleeper.pid)
        assert who
        assert who == process_identity(sleeper.pid)
        assert who != process_identity(os.getpid())
    finally:
        sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert process_identity(sleeper.pid) == "", "it has ended, though nobody has collected it"
    sleeper.wait()
    assert process_identity(sleeper.pid) == ""


@needs_libfaketime
@pytest.mark.parametrize("step", [3600, -3600, 15])
def test_whoever_reads_it_under_another_clock_reads_the_same(step: int, tmp_path: Path) -> None:
    read = f"from contracts.children import process_identity; print(process_identity({os.getpid()}))"
    clock = SteppedClock(tmp_path)
    clock.set(step)
    environ = os.environ | clock.environ
    seen = subprocess.run([sys.executable, "-c", read], env=environ, capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == process_identity(os.getpid())
