"""The rebalance protocol in a large scope (see tests/theory/test_rebalance_protocol.py)."""

import random

import pytest
from theory.rebalance.replica import SESSION_S
from theory.rebalance.schedule import random_scenario, swap
from theory.test_rebalance_protocol import FAULTS, _disable_logging  # noqa: F401  # a fixture

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]


@pytest.mark.parametrize("hundred", range(5))
def test_the_guarantees_hold_under_random_faults(hundred):
    events = repeated = 0
    for seed in range(1000 + 100 * hundred, 1100 + 100 * hundred):
        scenario = random_scenario(seed, max_faults=6).run()
        events += sum(scenario.checks.output.values())
        repeated += scenario.checks.repeated

    print(f"100 schedules, {events} events, {repeated} repeated")  # noqa: T201  # shown by pytest -s


@pytest.mark.parametrize("fault", FAULTS)
def test_the_guarantees_hold_with_a_fault_at_every_message_of_a_handover(fault):
    for number in range(1, swap().run().messages + 1):
        swap(at_messages={number: FAULTS[fault]}).run()


@pytest.mark.parametrize("late_s", [0.02, 0.1, 0.3, 0.8, 1.2, 2.5])
def test_the_guarantees_hold_if_any_message_of_a_handover_is_late(late_s):
    for number in range(1, swap().run().messages + 1):
        swap(late_s={number: late_s * SESSION_S}).run()


@pytest.mark.parametrize("first", FAULTS)
@pytest.mark.parametrize("second", FAULTS)
def test_the_guarantees_hold_with_two_faults_in_a_handover(first, second):
    chance = random.Random(f"{first} {second}")
    for _ in range(30):
        one, other = sorted(chance.sample(range(1, 40), 2))
        swap(at_messages={one: FAULTS[first], other: FAULTS[second]}).run()
