"""What was measured is measured once: experiments, their keys, the folder of results, and going on after a stop."""

import subprocess
import sys
from pathlib import Path

import comparison_work
import pytest

from bench.experiments.campaign import DECIDING, FILE, ROOT, Campaign, Store, code_version
from bench.experiments.experiment import experiment
from bench.simulation.result import SimulationResult
from contracts.validation import InvalidSettingsError

ASKED = [experiment("w1", "linear", seed=seed) for seed in (1, 2, 3)]


def test_a_key_stands_for_scenario_policy_seed_settings_and_code() -> None:
    same = experiment("w1", "linear", changes={"payment.heartbeat_s": 3, "split": "even"})
    keys = [
        experiment("w1", "linear", changes={"split": "even", "payment.heartbeat_s": 3}),
        experiment("w1", "linear", changes={"split": "even"}),
        experiment("w1", "algorithm-2", changes={"split": "even"}),
        experiment("w1", "algorithm-2", seed=2, changes={"split": "even"}),
        experiment("w1-skew9", "linear"),
    ]
    assert keys[0].key("1") == same.key("1"), "the order makes no difference"
    assert len({one.key("1") for one in keys}) == len(keys)
    assert same.key("1") != same.key("2")


def test_wrong_settings_are_named_before_anything_is_computed(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, work=comparison_work.refused)
    with pytest.raises(InvalidSettingsError, match="unknown"):
        campaign.run([*ASKED, experiment("w1", "linear", changes={"no-such-thing": 1})])


def test_a_line_that_was_cut_off_is_measured_again(tmp_path: Path) -> None:
    store = Store(tmp_path, SimulationResult)
    store.add("a", comparison_work.told(ASKED[0]))
    store.add("b", comparison_work.told(ASKED[1]))
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:-40])  # the machine went down while it was written
    again = Store(tmp_path, SimulationResult)
    assert again.get("a") is not None
    assert again.get("b") is None
    again.add("c", comparison_work.told(ASKED[2]))
    assert Store(tmp_path, SimulationResult).get("c") == comparison_work.told(ASKED[2]), (
        "the next line is not lost with it"
    )


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    said: list[tuple[str, int, int]] = []
    Campaign(tmp_path, 1, work=comparison_work.quick).run(ASKED[:2])
    third = Campaign(tmp_path, 1, lambda *told: said.append(told), comparison_work.quick).run(ASKED)
    assert said == [("", 2, 3), ("w1, linear, seed 3", 3, 3)], "two were there, one was computed"
    assert Campaign(tmp_path, 1, work=comparison_work.refused).run(ASKED) == third


def test_equal_experiments_are_run_once(tmp_path: Path) -> None:
    found = Campaign(tmp_path, 1, work=comparison_work.quick).run([ASKED[0], ASKED[0]])
    assert list(found.results) == [ASKED[0]]
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 1


def test_failed_experiments_are_named_and_tried_again(tmp_path: Path) -> None:
    failed = Campaign(tmp_path, 1, work=comparison_work.eventful).run(ASKED)
    assert failed.failed[ASKED[1]] == "ZeroDivisionError: no replica left"
    mended = Campaign(tmp_path, 1, work=comparison_work.quick).run(ASKED)
    assert not mended.failed
    assert set(mended.results) == set(ASKED)


def test_other_code_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "autoscaler" / "policies").mkdir(parents=True)
    policy = tmp_path / "autoscaler" / "policies" / "mine.py"
    policy.write_text("up = 1")
    before = code_version(tmp_path)
    (tmp_path / "README.md").write_text("what it is")
    code_version.cache_clear()
    assert code_version(tmp_path) == before, "nothing follows from the README"
    policy.write_text("up = 2")
    code_version.cache_clear()
    assert code_version(tmp_path) != before


def test_what_one_policy_alone_runs_by_leaves_the_results_of_others(tmp_path: Path) -> None:
    mine = tmp_path / "autoscaler" / "policies" / "tail_aware" / "plans.py"
    mine.parent.mkdir(parents=True)
    versions = []
    for text in ("up = 1", "up = 2"):
        mine.write_text(text)
        code_version.cache_clear()
        versions.append([code_version(tmp_path, name) for name in ("tail-aware", "linear", "")])
    assert [one == other for one, other in zip(*versions, strict=True)] == [False, True, False]


def test_the_version_covers_every_file_that_a_result_and_its_packing_rest_on() -> None:
    run = (
        "import sys; from bench.experiments.experiment import experiment, simulated\n"
        "simulated(experiment('w1', 'tail-aware', changes={'duration_s': 2}))\n"
        "print(*(m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)))"
    )
    said = subprocess.run([sys.executable, "-c", run], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {Path(word) for word in said.stdout.split()}
    rooms = [ROOT / name for name in ("autoscaler", "bench/simulation", "contracts", "loadgen", "report/measures.py")]
    inside = {path for path in loaded if any(path.is_relative_to(room) for room in rooms)}
    assert len(inside) > 30
    assert inside <= {path for pattern in DECIDING for path in ROOT.glob(pattern)}
