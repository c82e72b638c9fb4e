"""The wheel works in an empty environment, without the source tree."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest
from follow import DOCS, Reader

from tailpack.local.broker import Broker

ROOT = Path(__file__).parents[2]
INSTALL_S, COMMAND_S = 400, 120
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of a shell in which only the wheel is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    pip = ["-m", "pip", "--disable-pip-version-check"]
    build = [sys.executable, *pip, "wheel", "-q", "--no-deps", "-w", folder, ROOT]
    subprocess.run(build, check=True, timeout=INSTALL_S)
    (wheel,) = folder.glob("tailpack-*.whl")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=INSTALL_S)
    install = [folder / "venv/bin/python", *pip, "install", "-q", "--no-compile", f"{wheel}[load,bench]"]
    subprocess.run(install, env=own, check=True, timeout=INSTALL_S)
    return own | {"PATH": f"{folder / 'venv/bin'}:{own['PATH']}"}


def test_the_wheel_simulates_and_explains_without_a_clone(tmp_path: Path, environ: dict[str, str]) -> None:
    def command(*words: str) -> str:
        found = which(words[0], path=environ["PATH"])
        done = subprocess.run(
            [str(found), *words[1:]],
            cwd=tmp_path, env=environ, timeout=COMMAND_S, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tailpack(*words: str) -> str:
        return command("tailpack", *words)

    assert tailpack("--version").startswith("tailpack ")
    assert json.loads(tailpack("simulate", "w1", "--duration", "30s", "--out", "run", "--json"))["events"]
    assert "no change" in tailpack("explain", "all", "--run", "run")
    assert str(ROOT) not in command("python", "-c", "import tailpack; print(tailpack.__file__)")


@pytest.mark.kafka
def test_an_operator_follows_the_first_twenty_minutes(
    tmp_path: Path, environ: dict[str, str], private_broker: Broker
) -> None:
    reader = Reader(DOCS / "tutorials" / "twenty-minutes.md", tmp_path, private_broker.address())
    reader.environ = environ
    try:
        reader.follow()
    finally:
        reader.close()
    assert (tmp_path / "out" / "backtest" / "backtest.html").exists()
