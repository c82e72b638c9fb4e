"""`tailpack bench live`: every question in random order, round by round, and none twice."""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench import results
from bench.results import LiveRow, Origin
from contracts.validation import InvalidSettingsError
from tailpack import measured_runs

SCENARIOS, POLICIES = ["w1", "w1-skew9"], ["tail-aware", "linear", "keda-hpa"]
ORIGIN = Origin(command="tailpack bench live", commit="0123abc", machine="2 cores", measured_on="2026-01-05")


def row(scenario: str, policy: str, seed: int, *, valid: bool = True) -> LiveRow:
    values = {name: 0 for name in LiveRow.__struct_fields__ if name not in ("simulated", "forecast", "settings")}
    return LiveRow(**values | {"scenario": scenario, "policy": policy, "seed": seed, "valid": valid})


def test_every_question_is_asked_once_and_each_round_is_over_before_the_next_begins() -> None:
    asked = measured_runs.shuffled(SCENARIOS, POLICIES, 3, 1)
    assert Counter(asked) == Counter(product(SCENARIOS, POLICIES, (1, 2, 3)))
    assert [seed for _, _, seed in asked] == sorted(seed for _, _, seed in asked)
    assert measured_runs.shuffled(SCENARIOS, POLICIES, 3, 1) == asked, "the order can be repeated"
    rounds = [[one[:2] for one in asked if one[2] == seed] for seed in (1, 2, 3)]
    assert rounds[0] != rounds[1], "no policy always runs first"


def test_what_was_measured_is_not_measured_again_but_what_was_invalid_is(tmp_path: Path) -> None:
    results.keep("live", [row("w1", "linear", 1), row("w1", "tail-aware", 1, valid=False)], ORIGIN, tmp_path)
    asked: list[measured_runs.Question] = []

    def run(question: measured_runs.Question) -> LiveRow:
        asked.append(question)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return row(*question)

    questions = measured_runs.shuffled(["w1"], ["linear", "tail-aware"], 2, 1)
    with pytest.raises(KeyboardInterrupt):
        measured_runs.run_all(questions, tmp_path, run, lambda _: None)
    assert asked[0] == ("w1", "tail-aware", 1)
    kept = [one.result for one in results.load("live", LiveRow, tmp_path)]
    assert [(one.policy, one.seed, one.valid) for one in kept] == [("linear", 1, True), ("tail-aware", 1, True)]
    measured_runs.run_all(questions, tmp_path, run, lambda _: None)
    assert {one[1:] for one in asked[1:]} == {("linear", 2), ("tail-aware", 2)}
    assert len(results.load("live", LiveRow, tmp_path)) == 4


@pytest.mark.parametrize(
    "with_these", [{"load_workers": 2}, {"settings": measured_runs.said({"load.burst_phase_s": "random"})}]
)
def test_a_shared_load_and_what_is_set_make_a_question_of_its_own(tmp_path: Path, with_these: dict[str, Any]) -> None:
    results.keep("live", [row("w1", "linear", 1)], ORIGIN, tmp_path)
    asked: list[measured_runs.Question] = []

    def run(question: measured_runs.Question) -> LiveRow:
        asked.append(question)
        return msgspec.structs.replace(row(*question), **with_these)

    for _ in range(2):
        measured_runs.run_all([("w1", "linear", 1)], tmp_path, run, lambda _: None, **with_these)
    assert len(asked) == 1
    assert len(results.load("live", LiveRow, tmp_path)) == 2


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "[1]", '[{"scenario": "w1"}]', "\x00"])
def test_a_file_of_something_else_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "live.json").write_text(text)
    with pytest.raises(InvalidSettingsError, match=r"live\.json holds no figures of this command"):
        results.load("live", LiveRow, tmp_path)
