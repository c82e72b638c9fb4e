"""All guards around a policy, in the order in which they make sense."""

from autoscaler.policies.guards.backlog import KeepWhileDraining
from autoscaler.policies.guards.bounds import Bounds
from autoscaler.policies.guards.changing import HoldDuringHandover, HoldWhileChanging
from autoscaler.policies.guards.counts_only import CountsOnly
from autoscaler.policies.guards.fallback import Fallback
from autoscaler.policies.guards.known import HoldWhenUnknown
from autoscaler.policies.guards.no_help import NoticeNoHelp
from autoscaler.policies.guards.pace import CoolDown, RateLimit, Stabilised
from autoscaler.policies.guards.stuck import SetStuckAside
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.ports import Policy


def guarded(policy: Policy, settings: PolicySettings, guards: GuardSettings) -> Policy:
    """Return the policy inside the guards that are switched on.

    Read from the inside out. What is wanted: owners are dropped where the group places its partitions itself; the
    count is bounded, then stabilised. When it may be: not while a backlog is drained, replicas change or partitions
    are handed over. How much of it: rate limit and cool-down come after all vetoes, so that they count only what was
    really let through. What is said: stuck partitions are hidden from all of these, scale-ups without effect are
    noticed. Last, what fails or makes no sense in any of them is caught.
    """
    for guard in (_wanted, _when, _how_much, _safely):
        policy = guard(policy, settings, guards)
    return policy


def _wanted(policy: Policy, settings: PolicySettings, guards: GuardSettings) -> Policy:
    prefix = settings.replica_prefix
    if guards.counts_only:
        policy = CountsOnly(policy)
    policy = Bounds(policy, minimum=guards.minimum, maximum=guards.maximum, replica_prefix=prefix)
    up_s, down_s = guards.stabilisation_up_s, guards.stabilisation_down_s
    return Stabilised(policy, up_s=up_s, down_s=down_s, replica_prefix=prefix) if up_s or down_s else policy


def _when(policy: Policy, settings: PolicySettings, guards: GuardSettings) -> Policy:
    if guards.keep_while_draining:
        policy = KeepWhileDraining(policy, latency_target_s=settings.latency_target_s)
    policy = HoldWhileChanging(policy, limit_s=guards.changing_limit_s)
    return HoldDuringHandover(policy) if guards.hold_during_handover else policy


def _how_much(policy: Policy, settings: PolicySettings, guards: GuardSettings) -> Policy:
    if guards.rate_limit:
        policy = RateLimit(
            policy,
            replicas=guards.rate_limit,
            window_s=guards.rate_window_s,
            replica_prefix=settings.replica_prefix,
        )
    if guards.cool_down_up_s or guards.cool_down_down_s:
        policy = CoolDown(policy, up_s=guards.cool_down_up_s, down_s=guards.cool_down_down_s)
    return policy


def _safely(policy: Policy, settings: PolicySettings, guards: GuardSettings) -> Policy:
    if guards.stuck_after_s:
        policy = SetStuckAside(policy, after_s=guards.stuck_after_s)
    if guards.judge_s:
        policy = NoticeNoHelp(policy, latency_target_s=settings.latency_target_s, judge_s=guards.judge_s)
    if guards.fallback:
        policy = Fallback(
            policy,
            after_s=guards.fallback_after_s,
            safe_replicas=guards.safe_replicas,
            counts_only=guards.counts_only,
            replica_prefix=settings.replica_prefix,
        )
    return HoldWhenUnknown(policy)
