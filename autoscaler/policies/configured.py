"""The policy inside its guards, from what a live autoscaler and a scenario are both told."""

from typing import Final, Protocol

from autoscaler.policies.options import Options
from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.ports import Policy

REPLICA_PREFIX: Final = "payment"


class Promise(Protocol):
    """What is promised."""

    @property
    def latency_target_s(self) -> float:
        """W, seconds."""
        ...

    @property
    def percentile(self) -> float:
        """Share of the events that must be within W."""
        ...


class Scaling(Protocol):
    """Who decides, and within which limits. See PolicySettings and GuardSettings."""

    @property
    def policy(self) -> str:
        """Name of the policy."""
        ...

    @property
    def f_up(self) -> float:
        """Share of a replica beyond which replicas are added."""
        ...

    @property
    def f_down(self) -> float:
        """Share of a replica that fewer may use."""
        ...

    @property
    def initial_replicas(self) -> int:
        """Replicas at the start; `static` keeps them."""
        ...

    @property
    def min_replicas(self) -> int:
        """Fewest replicas."""
        ...

    @property
    def max_replicas(self) -> int:
        """Most replicas; 0: as many as there are partitions."""
        ...

    @property
    def cool_down_up_s(self) -> float:
        """Seconds after any scaling before replicas are added again."""
        ...

    @property
    def cool_down_down_s(self) -> float:
        """Seconds after any scaling before replicas are removed."""
        ...


def configured_policy(
    scaling: Scaling, promise: Promise, options: Options, *, counts_only: bool, fallback: bool = True
) -> Policy:
    """Return the policy that is asked for, inside its guards. Raises ValueError naming what is wrong.

    options: what the policy itself is told. counts_only, fallback: see GuardSettings.
    """
    return make_policy(
        scaling.policy,
        PolicySettings(
            latency_target_s=promise.latency_target_s,
            percentile=promise.percentile,
            f_up=scaling.f_up,
            f_down=scaling.f_down,
            replica_prefix=REPLICA_PREFIX,
            static_replicas=scaling.initial_replicas,
        ),
        GuardSettings(
            minimum=scaling.min_replicas,
            maximum=scaling.max_replicas,
            cool_down_up_s=scaling.cool_down_up_s,
            cool_down_down_s=scaling.cool_down_down_s,
            counts_only=counts_only,
            fallback=fallback,
        ),
        options,
    )
