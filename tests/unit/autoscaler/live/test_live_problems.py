"""Problems are logged once and shown while they last."""

import pytest

from autoscaler.live.journal import LiveJournal
from autoscaler.live.plan_log import FencedError
from autoscaler.live.problems import Problems
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus
from contracts.journal import JournalEntry, TickRecord


@pytest.fixture
def log_lines() -> list[str]:
    return []


@pytest.fixture
def problems(log_lines: list[str]) -> Problems:
    return Problems(log_lines.append, lambda name, on: log_lines.append(f"{name} {on}"))


def test_a_problem_is_logged_when_it_begins_becomes_unhealthy_and_ends(
    problems: Problems, log_lines: list[str]
) -> None:
    for age_s in range(4):
        problems.report("tick", f"broken for {age_s} s", unhealthy_after=3)
        assert problems.unhealthy_reason == (f"broken for {age_s} s" if age_s >= 2 else "")
        assert problems.current == {"tick": f"broken for {age_s} s"}
    problems.report("tick", "")
    problems.report("tick", "")
    assert (problems.current, problems.unhealthy_reason) == ({}, "")
    assert log_lines == [
        "tick True",
        "tick: broken for 0 s",
        "tick: unhealthy: broken for 2 s",
        "tick False",
        "tick: recovered",
    ]


def test_a_short_problem_is_reported_only_if_it_persists(problems: Problems, log_lines: list[str]) -> None:
    problems.report("offsets", "no broker", after=2)
    problems.report("offsets", "")
    assert (problems.current, log_lines) == ({}, [])
    problems.report("offsets", "no broker", after=2)
    problems.report("offsets", "no broker", after=2)
    assert problems.current == {"offsets": "no broker"}


def test_a_tick_without_data_records_what_was_missing_and_no_loads(problems: Problems) -> None:
    ticks: list[JournalEntry] = []
    journal = LiveJournal(ticks.append, lambda: GroupStatus(2, 1, 2, 4, 180.0), "wants", problems)
    journal.record_not_ready(NotReadyError("end offset of payments.requested/1"))
    (tick,) = ticks
    assert isinstance(tick, TickRecord)
    assert (tick.tick, tick.action, tick.missing) == (1, "no-change", "end offset of payments.requested/1")
    assert (tick.partitions, tick.requested_replicas, tick.ready_replicas) == ((), 2, 1)


def test_a_failed_step_ends_the_autoscaler_only_if_another_controller_has_taken_over(
    problems: Problems, log_lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    wrong: list[Exception] = [KeyError("payment-0"), KeyError("payment-0"), FencedError("another one")]

    def step() -> None:
        if wrong:
            raise wrong.pop(0)

    assert problems.run_step("tick", step, fatal=FencedError, unhealthy_after=2) == "failed: KeyError: 'payment-0'"
    assert not problems.unhealthy_reason
    problems.run_step("tick", step, fatal=FencedError, unhealthy_after=2)
    assert problems.unhealthy_reason
    with pytest.raises(FencedError):
        problems.run_step("tick", step, fatal=FencedError)
    assert problems.run_step("tick", step, fatal=FencedError) == ""
    assert log_lines[-2:] == ["tick False", "tick: recovered"]
    assert [record.exc_info is not None for record in caplog.records] == [True]
