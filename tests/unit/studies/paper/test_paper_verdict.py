"""The rule that decides what is reproduced: by numbers, not by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

import comparison_work
import msgspec
import pytest

from bench.experiments.experiment import experiment
from bench.simulation.result import SimulationResult
from studies.paper.statement import Beyond, Claim, Contrast, Fact, PaperFigures, Reading, Results
from studies.published import DIFFERS, REPRODUCED, UNKNOWN, Published

TEXT = Reading("text", "algorithm-2", (("heartbeat_s", 3.0),))
SWITCHES = Reading("all switches", "algorithm-2", (("heartbeat_s", 0.5),), (("heartbeat_s", 0.5),))
PRINTED = Published(0.974, 30.0, 6, 6)


def claim(published: Published = PRINTED, reservation: str = "") -> Claim:
    return Claim("CLOSER 2024", "Table 1", "w1, algorithm-2", "w1", published, (TEXT, SWITCHES), reservation)


def result(**figures: Any) -> SimulationResult:
    usual = {"in_sla": 0.974, "replica_minutes": 30.0, "scale_ups": 6, "scale_downs": 6, "max_s": 0.9}
    return msgspec.structs.replace(comparison_work.told(experiment("w1", "algorithm-2")), **{**usual, **figures})


def both(text: Sequence[SimulationResult], switches: Sequence[SimulationResult]) -> Results:
    return {TEXT: text, SWITCHES: switches}


def checked(found: Results, claimed: Claim | None = None) -> PaperFigures:
    one = claimed or claim()
    return one.row({one: found})


@pytest.mark.parametrize(
    ("figures", "verdict", "why"),
    [
        ({}, REPRODUCED, ""),
        ({"in_sla": 0.9839}, REPRODUCED, ""),
        ({"in_sla": 0.9851}, DIFFERS, "in SLA +1.1 points"),
        ({"in_sla": 0.95}, DIFFERS, "in SLA -2.4 points"),
        ({"replica_minutes": 30.9}, REPRODUCED, ""),
        ({"replica_minutes": 31.2}, DIFFERS, "r-m +4.0 %"),
        ({"scale_downs": 7}, REPRODUCED, ""),
        ({"scale_downs": 3}, DIFFERS, "scale-downs -3"),
        ({"in_sla": 0.9, "scale_ups": 9}, DIFFERS, "in SLA -7.4 points; scale-ups +3"),
    ],
)
def test_every_printed_figure_must_be_met(figures: Mapping[str, float], verdict: str, why: str) -> None:
    row = checked({TEXT: [result(**figures)]})
    assert (row.verdict, row.why) == (verdict, why)


def test_what_was_printed_may_be_one_run_among_ours() -> None:
    """Seeds give 95 to 98 %: a single run with 97.4 % is one of them, although the mean is 96.5 %."""
    row = checked({TEXT: [result(in_sla=0.95), result(in_sla=0.98)]})
    assert row.verdict == REPRODUCED
    assert row.ours == "96.5 % (95 % to 98 %), 30 r-m, 6 ups, 6 downs"


def test_figures_from_different_readings_do_not_add_up_to_one() -> None:
    row = checked(both([result(in_sla=0.974, replica_minutes=40.0)], [result(in_sla=0.9, replica_minutes=30.0)]))
    assert row.verdict == DIFFERS
    assert row.reproducing == ()


def test_the_nearest_reading_is_shown_and_all_that_fit_are_counted() -> None:
    row = checked(both([result(in_sla=0.9)], [result(in_sla=0.975)]))
    assert row.verdict == REPRODUCED
    assert row.reading == "all switches; heartbeat_s=0.5"
    assert row.settings == ("heartbeat_s=0.5",)
    assert (row.readings, row.reproducing) == (("text", "all switches"), ("all switches",))


def test_what_was_not_printed_is_not_checked() -> None:
    only_share = Published(0.981, None, max_below_s=1.0)
    near = result(in_sla=0.981, replica_minutes=99.0, scale_ups=50)
    row = checked({TEXT: [near]}, claim(only_share))
    assert (row.published, row.ours, row.verdict) == ("98.1 %, worst < 1 s", "98.1 %, worst 0.90 s", REPRODUCED)
    late = checked({TEXT: [near, result(in_sla=0.981, max_s=1.2)]}, claim(only_share))
    assert (late.verdict, late.why) == (DIFFERS, "worst event +0.20 s")


def contrast() -> Contrast:
    return Contrast("CLOSER 2024", "Table 1", "algorithm-2 > linear", claim(), claim(Published(0.947, 25.5)))


def concluded(better: Results, worse: Results) -> PaperFigures:
    one = contrast()
    return one.row({one.better: better, one.worse: worse})


def shares(*values: float) -> list[SimulationResult]:
    return [result(in_sla=value) for value in values]


def test_a_conclusion_needs_a_reading_that_says_so_beyond_chance() -> None:
    better, worse = shares(0.97, 0.96, 0.98), shares(0.95, 0.94, 0.95)
    row = concluded(both(better, better), both(worse, worse))
    assert (row.verdict, row.published, row.ours) == (REPRODUCED, "+2.7 points", "+2.3 to +2.3 points")
    unclear = concluded({TEXT: shares(0.97, 0.94)}, {TEXT: shares(0.95, 0.95)})
    assert (unclear.verdict, unclear.why) == (DIFFERS, "not distinguishable")


def test_a_reading_that_says_the_opposite_is_named() -> None:
    row = concluded(both(shares(0.97, 0.96), shares(0.90, 0.91)), both(shares(0.95, 0.94), shares(0.95, 0.94)))
    assert (row.verdict, row.why) == (DIFFERS, "the opposite under: all switches")
    assert row.reproducing == ("text",)


def test_facts_and_what_is_beyond_us() -> None:
    assert Fact("p", "t", "events", 1000.0, lambda: 1004.0).row({}).verdict == REPRODUCED
    off = Fact("p", "t", "events", 1_312_212, lambda: 1_326_203.0, reservation="a closed form").row({})
    assert (off.verdict, off.ours, off.why) == (DIFFERS, "1,326,203", "+1.1 %; a closed form")
    row = Beyond("p", "t", "start-up", "10 to 50 s", "needs their cluster").row({})
    assert (row.verdict, row.why) == (UNKNOWN, "needs their cluster")
