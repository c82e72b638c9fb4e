"""Ctrl-C ends every command with one line and exit status 130: real processes that get a real signal."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka_helpers import wait_for


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
    """Return the writing end of a named pipe, 0 as long as nobody reads it."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return 0


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("simulate", "w1", "--trace"), signal.SIGINT),
        (("compare", "--scenarios"), signal.SIGINT),
        (("run",), signal.SIGTERM),
    ],
)
def test_a_command_at_work_ends_with_one_line(tmp_path: Path, words: tuple[str, ...], number: signal.Signals) -> None:
    """It reads a file that never ends, so it is at work when the signal comes."""
    pipe = tmp_path / "own.toml"
    os.mkfifo(pipe)
    with started(tmp_path, "-m", "tailpack", *words, str(pipe)) as process:
        writing = wait_for(lambda: process.poll() is not None or opened(pipe), "somebody who reads the file")
        assert process.poll() is None, process.communicate()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        os.close(writing)
    assert (process.returncode, out, err.splitlines()[-1:]) == (130, "", ["tailpack: stopped"])
    assert "Traceback" not in err


def test_a_command_that_is_still_being_loaded_ends_in_the_same_way(tmp_path: Path) -> None:
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
        assert process.communicate(timeout=30) == ("", "tailpack: stopped\n")
    assert process.returncode == 130
