"""What is wrong is told once and shown while it lasts; a policy that fails three times in a row is unwell."""

import re
from pathlib import Path

import pytest
from unit.autoscaler.builders import Wants, seen

from autoscaler.live.journal import LiveJournal
from autoscaler.live.metrics import TROUBLES
from autoscaler.live.plan_log import FencedError
from autoscaler.live.troubles import LASTING, Troubles
from autoscaler.policies.guards import add_guards
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.records import GroupStatus
from contracts.journal import JournalEntry

LIVE = Path(__file__).parents[4] / "autoscaler" / "live"


def test_whatever_may_be_in_trouble_is_shown_from_the_start() -> None:
    code = "".join(one.read_text(encoding="utf-8") for one in LIVE.glob("*.py"))
    told = re.findall(r"""(?:_trouble\(|troubles\.(?:tell|survived|asked)(?:\(|,)\s*)"(\w+)\"""", code)
    assert {*told} == {*TROUBLES}


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def troubles(said: list[str]) -> Troubles:
    return Troubles(said.append, lambda name, on: said.append(f"{name} {on}"))


def test_a_trouble_is_told_when_it_begins_when_it_becomes_serious_and_when_it_is_over(
    troubles: Troubles, said: list[str]
) -> None:
    for age_s in range(4):
        troubles.tell("tick", f"broken for {age_s} s", unwell_after=3)
        assert troubles.unwell == (f"broken for {age_s} s" if age_s >= 2 else "")
        assert troubles.now == {"tick": f"broken for {age_s} s"}
    troubles.tell("tick", "")
    troubles.tell("tick", "")
    assert (troubles.now, troubles.unwell) == ({}, "")
    assert said == [
        "tick True",
        "tick: broken for 0 s",
        "tick: UNWELL: broken for 2 s",
        "tick False",
        "tick: well again",
    ]


def test_what_may_be_an_accident_is_told_only_once_it_lasts(troubles: Troubles, said: list[str]) -> None:
    troubles.tell("offsets", "no broker", after=2)
    troubles.tell("offsets", "")
    assert (troubles.now, said) == ({}, [])
    troubles.tell("offsets", "no broker", after=2)
    troubles.tell("offsets", "no broker", after=2)
    assert troubles.now == {"offsets": "no broker"}


def test_a_policy_that_fails_at_three_ticks_in_a_row_makes_unwell_while_another_decides(troubles: Troubles) -> None:
    inner = Wants(-1)  # fails
    policy = add_guards(inner, PolicySettings(), GuardSettings())
    ticks: list[JournalEntry] = []
    journal = LiveJournal(ticks.append, lambda: GroupStatus(1, 1, 1, 0, 180.0), "wants", troubles)
    for tick in range(LASTING):
        assert not troubles.unwell
        observation = seen([150, 150], replicas=1, at_s=tick)
        decision = policy.decide(observation)
        assert decision.plan.count == 2, "300 events/s at 180"
        journal.record(observation, decision)
    assert troubles.unwell.startswith("wants failed: IndexError")
    inner.count = 1
    observation = seen([10, 10], replicas=2, at_s=LASTING)
    journal.record(observation, policy.decide(observation))
    assert not troubles.now


def test_a_step_that_fails_ends_nothing_unless_it_says_that_another_controller_has_taken_over(
    troubles: Troubles, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    wrong: list[Exception] = [KeyError("payment-0"), KeyError("payment-0"), FencedError("another one")]

    def step() -> None:
        if wrong:
            raise wrong.pop(0)

    assert troubles.survived("tick", step, fatal=FencedError, unwell_after=2) == "failed: KeyError: 'payment-0'"
    assert not troubles.unwell
    troubles.survived("tick", step, fatal=FencedError, unwell_after=2)
    assert troubles.unwell
    with pytest.raises(FencedError):
        troubles.survived("tick", step, fatal=FencedError)
    assert troubles.survived("tick", step, fatal=FencedError) == ""
    assert said[-2:] == ["tick False", "tick: well again"]
    assert [record.exc_info is not None for record in caplog.records] == [True]
