"""Guards: policies that wrap another policy and restrict it. A guard appends to the reason why it vetoed a change."""

from autoscaler.policies.guards.faults import CountByLoad, Fallback, IgnoreStuckPartitions
from autoscaler.policies.guards.holds import Steps
from autoscaler.policies.guards.limits import Bounds, CoolDown, CountsOnly, StabiliseDown, WaitForReplicas
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.ports import Policy


def add_guards(policy: Policy, settings: PolicySettings, guards: GuardSettings) -> Policy:
    """Return the policy inside the guards that are switched on. The order, from the inside out, is:

    1. Owners are removed if the group places its partitions itself.
    2. The count is limited, then stabilised, then single steps and moves.
    3. DOWN and REASSIGN wait for replicas that are not ready. Then the cool-down counts only changes that passed.
    4. The lag of stuck partitions is hidden from all guards above.
    5. The fallback replaces the decision if the policy or a guard fails.
    """
    prefix = settings.replica_prefix
    if guards.counts_only:
        policy = CountsOnly(policy)
    policy = Bounds(policy, minimum=guards.min_replicas, maximum=guards.max_replicas, replica_prefix=prefix)
    if guards.stabilisation_down_s:
        policy = StabiliseDown(policy, window_s=guards.stabilisation_down_s, replica_prefix=prefix)
    if guards.max_step_up or guards.max_step_down or guards.moves_per_minute:
        policy = Steps(policy, limits=guards, replica_prefix=prefix)
    policy = WaitForReplicas(policy, limit_s=guards.changing_limit_s)
    if guards.cool_down_up_s or guards.cool_down_down_s:
        policy = CoolDown(policy, up_s=guards.cool_down_up_s, down_s=guards.cool_down_down_s)
    if guards.stuck_after_s:
        policy = IgnoreStuckPartitions(policy, after_s=guards.stuck_after_s)
    if guards.fallback:
        policy = Fallback(policy, CountByLoad(settings, guards))
    return policy
