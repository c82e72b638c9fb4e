"""A rehearsal takes a policy up and down again, and ends when it is told to."""

import pytest

from autoscaler.live.composition import policy_from
from autoscaler.live.loop import LONGEST, rehearse
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.policies.registry import POLICIES
from autoscaler.ports import Policy

TOLD_WHAT_TO_DO = {"clairvoyant", "overprovisioned"}
"""Policies that are nothing without a schedule."""


class Listening:
    """A policy that keeps what the one inside decides."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.name = policy, policy.name
        self.seen: list[Decision] = []

    def decide(self, observation: GroupObservation) -> Decision:
        self.seen.append(self.policy.decide(observation))
        return self.seen[-1]


def configured(policy: str, **more: object) -> Listening:
    settings = AutoscalerSettings(policy=policy, payment_partitions=8, state_dir="state", **more)  # type: ignore[arg-type]
    return Listening(policy_from(settings))


def met_by(policy: Policy, *, stopped: bool = False) -> int:
    return rehearse(policy, partitions=8, service_rate=200.0, interval_s=1.0, done=lambda: stopped)


@pytest.mark.parametrize("name", ["tail-aware", "algorithm-1", "algorithm-2", "linear", "ffd-2022"])
def test_it_goes_up_and_down(name: str) -> None:
    policy = configured(name)
    assert met_by(policy) == len(policy.seen) < LONGEST
    actions = [one.action for one in policy.seen]
    assert actions[-1] is Action.DOWN
    assert Action.UP in actions


@pytest.mark.parametrize("name", sorted(POLICIES.keys() - TOLD_WHAT_TO_DO))
def test_it_ends_with_every_policy(name: str) -> None:
    assert met_by(configured(name)) <= LONGEST


def test_it_ends_when_told_to() -> None:
    policy = configured("tail-aware")
    assert met_by(policy, stopped=True) == 0
    assert not policy.seen
