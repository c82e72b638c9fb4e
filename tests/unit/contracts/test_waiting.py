"""Waiting until a process is to end."""

import subprocess
import sys

from contracts.waiting import Stop

SIGNALLED_WHILE_IT_WAITS = """
import signal
from contracts.waiting import Stop

for number in range(200):
    stop = Stop()
    signal.signal(signal.SIGALRM, lambda number, frame: stop.set())
    signal.setitimer(signal.ITIMER_REAL, 0.0005 + number * 0.0000137)
    while not stop.wait(0.0):
        pass
"""


def test_a_signal_ends_a_wait_at_whatever_moment_it_arrives() -> None:
    subprocess.run([sys.executable, "-c", SIGNALLED_WHILE_IT_WAITS], check=True, timeout=60)


def test_every_waiting_thread_sees_the_end() -> None:
    stop = Stop()
    assert not stop.wait(0.0)
    stop.set()
    assert [stop.wait(60), stop.wait(60), stop.is_set()] == [True] * 3
