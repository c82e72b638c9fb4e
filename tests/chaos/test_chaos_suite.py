"""Twenty schedules of faults on a running pipeline break no promise; Ctrl-C leaves no process behind."""

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from kafka_helpers import wait_for
from live_autoscaler import alive
from tailpack_command import tailpack

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(1200)]


def test_twenty_schedules_show_no_violation(tmp_path: Path) -> None:
    done = tailpack("chaos", "--schedules", "20", "--seed", "1", "--out", str(tmp_path), "--json", deadline_s=1100)
    found = json.loads(done.stdout)
    assert (found["schedules"], found["violations"]) == (20, 0), done.stderr
    assert done.returncode == 0
    assert not list(tmp_path.iterdir()), "schedules without violations leave nothing"


def test_ctrl_c_keeps_what_was_measured_and_leaves_no_process_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tailpack", "chaos", "--schedules", "50", "--out", str(tmp_path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
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
