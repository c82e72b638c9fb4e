"""Ezzeddine, Migliorini, Baude, Huet: Cost-Efficient and Latency-Aware Event Consuming, ICCBDC 2022."""

from collections.abc import Iterator
from typing import Final

from studies.paper.readings import iccbdc
from studies.paper.statement import Claim, Contrast, Fact, Statement, totals
from studies.paper.work import BY_CHANCE, SAME_COUNTS
from studies.published import ICCBDC_2022, LOAD_AWARE, Published

TITLE: Final = "Ezzeddine, Migliorini, Baude, Huet, ICCBDC 2022 (W = 5 s, μ = 100, 95 measured)"
TABLE: Final = "Load-aware against sticky assignment, at the same counts"
WORKLOAD: Final = "Figures of the workloads"
ONE_RUN: Final = "one run on a cluster stands behind it"
CONTRADICTS_ITSELF: Final = "the paper's own figure integrates to 21.4 r-m"


def statements() -> Iterator[Statement]:
    """Yield all that it says."""
    yield Fact(TITLE, WORKLOAD, "W3: peak, events/s", 255, lambda: float(totals("w3").max()))
    rows = {key: _claim(*key, published) for key, published in ICCBDC_2022.items()}
    for scenario in ("w3", "w4"):
        own = [claim for (name, _, interval_s), claim in rows.items() if name == scenario and interval_s == 1.0]
        yield from own
        yield Contrast(TITLE, TABLE, f"{scenario}: load-aware > sticky", own[0], own[1])
    slow = rows["w4", LOAD_AWARE, 30.0]
    yield slow
    yield Contrast(TITLE, TABLE, "w4: decisions each 1 s > each 30 s", rows["w4", LOAD_AWARE, 1.0], slow)


def _claim(scenario: str, assigned: str, interval_s: float, published: Published) -> Claim:
    ways = ("", "") if assigned == LOAD_AWARE else (SAME_COUNTS, BY_CHANCE)
    return Claim(
        TITLE,
        TABLE,
        f"{scenario}, ffd-2022, {assigned}, decisions each {interval_s:g} s",
        scenario,
        published,
        iccbdc("ffd-2022", ways=ways, row={"decision_interval_s": interval_s}),
        CONTRADICTS_ITSELF if scenario == "w3" and assigned == LOAD_AWARE else ONE_RUN,
    )
