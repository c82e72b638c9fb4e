"""Ticks follow the schedule of the wall clock, and the warm-up takes a policy up and down."""

from itertools import pairwise
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_fakes import FakeClock

from autoscaler.live.configuration import policy_config_of
from autoscaler.live.loop import MAX_WARM_UP_TICKS, Loop, next_tick_s, run_beside, warm_up_policy
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.policies.registry import POLICIES
from autoscaler.ports import Policy
from contracts.waiting import Stop


@given(st.floats(1.6e9, 2.2e9), st.sampled_from([0.25, 0.5, 1.0, 5.0]), st.floats(0, 0.2))
def test_the_next_tick_is_on_schedule_within_one_interval(now_s: float, interval_s: float, offset_s: float) -> None:
    due_s = next_tick_s(now_s, interval_s, offset_s)
    assert now_s - 1e-6 < due_s <= now_s + interval_s + 1e-6
    beats = (due_s - offset_s) / interval_s
    assert beats == pytest.approx(round(beats), abs=1e-5)


class ManualStop(Stop):
    """A `Stop` whose `wait` advances the clock instead; it is set after `end_s`."""

    def __init__(self, clock: FakeClock, end_s: float) -> None:
        super().__init__()
        self.clock, self.end_s = clock, end_s

    def wait(self, timeout_s: float) -> bool:
        self.clock.advance(timeout_s)
        return self.clock.now_s > self.end_s


class TestLoop:
    def test_urgent_decisions_are_made_at_once_and_the_schedule_stays(self) -> None:
        clock = FakeClock(1000.0)
        ticks: list[float] = []
        urgent_s = [1000.4, 1001.7]

        def urgent() -> bool:
            if urgent_s and clock.now_s >= urgent_s[0]:
                del urgent_s[0]
                return True
            return False

        Loop(
            lambda: ticks.append(clock.now_s), lambda: None, interval_s=1, offset_s=0.1, urgent=urgent,
            stop=ManualStop(clock, 1003), clock=clock, ahead_s=lambda: 0.0,
        ).run()  # fmt: skip
        assert ticks == pytest.approx([1000.1, 1000.4, 1001.1, 1001.7, 1002.1], abs=0.021)

    @pytest.mark.parametrize("step_s", [15.0, 3600.0, -3600.0, 0.37, 0.7, -1234.56])
    def test_a_jump_of_the_wall_clock_causes_no_burst_and_no_pause_and_is_reported_once(self, step_s: float) -> None:
        clock = FakeClock(1000.75)
        ticks: list[tuple[float, float]] = []
        steps: list[float] = []

        def ahead_s() -> float:
            return 500.25 + step_s * (clock.now_s > 1005.2)

        loop = Loop(
            lambda: ticks.append((clock.now_s, clock.now_s + ahead_s())), lambda: clock.advance(0.05), interval_s=1,
            offset_s=0.1, stop=ManualStop(clock, 1012), on_clock_jump=steps.append, clock=clock, ahead_s=ahead_s,
        )  # fmt: skip
        loop.run()
        apart = [after - before for (before, _), (after, _) in pairwise(ticks)]
        assert min(apart) >= 0.5
        assert max(apart) <= 1.55
        assert len(ticks) in (11, 12)
        assert [by_s for by_s in steps if by_s] == pytest.approx([step_s])
        assert all(0.09 < wall_s % 1 < 0.18 for at_s, wall_s in ticks if abs(at_s - 1006) > 1), (
            "on the schedule of the wall clock"
        )


NEED_SCHEDULES = {"clairvoyant", "overprovisioned"}
"""Policies that need a schedule."""


def test_steps_are_taken_while_the_policy_is_compiled() -> None:
    steps, is_ended = list[bool](), Event()

    def step() -> None:
        steps.append(is_ended.is_set())
        if len(steps) == 3:
            is_ended.set()

    run_beside(lambda: is_ended.wait(10), step)
    assert steps[:3] == [False] * 3


class RecordingPolicy:
    """Records the decisions of a policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.name = policy, policy.name
        self.decisions: list[Decision] = []

    def decide(self, observation: GroupObservation) -> Decision:
        self.decisions.append(self.policy.decide(observation))
        return self.decisions[-1]


def configured(policy: str, **more: object) -> RecordingPolicy:
    settings = AutoscalerSettings(policy=policy, payment_partitions=8, state_dir="state", **more)  # type: ignore[arg-type]
    return RecordingPolicy(policy_config_of(settings).policy())


@pytest.mark.parametrize("name", sorted(POLICIES.keys() - NEED_SCHEDULES))
def test_the_warm_up_ends_for_every_policy_and_scales_up_and_down(name: str) -> None:
    policy = configured(name)
    warm_up_policy(policy, 8, 1.0)
    assert len(policy.decisions) <= MAX_WARM_UP_TICKS
    if name in ("tail-aware", "algorithm-1", "algorithm-2", "linear", "ffd-2022"):
        actions = [decision.action for decision in policy.decisions]
        assert actions[-1] is Action.DOWN
        assert Action.UP in actions
