"""The rule that decides what is reproduced: by numbers, not by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

import comparison_work
import msgspec
import pytest

from bench.experiments.experiment import experiment
from bench.simulation.result import SimulationResult
from studies.paper.statement import Beyond, Claim, Contrast, Fact, PaperFigures, Reading, Results, reading_of
from studies.published import DIFFERS, REPRODUCED, UNKNOWN, Published

TEXT = Reading("text", "algorithm-2", (("heartbeat_s", 3.0),))
SWITCHES = Reading("all switches", "algorithm-2", (("heartbeat_s", 0.5),), (("heartbeat_s", 0.5),))
PRINTED = Published(0.974, 30.0, 6, 6)


def claim(published: Published = PRINTED, reservation: str = "", what: str = "w1, algorithm-2") -> Claim:
    return Claim("CLOSER 2024", "Table 1", what, "w1", published, (TEXT, SWITCHES), reservation)


def result(**figures: Any) -> SimulationResult:
    usual = {"in_sla": 0.974, "replica_minutes": 30.0, "replicas_added": 6, "replicas_removed": 6, "max_s": 0.9}
    return msgspec.structs.replace(comparison_work.told(experiment("w1", "algorithm-2")), **{**usual, **figures})


def both(text: Sequence[SimulationResult], switches: Sequence[SimulationResult]) -> Results:
    return {TEXT: text, SWITCHES: switches}


def checked(found: Results, claimed: Claim | None = None, reading: str = "text") -> PaperFigures:
    one = claimed or claim()
    return one.row({one: found}, reading)


@pytest.mark.parametrize(
    ("figures", "verdict", "why"),
    [
        ({}, REPRODUCED, ""),
        ({"in_sla": 0.9839}, REPRODUCED, ""),
        ({"in_sla": 0.9851}, DIFFERS, "in SLA +1.1 points"),
        ({"in_sla": 0.95}, DIFFERS, "in SLA -2.4 points"),
        ({"replica_minutes": 30.9}, REPRODUCED, ""),
        ({"replica_minutes": 31.2}, DIFFERS, "r-m +4.0 %"),
        ({"replicas_removed": 7}, REPRODUCED, ""),
        ({"replicas_removed": 3}, DIFFERS, "scale-downs -3"),
        ({"scale_downs": 2}, REPRODUCED, ""),
        ({"in_sla": 0.9, "replicas_added": 9}, DIFFERS, "in SLA -7.4 points; scale-ups +3"),
    ],
)
def test_every_printed_figure_must_be_met(figures: Mapping[str, float], verdict: str, why: str) -> None:
    row = checked({TEXT: [result(**figures)]})
    assert (row.verdict, row.why) == (verdict, why)


def test_what_was_printed_must_be_one_run_of_ours_and_not_merely_among_them() -> None:
    apart = checked({TEXT: [result(in_sla=0.95), result(in_sla=0.99)]})
    assert (apart.verdict, apart.why) == (DIFFERS, "in SLA +1.6 points")
    assert apart.ours == "97 % (95 % to 99 %), 30 r-m, 6 ups, 6 downs"
    assert checked({TEXT: [result(in_sla=0.95), result(in_sla=0.98)]}).verdict == REPRODUCED


def test_figures_of_different_seeds_do_not_add_up_to_one_run() -> None:
    """One seed has the printed cost, another one the printed share: each figure is there, the row is not."""
    row = checked({TEXT: [result(in_sla=0.974, replica_minutes=40.0), result(in_sla=0.9, replica_minutes=30.0)]})
    assert (row.verdict, row.why) == (DIFFERS, "in SLA -7.4 points")


def test_a_row_is_judged_by_the_reading_of_its_paper_whatever_another_one_gives() -> None:
    found = both([result(in_sla=0.9)], [result(in_sla=0.975)])
    row = checked(found)
    assert (row.verdict, row.reading) == (DIFFERS, "text")
    assert (row.readings, row.reproducing) == (("text", "all switches"), ("all switches",))
    other = checked(found, reading="all switches")
    assert (other.verdict, other.reading) == (REPRODUCED, "all switches; heartbeat_s=0.5")
    assert other.settings == ("heartbeat_s=0.5",)


def test_the_reading_of_a_paper_is_the_one_under_which_most_rows_hold() -> None:
    rows = [claim(what=name) for name in "abc"]
    good, bad = [result()], [result(in_sla=0.5)]
    found = {rows[0]: both(good, bad), rows[1]: both(bad, good), rows[2]: both(bad, good)}
    assert reading_of(rows, found) == "all switches"
    assert reading_of(rows[:2], found) == "text", "of equals the first"
    assert reading_of([], found) == ""


def test_what_was_not_printed_is_not_checked() -> None:
    only_share = Published(0.981, None, max_below_s=1.0)
    near = result(in_sla=0.981, replica_minutes=99.0, replicas_added=50)
    row = checked({TEXT: [near]}, claim(only_share))
    assert (row.published, row.ours, row.verdict) == ("98.1 %, worst < 1 s", "98.1 %, worst 0.90 s", REPRODUCED)
    late = checked({TEXT: [result(in_sla=0.981, max_s=1.2)]}, claim(only_share))
    assert (late.verdict, late.why) == (DIFFERS, "worst event +0.20 s")


def test_what_a_paper_prints_elsewhere_is_named_beside_it() -> None:
    row = checked({TEXT: [result(in_sla=0.947)]}, claim(Published(0.947, None, elsewhere="93.9 %")))
    assert row.published == "94.7 % (elsewhere 93.9 %)"


def contrast() -> Contrast:
    return Contrast("CLOSER 2024", "Table 1", "algorithm-2 > linear", claim(), claim(Published(0.947, 25.5)))


def concluded(better: Results, worse: Results) -> PaperFigures:
    one = contrast()
    return one.row({one.better: better, one.worse: worse}, "text")


def shares(*values: float) -> list[SimulationResult]:
    return [result(in_sla=value) for value in values]


def test_a_difference_is_compared_by_its_size_seed_by_seed() -> None:
    near = concluded({TEXT: shares(0.97, 0.96)}, {TEXT: shares(0.95, 0.94)})
    assert (near.verdict, near.published, near.ours) == (REPRODUCED, "+2.7 points", "+2.0 points (+2.0 to +2.0)")
    far = concluded({TEXT: shares(0.97, 0.96)}, {TEXT: shares(0.50, 0.60)})
    assert (far.verdict, far.why) == (DIFFERS, "+33.3 points beside it"), "the right sign is not enough"


def test_a_difference_is_judged_by_the_same_reading() -> None:
    row = concluded(both(shares(0.97), shares(0.90)), both(shares(0.95), shares(0.95)))
    assert (row.verdict, row.reading, row.reproducing) == (REPRODUCED, "text", ("text",))


def test_facts_and_what_is_beyond_us() -> None:
    assert Fact("p", "t", "events", 1000.0, lambda: 1004.0).row({}).verdict == REPRODUCED
    off = Fact("p", "t", "r-m", 414.11, lambda: 420.82, reservation="a closed form").row({})
    assert (off.verdict, off.ours, off.why) == (DIFFERS, "420.82", "+1.6 %; a closed form")
    row = Beyond("p", "t", "start-up", "10 to 50 s", "needs their cluster").row({})
    assert (row.verdict, row.why) == (UNKNOWN, "needs their cluster")
