"""`tailpack compare` as a user or a script runs it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil


def test_ctrl_c_keeps_finished_runs_and_leaves_no_process(tmp_path: Path) -> None:
    """One process computes long runs; as soon as the first is kept, the terminal's Ctrl-C reaches all of them."""
    words = ("compare", "w1", "--policy", "algorithm-2", "--seeds", "400", "--set", "split=random")
    command = [sys.executable, "-m", "tailpack", *words, "--processes", "2", "--out", str(tmp_path)]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    kept = tmp_path / "results.jsonl"
    deadline = time.monotonic() + 100
    while not (kept.exists() and kept.read_bytes().count(b"\n")):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    family = psutil.Process(running.pid).children(recursive=True)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert out == ""
    assert "finished runs are stored in" in err
    assert err.splitlines()[-1] == "tailpack: stopped"
    assert "Traceback" not in err
    _, alive = psutil.wait_procs(family, timeout=5)
    assert not alive
    assert kept.read_bytes().endswith(b"\n")
