"""A process of `tailpack run` fails at start: one line names the reason, and no process is left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.kafka


def modules_at(kafka: str, namespace: str) -> list[str]:
    """Return the modules that run as processes of this run."""
    found = []
    for process in psutil.process_iter():
        try:
            environ = process.environ()
        except psutil.Error:
            continue
        if (environ.get("TAILPACK_BOOTSTRAP_SERVERS"), environ.get("TAILPACK_NAMESPACE")) == (kafka, namespace):
            found.append(process.name())
    return found


@pytest.mark.parametrize(
    ("variable", "names"),
    [
        ("BROKER_DEADLINE_S", {"order", "shipment", "notification"}),
        ("OVERHEAD_S", {"autoscaler"}),
        ("CONNECT_DEADLINE_S", {"locust"}),
    ],
)
def test_a_process_that_fails_at_start_is_named_with_the_reason(
    kafka: str, tmp_path: Path, variable: str, names: set[str]
) -> None:
    command = [sys.executable, "-m", "tailpack", "run", "smoke", "--bootstrap-servers", kafka]
    environ = os.environ | {f"TAILPACK_{variable}": "soon"}
    ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=240, check=False)
    (run,) = (tmp_path / "out").iterdir()
    (line,) = ended.stderr.splitlines()
    name = line.split()[1]
    assert ended.returncode == 2
    assert name in names
    assert line.startswith(f"tailpack: {name} does not start: exit status ")
    assert f"TAILPACK_{variable} = 'soon'" in line, "the reason"
    assert line.endswith(f"see out/{run.name}/logs/{name}.log")
    assert modules_at(kafka, json.loads((run / "run.json").read_bytes())["run"]) == []
