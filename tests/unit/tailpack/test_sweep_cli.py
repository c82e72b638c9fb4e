"""`tailpack sweep`, as somebody at a terminal or a script meets it."""

import functools
import json
from pathlib import Path

import command_line
import comparison_work
import pytest

from bench.experiments import campaign
from bench.experiments.campaign import Outcomes, Simulations
from bench.experiments.sweeps import SWEEPS

run = functools.partial(command_line.run, "sweep")


@pytest.fixture(autouse=True)
def _nothing_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(self: Simulations, jobs):  # type: ignore[no-untyped-def]
        self.folder.mkdir(parents=True, exist_ok=True)
        return Outcomes({one: comparison_work.told(one) for one in jobs}, {})

    monkeypatch.setattr(campaign.Campaign, "run", told)


@pytest.mark.parametrize("name", SWEEPS)
def test_each_sweep_writes_one_page_with_its_picture(name: str, tmp_path: Path) -> None:
    words = ("--policies", "linear", "--seeds", "2", "--out", str(tmp_path / name), "--json")
    result = run(name, *words)
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["sweep"] == name
    assert {(row["point"], row["series"]) for row in found["rows"]} == {
        (point.label, point.series) for point in SWEEPS[name].points
    }
    page = (tmp_path / name / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {SWEEPS[name].title}")
    assert f"]({name}.svg)" in page
    assert (tmp_path / name / f"{name}.svg").exists()


def test_the_docs_keep_one_set_of_rows_for_each_sweep(tmp_path: Path) -> None:
    for name in ("f", "startup", "f"):
        words = ("--policies", "linear", "--scenarios", "w1", "--out", str(tmp_path / name), "--into", str(tmp_path))
        assert run(name, *words).exit_code == 0
    kept = json.loads((tmp_path / "sweeps.json").read_text())
    rows = [sum(row["sweep"] == name for row in kept) for name in ("f", "startup")]
    assert rows == [len(SWEEPS["f"].points), len(SWEEPS["startup"].points)]
