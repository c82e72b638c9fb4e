"""The large scenarios of the rebalance protocol (see tests/theory/test_rebalance_protocol.py): millions of states."""

import gc

import pytest
from theory.rebalance.explore import explore
from theory.rebalance.scenarios import group

from services.consumer import rounds

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]

SCENARIOS = {
    "three pass their partitions on, one crash or lost session": group(3, "abc", "bca", events=1, faults=1),
    "three pass on, a slow event or a lost answer": group(3, "abc", "bca", events=1, mishaps=1),
    "two swap, a crash or lost session and a slow event or lost answer": group(2, "ab", "ba", faults=1, mishaps=1),
    "two swap, two crashes or lost sessions": group(2, "ab", "ba", events=1, faults=2),
    "two start in an empty group, one crash or lost session": group(2, "ab", "ba", started=0, events=1, faults=1),
    "a new replica starts and takes one, one crash or lost session": group(
        3, "ab", "cb", started=2, events=1, faults=1
    ),
    "a second incarnation starts beside the first": group(3, "ab", "ba", started=2, names=("a", "b", "a"), events=1),
    "one of three drains": group(3, "ab", "ab", events=1, may_drain=0b001, mishaps=1),
}


@pytest.fixture(autouse=True)
def _small_and_quick(monkeypatch):
    """Follow-ups are capped early, so that what comes after the cap is explored too; nothing here makes garbage."""
    monkeypatch.setattr(rounds, "MOST_FOLLOW_UPS", 1)
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_partition_has_two_owners_and_none_is_forgotten(name):
    found = explore(SCENARIOS[name])

    print(f"{name}: {len(found.states)} states, {found.steps} steps")  # noqa: T201  # shown by pytest -s
    assert len(found.states) > 10_000, "a scenario in which nothing happens proves nothing"
