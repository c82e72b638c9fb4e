"""What many streams have in common: means, fronts, who dominates whom, and how far the goal is reached."""

import numpy as np
import pytest
from packing_scores import score, stream_scores, study_of

from studies.packing.contestants import THE_TWELVE, the_twelve
from studies.packing.latency_study import LatencyWalk, delays_of_all
from studies.packing.result import Point, Study
from studies.packing.study import Walk, score_all


def by_name(study: Study) -> dict[str, Point]:
    return {point.packer: point for point in study.points}


def test_means_are_over_streams_with_their_intervals() -> None:
    study = study_of(*(stream_scores(mwf=score(value, 0.1)) for value in (8.0, 9.0, 13.0)))
    mwf = by_name(study)["mwf"]
    assert mwf.rscore.mean == 10.0
    assert 8.0 <= mwf.rscore.low < 10.0 < mwf.rscore.high <= 13.0
    assert (mwf.cbs.mean, mwf.cbs.low, mwf.cbs.high) == (0.1, 0.1, 0.1)
    assert (study.streams, study.partitions, study.delta, study.iterations) == (3, 200, 5, 501)


def test_the_front_of_the_twelve_and_the_front_of_all() -> None:
    scores = stream_scores(
        mwf=score(9.0, 0.12), mbf=score(15.0, 0.03), bfd=score(25.0, 0.0), keep_in_place=score(8.0, 0.02)
    )
    points = by_name(study_of(scores))
    assert {name for name, point in points.items() if point.front_of_twelve} == {"mwf", "mbf", "bfd"}
    assert {name for name, point in points.items() if point.front} == {"bfd", "keep_in_place"}


def test_a_setting_dominates_whom_it_equals_or_beats_in_both() -> None:
    scores = stream_scores(
        mwf=score(9.0, 0.12), mbf=score(8.0, 0.03), bfd=score(25.0, 0.0), keep_in_place=score(9.0, 0.03)
    )
    study = study_of(scores)
    points = by_name(study)
    assert points["mwf"].dominated_by == ("keep_in_place",)
    assert points["mbf"].dominated_by == (), "it moves less"
    assert points["bfd"].dominated_by == (), "it needs fewer"
    assert points["keep_in_place"].dominated_by == (), "not by itself"
    assert study.goal.undominated == ("bfd", "mbf")


def test_the_goal_is_the_best_setting_that_needs_no_more_than_mwf() -> None:
    scores = stream_scores(mwf=score(10.0, 0.12))
    scores |= {"keep_in_place": score(3.0, 0.11), "keep_in_place (roomy)": score(1.0, 0.13)}
    goal = study_of(scores).goal
    assert goal.packer == "keep_in_place"
    assert goal.share_of_mwf == pytest.approx(0.3)
    assert goal.forced_share_of_mwf == pytest.approx(0.075)
    assert goal.target == 0.25
    assert study_of(scores, delta=10).goal.target is None
    assert study_of(stream_scores()).goal.packer is None, "no setting needs as few as MWF"


def test_the_headline_compares_with_whoever_of_the_existing_moves_least() -> None:
    streams = [
        stream_scores(mwf=score(mwf, cbs, 90.0), nfd=score(20.0, 0.24, 100.0)) for mwf, cbs in ((9.0, 0.1), (11.0, 0.2))
    ]
    found = study_of(*streams).headline
    assert found is not None
    assert found.baseline == "nfd"
    assert found.rscore_change.mean == pytest.approx(-0.5)
    assert found.rscore_change_range.least == pytest.approx(-0.55)
    assert found.rscore_change_range.most == pytest.approx(-0.45)
    assert found.cbs.mean == pytest.approx(0.15)
    assert found.consumers_change.mean == pytest.approx(-0.1)


def test_nothing_is_said_relative_to_a_baseline_that_moves_nothing() -> None:
    assert study_of(stream_scores(nfd=score(0.0))).headline is None


def test_constant_loads_move_nothing_under_decreasing_variants_and_settle_under_the_modified() -> None:
    found = score_all(Walk(partitions=40, delta=0, iterations=30, seed=1, number=0))
    assert [found[name].rscore for name in ("nfd", "ffd", "bfd", "wfd")] == [0.0] * 4
    assert found["mwf"].rscore < 0.5
    assert all(one.forced_rscore == 0 for one in found.values()), "what fitted fits"
    assert min(found["ff"].rscore, found["nf"].rscore) > 1, "a fresh order each time"


def test_the_published_headline_comes_out_of_three_short_streams() -> None:
    scores = [
        score_all(Walk(partitions=200, delta=5, iterations=90, seed=1, number=number), the_twelve())
        for number in range(3)
    ]
    change = np.mean([one["mwf"].rscore / one["nfd"].rscore - 1 for one in scores])
    assert change == pytest.approx(-0.53, abs=0.03)
    assert np.mean([one["mwf"].cbs for one in scores]) == pytest.approx(0.112, abs=0.01)
    assert np.mean([one["mwf"].consumers / one["nfd"].consumers - 1 for one in scores]) == pytest.approx(-0.1, abs=0.02)


def test_whoever_is_delayed_is_so_evenly_up_to_five_seconds_whatever_the_packer() -> None:
    found = delays_of_all(LatencyWalk(seed=1, number=0), the_twelve())
    for name in THE_TWELVE:
        assert found[name].p90_delayed_s == pytest.approx(4.51, abs=0.02)
    assert found["kd_32"].p90_delayed_s is None
    assert found["mwf"].mean_s < found["nf"].mean_s / 4, "what differs is how many"
