"""Twenty schedules of faults on a running pipeline break no promise; Ctrl-C leaves no process behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from kafka_helpers import wait_for
from live_autoscaler import alive

SUPPORT = Path(__file__).parents[1] / "support"
pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(1200)]


def command(seeds: int, out: Path) -> list[str]:
    return [sys.executable, "-m", "chaos_suite", "--seeds", str(seeds), "--out", str(out)]


ENVIRON = os.environ | {"PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])}


def test_twenty_schedules_have_no_violation(tmp_path: Path) -> None:
    process = subprocess.run(
        command(20, tmp_path), capture_output=True, text=True, timeout=1100, env=ENVIRON, check=False
    )
    found = json.loads(process.stdout)
    assert (found["schedules"], found["violations"]) == (20, 0), process.stderr
    assert process.returncode == 0
    assert not list(tmp_path.iterdir()), "only schedules with violations keep their logs"


def test_ctrl_c_keeps_the_results_and_leaves_no_process_behind(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(command(50, tmp_path), stdout=pipe, stderr=pipe, text=True, env=ENVIRON) as process:
        itself = psutil.Process(process.pid)

        def family() -> list[psutil.Process]:
            return [one for one in itself.children(recursive=True) if alive(one.pid)]

        def serves(one: psutil.Process) -> bool:
            with contextlib.suppress(psutil.Error):  # it ends at this moment
                return "services.payment" in one.cmdline()
            return False

        try:
            wait_for(
                lambda: any(map(serves, family())),
                "the pipeline runs",
                deadline_s=90,
            )
            running = family()
            process.send_signal(signal.SIGINT)
            said, complained = process.communicate(timeout=60)
        finally:
            for one in [*itself.children(recursive=True), itself] if process.poll() is None else []:
                one.kill()
    assert process.returncode == 130
    assert json.loads(said)["schedules"] < 50
    assert "Traceback" not in complained
    assert not [one for one in psutil.wait_procs(running, timeout=5)[1] if alive(one.pid)]
