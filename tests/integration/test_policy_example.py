"""docs/examples/lag-threshold, installed as a user installs it, then listed and simulated by the command line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tailpack_command import tailpack

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "lag-threshold"
DEADLINE_S = 120


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("own-policy")
    source, target = shutil.copytree(EXAMPLE, folder / "source"), folder / "target"
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", target, source]
    subprocess.run(command, check=True, timeout=DEADLINE_S)
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{target}", "COLUMNS": "200"}


def asked(environ: dict[str, str], *words: str) -> dict[str, object]:
    ended = tailpack(*words, "--json", deadline_s=DEADLINE_S, environ=environ)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_the_installed_policy_is_listed_with_its_options(environ: dict[str, str]) -> None:
    listed = asked(environ, "list", "policies")

    assert listed["lag-threshold"] == "lag over a threshold; states a count only"
    assert "tail-aware" in listed
    assert asked(environ, "show", "policy", "lag-threshold") == {"lag_per_replica": 50}


def test_the_options_of_the_policy_change_its_decisions(environ: dict[str, str]) -> None:
    words = ("simulate", "smoke", "--policy", "lag-threshold", "--set")
    lazy, keen = (asked(environ, *words, f"policy.lag_per_replica={lag}") for lag in (50, 5))

    assert [run["policy"] for run in (lazy, keen)] == ["lag-threshold"] * 2
    assert [run["events"] for run in (lazy, keen)] == [400] * 2
    assert (lazy["scale_ups"], lazy["replica_minutes"]) == (0, 0.25), "15 s on one replica"
    assert lazy["in_sla"] < 0.9
    assert (keen["scale_ups"] > 0, keen["in_sla"]) == (True, 1.0)
