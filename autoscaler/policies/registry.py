"""Policies by name, as scenarios and the command line know them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from autoscaler.policies.bin_packing import BinPacking
from autoscaler.policies.counting import Linear, Static
from autoscaler.policies.guards import Bounds, CoolDown, CountsOnly, HoldWhileChanging
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.ports import Policy


class UnknownPolicyError(ValueError):
    """No policy has that name; the message lists those there are."""


@dataclass(frozen=True, slots=True)
class PolicyFactory:
    """How a named policy is made, and what it is in one line."""

    description: str
    build: Callable[[PolicySettings], Policy]


POLICIES: Final[dict[str, PolicyFactory]] = {
    "algorithm-1": PolicyFactory(
        "packs partitions by arrival rate and lag, and owns the assignment (CLOSER 2024, Algorithm 1)",
        lambda settings: BinPacking(settings, tail_aware=False),
    ),
    "algorithm-2": PolicyFactory(
        "Algorithm 1, planned for the lag that is there after the rebalance (CLOSER 2024, Algorithm 2)",
        lambda settings: BinPacking(settings, tail_aware=True),
    ),
    "linear": PolicyFactory(
        "total arrival rate over the events that a replica serves within the target; states a count only", Linear
    ),
    "static": PolicyFactory("a fixed count, partitions spread evenly once", Static),
}


def make_policy(name: str, settings: PolicySettings | None = None, guards: GuardSettings | None = None) -> Policy:
    """Return the policy called `name`, inside the guards if any are given.

    Read from the inside out: owners are dropped where the group places its partitions itself; the count is bounded
    first, then held while replicas change, then cooled down, so that the cool-down counts only what was really let
    through. Raises UnknownPolicyError.
    """
    if name not in POLICIES:
        raise UnknownPolicyError(f"policy {name!r} is unknown; known are {', '.join(POLICIES)}")
    settings = settings or PolicySettings()
    policy = POLICIES[name].build(settings)
    if guards is None:
        return policy
    if guards.counts_only:
        policy = CountsOnly(policy)
    bounded = Bounds(policy, minimum=guards.minimum, maximum=guards.maximum, replica_prefix=settings.replica_prefix)
    steady = HoldWhileChanging(bounded, limit_s=guards.changing_limit_s)
    if not guards.cool_down_up_s and not guards.cool_down_down_s:
        return steady
    return CoolDown(steady, up_s=guards.cool_down_up_s, down_s=guards.cool_down_down_s)
