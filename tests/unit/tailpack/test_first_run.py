"""The demo sends a rate that the machine can serve, and pauses set-up while the load runs."""

import os
import subprocess
import sys

import psutil
import pytest

from contracts.waiting import until
from tailpack.first_run import loops_per_s, pause_group, sustainable_share


@pytest.mark.parametrize(
    ("loops", "share"), [(280_000, 1.0), (3_000_000, 1.0), (200_000, 0.7), (140_000, 0.5), (100, 0.1)]
)
def test_a_slow_machine_gets_the_share_of_the_load_that_it_carries_and_a_fast_one_never_more(
    loops: float, share: float
) -> None:
    assert sustainable_share(loops, peak=112) == share


def test_the_measure_is_a_rate() -> None:
    assert loops_per_s(0.01) > 100


def test_set_up_is_stopped_while_the_load_is_on() -> None:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as setup:
        process = psutil.Process(setup.pid)
        with pause_group(os.getpgid(setup.pid)):
            until(lambda: process.status() == psutil.STATUS_STOPPED, 5, "it is stopped")
        until(lambda: process.status() != psutil.STATUS_STOPPED, 5, "it goes on")
        setup.communicate(b"\n")
    with pause_group(setup.pid), pause_group(None):
        pass
