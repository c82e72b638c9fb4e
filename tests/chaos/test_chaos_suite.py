"""Schedules of random faults on a running pipeline violate no guarantee; `make chaos SEEDS=…` runs more of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(800)]


def command(seeds: int, out: Path) -> list[str]:
    return [sys.executable, "-m", "chaos_suite", "--seeds", str(seeds), "--out", str(out)]


ENVIRON = os.environ | {"PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])}


def test_eight_schedules_have_no_violation(tmp_path: Path) -> None:
    process = subprocess.run(
        command(8, tmp_path), capture_output=True, text=True, timeout=700, env=ENVIRON, check=False
    )
    found = json.loads(process.stdout)
    assert (found["schedules"], found["violations"]) == (8, 0), process.stderr
    assert process.returncode == 0
    assert not list(tmp_path.iterdir()), "only schedules with violations keep their logs"
