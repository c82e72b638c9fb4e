"""Duties run at their times while a server waits, and a late one is not made up for in a burst."""

import pytest

from services.comparators.duties import Duties


class Clock:
    """Time that only passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def duties(clock) -> Duties:
    return Duties(clock, clock.sleep)


def test_a_duty_runs_at_its_interval_during_a_long_wait_that_ends_on_time(duties, clock):
    ran_at = []
    duties.add(0.25, lambda: ran_at.append(clock.now_s))

    duties.wait_until(101.1)

    assert ran_at == pytest.approx([100.25, 100.5, 100.75, 101.0])
    assert clock.now_s == pytest.approx(101.1)


def test_duties_of_different_intervals_do_not_disturb_each_other(duties, clock):
    ran = []
    duties.add(0.1, lambda: ran.append("commit"))
    duties.add(0.25, lambda: ran.append("report"))

    duties.wait_until(100.51)

    assert ran.count("commit") == 5
    assert ran.count("report") == 2


def test_a_duty_that_was_due_long_ago_runs_once(duties, clock):
    ran = []
    duties.add(0.1, lambda: ran.append(clock.now_s))
    clock.now_s += 5.0

    duties.run_due()

    assert ran == [105.0]


def test_the_wait_until_the_next_duty_is_told(duties, clock):
    duties.add(0.1, lambda: None)
    duties.add(0.25, lambda: None)
    clock.now_s += 0.04

    assert duties.run_due() == pytest.approx(0.06)


def test_a_deadline_that_has_passed_is_not_waited_for(duties, clock):
    duties.add(0.1, lambda: None)

    duties.wait_until(99.0)

    assert clock.now_s == 100.0
