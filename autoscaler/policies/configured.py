"""The policy inside its guards, from what a live autoscaler and a scenario are both told."""

from autoscaler.policies.options import Options
from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import Guards, GuardSettings, PolicySettings, Scaling, Target
from autoscaler.ports import Policy
from contracts.settings import picked


def configured_policy(
    scaling: Scaling, target: Target, guards: Guards, options: Options, *, counts_only: bool, fallback: bool = True
) -> Policy:
    """Return the policy that is asked for, inside its guards. Raises ValueError naming what is wrong.

    options: what the policy itself is told. counts_only, fallback: see GuardSettings.
    """
    limits = picked(scaling, GuardSettings) | picked(guards, Guards)
    shared = picked(scaling, PolicySettings) | picked(target, Target)
    return make_policy(
        scaling.policy,
        PolicySettings(**shared, static_replicas=scaling.initial_replicas),
        GuardSettings(**limits, counts_only=counts_only, fallback=fallback),
        options,
    )
