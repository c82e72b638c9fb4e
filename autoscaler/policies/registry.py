"""Policies by name, as scenarios and the command line know them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from autoscaler.policies.baselines import FirstFit2022, FirstFit2022Settings, Linear, Static
from autoscaler.policies.bin_packing import BinPacking
from autoscaler.policies.flink_ds2 import FlinkDs2
from autoscaler.policies.flink_metrics import FlinkDs2Settings
from autoscaler.policies.guards import guarded
from autoscaler.policies.keda_hpa import KedaHpa, KedaHpaSettings
from autoscaler.policies.landau import Landau, LandauSettings
from autoscaler.policies.options import NoOptions, Options, PolicyOption, changed, listed, made, problems_of
from autoscaler.policies.references import (
    Clairvoyant,
    ClairvoyantSettings,
    Overprovisioned,
    OverprovisionedSettings,
    PaperOptimal,
    PaperOptimalSettings,
)
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.policies.tail_aware.policy import TailAware, TailAwareSettings
from autoscaler.ports import Policy
from contracts.settings import unknown


class UnknownPolicyError(ValueError):
    """No policy has that name; the message lists those there are."""


class PolicyOptionsError(ValueError):
    """A policy was told what it does not understand; the message names every mistake."""


@dataclass(frozen=True, slots=True)
class PolicyFactory:
    """How a named policy is made, and what it is in one line."""

    description: str
    build: Callable[[PolicySettings, Any], Policy]
    """Takes an instance of `options` beside what all policies share."""
    options: type = NoOptions
    """Dataclass of the policy's own settings."""
    shared: tuple[str, ...] = ()
    """Which fields of PolicySettings may be told among its options, because it reads them."""


F_UP_AND_DOWN: Final = ("f_up", "f_down")
POLICIES: Final[dict[str, PolicyFactory]] = {
    "algorithm-1": PolicyFactory(
        "packs partitions by arrival rate and lag, and owns the assignment (CLOSER 2024, Algorithm 1)",
        lambda settings, _: BinPacking(settings, tail_aware=False),
        shared=F_UP_AND_DOWN,
    ),
    "algorithm-2": PolicyFactory(
        "Algorithm 1, planned for the lag that is there after the rebalance (CLOSER 2024, Algorithm 2)",
        lambda settings, _: BinPacking(settings, tail_aware=True),
        shared=F_UP_AND_DOWN,
    ),
    "linear": PolicyFactory(
        "total arrival rate over the events that a replica serves within the target; states a count only",
        lambda settings, _: Linear(settings),
        shared=F_UP_AND_DOWN,
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
        shared=("static_replicas",),
    ),
    "clairvoyant": PolicyFactory(
        "the schedule of the bound, which it must be told",
        lambda settings, options: Clairvoyant(options.schedule, settings, ahead_s=options.ahead_s),
        ClairvoyantSettings,
    ),
    "tail-aware": PolicyFactory(
        "of the plans that could follow, the one whose replicas and late events cost least",
        TailAware,
        TailAwareSettings,
    ),
}


def policy_options(name: str) -> tuple[PolicyOption, ...]:
    """Return what the policy called `name` can be told, as `make_policy` takes it. Raises UnknownPolicyError."""
    factory = _factory(name)
    return (*listed(PolicySettings, factory.shared), *listed(factory.options))


def make_policy(
    name: str,
    settings: PolicySettings | None = None,
    guards: GuardSettings | None = None,
    options: Options | None = None,
) -> Policy:
    """Return the policy called `name`, inside the guards if any are given.

    options: by name, over the defaults of the policy and over `settings`.
    Raises UnknownPolicyError, or PolicyOptionsError naming every option that is wrong or missing.
    """
    factory = _factory(name)
    options = options or {}
    wrong = problems_of(options, policy_options(name))
    if wrong:
        raise PolicyOptionsError(f"policy {name}: {'; '.join(wrong)}")
    try:
        settings = changed(settings or PolicySettings(), options, factory.shared)
        policy = factory.build(settings, made(factory.options, options))
    except ValueError as refused:
        raise PolicyOptionsError(f"policy {name}: {refused}") from refused
    return policy if guards is None else guarded(policy, settings, guards)


def _factory(name: str) -> PolicyFactory:
    if name not in POLICIES:
        raise UnknownPolicyError(f"policy {name!r} is {unknown(name, POLICIES)}")
    return POLICIES[name]
