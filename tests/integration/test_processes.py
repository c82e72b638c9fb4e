"""A service that ends during a run is restarted with growing delays; a command that is stopped prints one line."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from kafka_helpers import DEADLINE_S, wait_for

from contracts.children import Child, defer_stop_signals, last_log_line, python_module
from tailpack.local.stack import Supervised

C = TypeVar("C", bound=Child)


def child(folder: Path, body: str, kind: type[C] = Child) -> C:
    """A child whose module runs `body`."""
    (folder / "a_child.py").write_text(body)
    environ = os.environ | {"PYTHONPATH": str(folder)}
    return kind("a child", python_module("a_child"), environ, folder / "a.log")


def test_a_child_that_ends_is_restarted_after_a_delay(tmp_path: Path) -> None:
    one = child(tmp_path, "print('no broker'); raise SystemExit(3)", Supervised)
    one.start()
    wait_for(lambda: one.exit_status is not None, "the first end")
    now = time.monotonic()
    assert "(exit status 3: no broker); restarting in 0.5 s" in (one.supervise(now) or "")
    assert one.supervise(now + 0.4) is None
    assert "1" in (one.supervise(now + 0.6) or "")
    wait_for(lambda: one.exit_status is not None, "the second end")
    assert "in 1 s" in (one.supervise(now + 1) or "")


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    body = "from signal import *\nsignal(SIGTERM, SIG_IGN)\nprint('up', flush=True)\nwhile True: pause()"
    one = child(tmp_path, body)
    one.start()
    wait_for(lambda: last_log_line(one.log) == "up", "the child's start")
    one.terminate()
    one.wait(deadline_s=0.3)
    assert one.exit_status == -9


def test_the_signal_is_delivered_at_the_end_of_the_block() -> None:
    steps = []
    before = signal.signal(signal.SIGINT, lambda *_: steps.append("delivered"))
    with defer_stop_signals():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        steps.append("whole")
    signal.signal(signal.SIGINT, before)
    assert steps == ["whole", "delivered"]


@contextmanager
def started(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Run Python in a process of its own, which does not outlive the block."""
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def opened(pipe: Path) -> int:
    """Return the writing end of a named pipe, 0 as long as it has no reader."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return 0


def waits_for_more(pid: int, pipe: int) -> bool:
    """Say if it has read all that was written and sleeps: between two reads Python would not see a signal."""
    unread = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, unread)
    return unread[0] == 0 and psutil.Process(pid).status() == psutil.STATUS_SLEEPING


@pytest.mark.parametrize(
    ("words", "number"),
    [(("simulate", "w1", "--trace"), signal.SIGINT), (("compare",), signal.SIGINT), (("run",), signal.SIGTERM)],
)
def test_a_stopped_command_prints_one_line(tmp_path: Path, words: tuple[str, ...], number: signal.Signals) -> None:
    """It reads a file that never ends, so it is at work when the signal comes."""
    pipe = tmp_path / "own.toml"
    os.mkfifo(pipe)
    with started(tmp_path, "-m", "tailpack", *words, str(pipe)) as process:
        writing = wait_for(lambda: process.poll() is not None or opened(pipe), "somebody who reads the file")
        assert process.poll() is None, process.communicate()
        os.write(writing, b"#")
        wait_for(lambda: waits_for_more(process.pid, writing), "the reader waits for the rest")
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
        os.close(writing)
    assert (process.returncode, out, err.splitlines()[-1:]) == (130, "", ["tailpack: stopped"])
    assert "Traceback" not in err


def test_a_command_that_is_stopped_while_loading_prints_one_line(tmp_path: Path) -> None:
    """The signal comes when the first module of the command line is asked for."""
    early = (
        "import signal, sys\n"
        "from tailpack.__main__ import main\n"
        "class Early:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'tailpack.cli.main':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Early())\n"
        "main()\n"
    )
    with started(tmp_path, "-c", early) as process:
        assert process.communicate(timeout=DEADLINE_S) == ("", "tailpack: stopped\n")
    assert process.returncode == 130
