"""Every solution of a lesson passes, and each typical wrong answer gets its hint."""

import ast
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tailpack_command import tailpack

from tailpack.errors import TailpackError
from tailpack.lab import check, recorded
from tailpack.lab.course import LESSONS, load

ROOT = Path(__file__).parents[3]
EXERCISES = load(LESSONS / "checker.py").exercises()
NUMBERS = tuple(EXERCISES)
SLOW = ("06", "09", "10")
"""Lessons whose check simulates for seconds."""
WRONG = tomllib.loads((ROOT / "tests" / "support" / "wrong_answers.toml").read_text("utf-8"))["wrong"]
MOST_WORDS = 350


def marked(lesson: str, *values: Any, name: str = "") -> Any:
    return pytest.param(lesson, *values, marks=[pytest.mark.long] if lesson in SLOW else [], id=name or lesson)


def source(lesson: str) -> ast.Module:
    return ast.parse((LESSONS / f"lesson_{lesson}.py").read_text("utf-8"))


@pytest.mark.parametrize("lesson", [marked(lesson) for lesson in NUMBERS])
def test_the_solution_of_a_lesson_passes(lesson: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in ("public", "secret"):
        monkeypatch.setenv("TAILPACK_LESSON_SEED", seed)
        verdict = check(lesson, LESSONS / "solutions" / f"lesson_{lesson}.py")
        assert (verdict.passed, verdict.message) == (True, "")


def test_each_lesson_has_three_typical_wrong_answers() -> None:
    assert {lesson: sum(one["lesson"] == lesson for one in WRONG) for lesson in NUMBERS} == dict.fromkeys(NUMBERS, 3)


@pytest.mark.parametrize(
    ("lesson", "code", "hint"),
    [marked(one["lesson"], one["code"], one["hint"], name=f"{one['lesson']}-{at % 3}") for at, one in enumerate(WRONG)],
)
def test_a_wrong_answer_fails_with_its_hint(lesson: str, code: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(code)
    verdict = check(lesson, tmp_path / "mine.py")
    assert not verdict.passed
    assert hint in verdict.message
    assert re.search(rf"[?.] Expected: {re.escape(EXERCISES[lesson].form)}", verdict.message)
    assert "?." not in verdict.message


@pytest.mark.parametrize("lesson", NUMBERS)
def test_a_lesson_has_its_parts_in_few_words(lesson: str) -> None:
    calls = [node for node in ast.walk(source(lesson)) if isinstance(node, ast.Call)]
    texts = [
        one.args[0].value for one in calls if ast.unparse(one.func) == "mo.md" and isinstance(one.args[0], ast.Constant)
    ]
    words = " ".join(texts).split()
    assert len([word for word in words if any(map(str.isalnum, word))]) <= MOST_WORDS
    whole = "\n".join(texts)
    for part in ("**Goal:**", "**Guess before you run:**", "## Exercise", "## What to remember", "*More:*"):
        assert whole.count(part) == 1, part
    assert {ast.unparse(one.func) for one in calls} >= {"lab.check", "mo.ui.slider"}


@pytest.mark.parametrize("lesson", NUMBERS)
def test_a_lesson_imports_only_the_laboratory(lesson: str) -> None:
    ours = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    allowed = {"tailpack.lab"} | (
        {"autoscaler.model.Decision", "autoscaler.model.GroupObservation"} if lesson == "10" else set()
    )
    imported = set()
    for node in ast.walk(source(lesson)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    assert {name for name in imported if name.partition(".")[0] in ours} == allowed


def test_recorded_figures_of_a_lesson_are_those_of_the_results_page() -> None:
    page = (
        (ROOT / "docs" / "results" / "index.md").read_text("utf-8").replace("ours, ", "").replace("KIP-848", "kip848")
    )
    row = r"\| {protocol}, {heartbeat_s:g} s \| {moves} \| [^|]+ / {worst:,} \| {others} \|"
    for one in recorded("handover"):
        found = row.format(**one, worst=round(one["moved_worst_s"] * 1e3), others=round(one["others_p99_s"] * 1e3))
        assert re.search(found, page), one


def test_the_command_checks_a_file_for_graders(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("print('hello')\n" + WRONG[0]["code"])
    environ = {**os.environ, "TAILPACK_LESSON_SEED": "secret"}
    ended = tailpack("lesson", "check", "1", str(tmp_path / "mine.py"), "--json", deadline_s=60, environ=environ)
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["lesson"], found["passed"], found["cases"] < 50) == (1, "01", False, True)
    assert "secret" not in ended.stdout
    assert found["seed_id"] != check("01", int).seed_id


def test_an_answer_that_never_ends_takes_too_much_or_opens_a_connection_fails(tmp_path: Path) -> None:
    bodies = {
        "while True: pass": "processor time",
        "return bytearray(1 << 32)": "MemoryError",
        "import socket; socket.create_connection(('127.0.0.1', 9))": "no network",
        "import os; os._exit(0)": "the process ended",
        f"open({str(tmp_path / 'large')!r}, 'wb').write(bytes(20_000_000))": "File too large",
        "return 'x' * 10**7": "x …",
    }
    for body, expected in bodies.items():
        (tmp_path / "mine.py").write_text(f"def largest_burst(service_rate, target_s):\n    {body}\n")
        message = check("01", tmp_path / "mine.py").message
        assert expected in message
        assert len(message) < 1_000


@pytest.mark.parametrize(("lesson", "answer", "message"), [(11, len, "no lesson 11"), (1, "none.py", "no such file")])
def test_what_does_not_exist_is_named(lesson: int, answer: Any, message: str) -> None:
    with pytest.raises(TailpackError, match=message):
        check(lesson, answer)


def test_the_lessons_are_listed() -> None:
    listed = json.loads(tailpack("lesson", "list", "--json", deadline_s=60).stdout)
    assert [one["lesson"] for one in listed] == list(NUMBERS)
