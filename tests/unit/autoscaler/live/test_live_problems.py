"""Problems are logged once and shown while they last; a policy that fails three times in a row is unhealthy."""

import re
from pathlib import Path

import pytest
from unit.autoscaler.builders import Wants, seen

from autoscaler.live.journal import LiveJournal
from autoscaler.live.metrics import CONDITIONS
from autoscaler.live.plan_log import FencedError
from autoscaler.live.problems import PERSISTENT_TICKS, Problems
from autoscaler.policies.guards import add_guards
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus
from contracts.journal import JournalEntry, TickRecord

LIVE = Path(__file__).parents[4] / "autoscaler" / "live"


def test_every_component_has_a_condition_from_the_start() -> None:
    code = "".join(one.read_text(encoding="utf-8") for one in LIVE.glob("*.py"))
    reported = re.findall(r"""(?:_report_problem\(|(?:problems\.(?:report|query)|run_step)(?:\(|,)\s*)"(\w+)\"""", code)
    assert {*reported} == {*CONDITIONS}


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


def test_a_policy_that_fails_three_times_is_unhealthy_while_the_fallback_decides(problems: Problems) -> None:
    inner = Wants(-1)  # fails
    policy = add_guards(inner, PolicySettings(), GuardSettings())
    ticks: list[JournalEntry] = []
    journal = LiveJournal(ticks.append, lambda: GroupStatus(1, 1, 1, 0, 180.0), "wants", problems)
    for tick in range(PERSISTENT_TICKS):
        assert not problems.unhealthy_reason
        observation = seen([150, 150], replicas=1, at_s=tick)
        decision = policy.decide(observation)
        assert decision.plan.count == 2, "300 events/s at 180"
        journal.record(observation, decision)
    assert problems.unhealthy_reason.startswith("wants failed: IndexError")
    inner.count = 1
    observation = seen([10, 10], replicas=2, at_s=PERSISTENT_TICKS)
    journal.record(observation, policy.decide(observation))
    assert not problems.current


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
