"""Policies by name, as scenarios and the command line know them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from autoscaler.policies.baselines import FirstFit2022, FirstFit2022Settings, Linear, Static
from autoscaler.policies.bin_packing import BinPacking
from autoscaler.policies.flink_ds2 import FlinkDs2, FlinkDs2Settings
from autoscaler.policies.guards import guarded
from autoscaler.policies.keda_hpa import KedaHpa, KedaHpaSettings
from autoscaler.policies.landau import Landau, LandauSettings
from autoscaler.policies.references import (
    Clairvoyant,
    ClairvoyantSettings,
    Overprovisioned,
    OverprovisionedSettings,
    PaperOptimal,
    PaperOptimalSettings,
)
from autoscaler.policies.settings import (
    Factors,
    Guards,
    GuardSettings,
    PolicySettings,
    Scaling,
    StaticSettings,
    Target,
)
from autoscaler.policies.tail_aware.policy import TailAware, TailAwareSettings
from autoscaler.ports import Policy
from contracts.settings import Settings, picked, unknown
from contracts.validation import parse


@dataclass(frozen=True, slots=True)
class PolicyFactory:
    """How a named policy is made, and what it is in one line."""

    description: str
    build: Callable[[PolicySettings, Any], Policy]
    """Takes an instance of `options` beside what all policies share."""
    options: type[Settings]
    """What the policy can be told; of shared settings those that it reads."""


POLICIES: Final[dict[str, PolicyFactory]] = {
    "algorithm-1": PolicyFactory(
        "packs partitions by arrival rate and lag, and owns the assignment (CLOSER 2024, Algorithm 1)",
        lambda settings, _: BinPacking(settings, tail_aware=False),
        Factors,
    ),
    "algorithm-2": PolicyFactory(
        "Algorithm 1, planned for the lag that is there after the rebalance (CLOSER 2024, Algorithm 2)",
        lambda settings, _: BinPacking(settings, tail_aware=True),
        Factors,
    ),
    "linear": PolicyFactory(
        "total arrival rate over the events that a replica serves within the target; states a count only",
        lambda settings, _: Linear(settings),
        Factors,
    ),
    "ffd-2022": PolicyFactory(
        "two-dimensional first-fit decreasing decides the count, partitions are spread by number (ICCBDC 2022)",
        FirstFit2022,
        FirstFit2022Settings,
    ),
    "paper-optimal": PolicyFactory(
        "packs the arrival rates of each tick anew, lag and handovers left out (CLOSER 2024)",
        PaperOptimal,
        PaperOptimalSettings,
    ),
    "overprovisioned": PolicyFactory(
        "the packing at the peak, which it must be told, held throughout", Overprovisioned, OverprovisionedSettings
    ),
    "keda-hpa": PolicyFactory(
        "lag over a threshold, through a HorizontalPodAutoscaler (KEDA); states a count only", KedaHpa, KedaHpaSettings
    ),
    "flink-ds2": PolicyFactory(
        "needed capacity over true processing rate, as Flink's autoscaler; states a count only",
        FlinkDs2,
        FlinkDs2Settings,
    ),
    "landau": PolicyFactory(
        "packs write speeds of 30 s by a heuristic of one's choice, again when a replica is full (Landau et al. 2024)",
        Landau,
        LandauSettings,
    ),
    "static": PolicyFactory(
        "a fixed count, partitions spread evenly once",
        lambda settings, _: Static(settings),
        StaticSettings,
    ),
    "clairvoyant": PolicyFactory(
        "the schedule of the bound, which it must be told",
        Clairvoyant,
        ClairvoyantSettings,
    ),
    "tail-aware": PolicyFactory(
        "of the plans that could follow, the one whose replicas and late events cost least",
        TailAware,
        TailAwareSettings,
    ),
}


def make_policy(
    name: str,
    settings: PolicySettings | None = None,
    guards: GuardSettings | None = None,
    options: Mapping[str, Any] | None = None,
) -> Policy:
    """Return the policy called `name`, inside the guards if any are given.

    options: by name, over the defaults of the policy and over `settings`.
    Raises ValueError that lists the policies there are, or names every option that is wrong or missing.
    """
    if name not in POLICIES:
        raise ValueError(f"policy {name!r} is {unknown(name, POLICIES)}")
    factory, settings = POLICIES[name], settings or PolicySettings()
    try:
        told = parse({**picked(settings, factory.options), **(options or {})}, factory.options)
        settings = replace(settings, **picked(told, PolicySettings))
    except ValueError as refused:
        raise ValueError(f"policy {name}: {refused}") from refused
    policy = factory.build(settings, told)
    return policy if guards is None else guarded(policy, settings, guards)


def configured_policy(
    scaling: Scaling,
    target: Target,
    guards: Guards,
    options: Mapping[str, Any],
    *,
    counts_only: bool,
    fallback: bool = True,
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
