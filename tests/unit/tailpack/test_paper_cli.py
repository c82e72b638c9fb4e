"""`tailpack paper`, as somebody at a terminal or a script meets it."""

import functools
import json
from pathlib import Path
from types import SimpleNamespace

import command_line
import comparison_work
import pytest

from bench.experiments import campaign
from bench.experiments.campaign import Outcomes, Simulations
from studies.paper import landau_2024
from studies.published import Claim

run = functools.partial(command_line.run, "paper")


@pytest.fixture(autouse=True)
def _nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(self: Simulations, jobs):  # type: ignore[no-untyped-def]
        self.folder.mkdir(parents=True, exist_ok=True)
        return Outcomes({one: comparison_work.told(one) for one in jobs}, {})

    claim = Claim(claim="MWF moves less", published="-55 %", ours="-53 %", verdict="reproduced")
    study = SimpleNamespace(streams=3, iterations=101)
    monkeypatch.setattr(campaign.Campaign, "run", told)
    monkeypatch.setattr(landau_2024, "compared", lambda *_, **__: SimpleNamespace(claims=(claim,), studies=(study,)))


def test_every_paper_is_in_the_page_and_in_the_object(tmp_path: Path) -> None:
    result = run("--quick", "--out", str(tmp_path), "--json")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)["rows"]
    assert len({row["paper"] for row in rows}) == 3
    assert {row["verdict"] for row in rows} <= {"reproduced", "differs", "cannot be checked"}
    page = (tmp_path / "paper.md").read_text(encoding="utf-8")
    assert all(f"## {row['paper']}" in page for row in rows)
    assert "| MWF moves less | -55 % | -53 % | 3 streams of 101 iterations | reproduced |" in page
