"""JSON that others rely on, as the command line prints it."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.timeout(240)


def test_bench_startup_says_from_asked_to_ready() -> None:
    command = [sys.executable, "-m", "tailpack", "bench", "startup", "--launcher", "processes", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert {"asked_to_ready_p50_s", "p99_s", "n"} <= said.keys()
    assert 0 < said["asked_to_ready_p50_s"] <= said["p99_s"]
    assert said["n"] >= 1
