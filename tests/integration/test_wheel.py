"""The wheel works in an empty environment, without the source tree."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALL_S, COMMAND_S = 400, 120
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_the_wheel_simulates_backtests_and_explains_without_a_clone(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT], check=True, timeout=INSTALL_S)
    (wheel,) = tmp_path.glob("tailpack-*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=INSTALL_S)
    python = tmp_path / "venv/bin/python"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[load,bench]"]
    subprocess.run(install, env=environ, check=True, timeout=INSTALL_S)

    def command(*words: str) -> str:
        done = subprocess.run(
            [tmp_path / "venv/bin/tailpack", *words],
            cwd=tmp_path, env=environ, timeout=COMMAND_S, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert command("--version").startswith("tailpack ")
    assert "w1-skew9" in command("list", "scenarios")
    simulated = json.loads(command("simulate", "w1", "--duration", "30s", "--json"))
    assert simulated["events"]
    command("simulate", "w1", "--duration", "30s", "--out", "run")
    assert "no change" in command("explain", "all", "--run", "run")
    (tmp_path / "counts.csv").write_text("second,p0,p1\n" + "\n".join(f"{second},90,60" for second in range(60)) + "\n")
    backtest = ["backtest", "--trace", "counts.csv", "--current", "static 2", "--service-time", "5ms", "--json"]
    assert json.loads(command(*backtest))["lines"]
    assert "KAFKA" in command("kafka", "start", "--help").upper()
    location = [python, "-c", "import tailpack; print(tailpack.__file__)"]
    where = subprocess.run(location, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True, timeout=60)
    assert str(tmp_path) in where.stdout
