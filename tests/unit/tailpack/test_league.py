"""The league ranks policies on hidden scenarios, and a policy that fails loses the scenario with its error."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import command_line
import pytest
from tailpack_command import tailpack

from bench.jobs import FAILED, Job, Row
from tailpack.cli import course

POLICY = """
class {name}:
    def decide(self, observation):
        {body}
"""


@pytest.mark.long
def test_the_same_seed_gives_the_same_table_and_errors_of_policies(tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(POLICY.format(name="Raises", body="return observation.nothing"))
    files = str(tmp_path / "raises.py"), str(tmp_path / "missing.py")
    words = ("dev", "league", *files, "--seed", "secret", "--scenarios", "2", "--json")
    first, second = (json.loads(tailpack(*words, deadline_s=200).stdout) for _ in range(2))

    assert {one["policy"] for one in first} == {"raises.py", "missing.py", *course.OURS}
    for name, error in {"raises.py": "AttributeError", "missing.py": "cannot be imported"}.items():
        (failed,) = (one for one in first if one["policy"] == name)
        assert (failed["met"], len(failed["errors"])) == (0, failed["of"])
        assert all(error in text for text in failed["errors"])
    assert first[0]["of"] > 0
    for one, other in zip(first, second, strict=True):
        assert one | {"decision_s": None} == other | {"decision_s": None}


def test_files_that_fail_are_listed_and_equal_names_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(jobs: Iterable[Job], *_: object, **__: object) -> dict[Job, Row]:
        figures = dict.fromkeys((*course.FIGURES, "in_sla"), 1.0)
        return {job: {FAILED: "broken"} if job.policy.endswith(".py") else figures for job in jobs}

    monkeypatch.setattr(course, "run", ran)
    files = ("ann/mine.py", "bob/mine.py", "other.py")
    table = json.loads(command_line.run("dev", "league", *files, "--seed", "1", "--scenarios", "1", "--json").stdout)
    errors = {one["policy"]: one["errors"] for one in table}
    assert errors == {name: ["broken"] * (name in files) for name in (*files, *course.OURS)}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("while True: pass", "the import takes more than"),
        ("while True:\n    try:\n        sum(range(99))\n    except Exception: pass", ""),
        ("import time; time.sleep(600)", ""),
        ("sum(iter(int, 1))", ""),
    ],
    ids=["endless", "catches everything", "sleeps", "in C"],
)
def test_an_import_that_never_ends_is_stopped(tmp_path: Path, code: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(code)
    limits = "from tailpack.cli import course as c; c.IMPORT_S = 0.3; c.CLOCK_S = 5"
    play = f"{limits}; c.play(c.Job(scenario='w1', policy='mine.py'))"
    ended = subprocess.run(
        [sys.executable, "-c", play], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert message in ended.stderr


def test_a_policy_that_decides_too_slowly_fails_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless.py").write_text(POLICY.format(name="Endless", body="while True: pass"))
    monkeypatch.setattr(course, "SIMULATOR_S", 0.1)
    with pytest.raises(ValueError, match="a decision takes more than 100 ms"):
        course.play(Job(scenario="w1", policy=str(tmp_path / "endless.py"), changes=(("duration_s", 5),)))
