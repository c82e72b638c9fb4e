"""What each number of the policy changes: which numbers there are, what a variant is, and a whole small campaign."""

import ast
import shutil
from pathlib import Path

import pytest

from bench.experiments import sensitivity
from bench.experiments.campaign import ROOT, Campaign
from bench.experiments.experiment import world
from contracts.validation import InvalidSettingsError


def test_constants_and_settings_are_found() -> None:
    found = {(one.file, one.name): one for one in sensitivity.numbers()}
    assert {("policy.py", "price"), ("memory.py", "GAIN"), ("queues.py", "HALVINGS")} <= found.keys()
    assert ("forecast.py", "FORECASTS") not in found, "it follows from another"


@pytest.mark.parametrize(
    ("value", "lower", "higher"),
    [
        (10.0, 8.0, 12.0),
        (20, 16, 24),
        (2, 1, 3),
        (0.98, 0.976, 0.984),
        (0.5, 0.4, 0.6),
        ((1.0, 0.0, 0.3), (1.0, 0.0, 0.24), (1.0, 0.0, 0.36)),
    ],
)
def test_a_fifth_lower_and_higher(value: object, lower: object, higher: object) -> None:
    number = sensitivity.Number("policy.py", "any", value, (1, 0, 1, 1))
    assert (number.times(0.8), number.times(1.2)) == (lower, higher)


@pytest.mark.parametrize("name", ["price", "SMOOTHING"])
def test_a_variant_differs_in_that_number_alone(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / sensitivity.SOURCES, tmp_path / sensitivity.SOURCES)
    before = list(sensitivity.numbers(tmp_path))
    number = next(one for one in before if one.name == name)
    number.put(tmp_path, number.times(1.2))
    after = list(sensitivity.numbers(tmp_path))
    assert [(one.name, one.value) for one in after] == [
        (one.name, one.times(1.2) if one is number else one.value) for one in before
    ]
    path = sensitivity.SOURCES / number.file
    dumped = [ast.dump(ast.parse((root / path).read_text())) for root in (ROOT, tmp_path)]
    assert dumped[0] != dumped[1]


def test_a_name_that_no_number_has_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match="no number of tail-aware is called prize"):
        sensitivity.sensitivity(Campaign(tmp_path, processes=1), 1, "price,prize")


def test_a_number_that_decides_changes_the_runs_and_another_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world("exponential-service", {"duration_s": 300})
    monkeypatch.setattr(sensitivity, "WORLDS", (one,))
    campaign = Campaign(tmp_path, processes=1, work=sensitivity.varied(tmp_path))
    rows, missing = sensitivity.sensitivity(campaign, 1, "price, STUCK")
    assert missing == []
    assert {(row.name, row.other) for row in rows} == {
        ("price", "0.04"),
        ("price", "0.06"),
        ("STUCK", "800000000.0"),
        ("STUCK", "1200000000.0"),
    }
    assert all(row.cost == 1 for row in rows if row.name == "STUCK")
    assert any(row.cost != 1 for row in rows if row.name == "price")
    assert not (tmp_path / "variants").exists()
