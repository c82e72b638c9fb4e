"""A run's own events under other policies: live ones replayed, simulated ones simulated again, others not at all."""

from pathlib import Path

import msgspec
import pytest
import recorded_runs
from small_report import small_run

from bench import BenchError
from bench.replay.replay import OTHERS, otherwise
from report.run_info import RunInfo


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs") / recorded_runs.RUN
    return recorded_runs.write_folder(place, *recorded_runs.known_world(duration_s=100))


def test_a_live_run_is_replayed_and_its_own_policy_left_out(live: Path) -> None:
    found = otherwise(live)
    assert found
    assert [one.policy for one in found] == [policy for policy in OTHERS if policy != "algorithm-2"] + ["clairvoyant"]
    fixed, best = found[0], found[-1]
    assert (best.in_sla, best.replica_minutes) == (1.0, min(one.replica_minutes for one in found if one.in_sla > 0.999))
    assert fixed.in_sla == max(one.in_sla for one in found)
    assert fixed.replica_minutes == max(one.replica_minutes for one in found)


def test_a_simulated_run_is_simulated_again(live: Path, tmp_path: Path) -> None:
    info = msgspec.structs.replace(RunInfo.load(live), world="simulated")
    info.save(tmp_path)
    assert len(otherwise(tmp_path)) == 3
    msgspec.structs.replace(info, events_scheduled=7).save(tmp_path)
    with pytest.raises(BenchError, match="came from a trace"):
        otherwise(tmp_path)


def test_what_cannot_be_simulated_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="nowhere"):
        otherwise(tmp_path / "nowhere")
    with pytest.raises(BenchError):
        otherwise(small_run(tmp_path / "half"))
