"""What the simulator foretells of the scenario in which one customer becomes too much for one replica."""

from typing import Any

import pytest

from bench.grouping_live import SCENARIO, foretell
from bench.scenario import load_scenario
from contracts.events import Grouping
from studies.grouping.compare import GROUPINGS


def foretold(grouping: Grouping) -> dict[str, Any]:
    return foretell(load_scenario(SCENARIO, {"load.grouping": grouping.value}))


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_key_grouping_keeps_every_customer_s_order_and_not_the_tail_all_others_the_tail(grouping: Grouping) -> None:
    found = foretold(grouping)
    assert (found["foretold_overtaken"] == 0) == grouping.keeps_key_order
    assert (found["foretold_in_sla"] < 0.95) == grouping.keeps_key_order
