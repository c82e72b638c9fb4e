"""Finds policies by their names. They are our own, those of installed packages, and those in files.

An installed package offers a policy by an entry point of the group `tailpack.policies`. A file is named by its path:
`./mine.py`, or `./mine.py:Mine` if it has several policies. It contains a `PolicyFactory`, or a class with a method
`decide`. Packages and files are imported only if they are named.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from typing import Any, Final

from autoscaler.policies import references
from autoscaler.policies.baselines import FirstFit2022, FirstFit2022Settings, Linear, Static
from autoscaler.policies.bin_packing import BinPacking
from autoscaler.policies.flink_ds2 import FlinkDs2, FlinkDs2Settings
from autoscaler.policies.guards import add_guards
from autoscaler.policies.keda_hpa import KedaHpa, KedaHpaSettings
from autoscaler.policies.landau import Landau, LandauSettings
from autoscaler.policies.settings import Factors, Guards, GuardSettings, PolicySettings, Scaling, StaticSettings
from autoscaler.policies.tail_aware.plans import TailAwareSettings
from autoscaler.policies.tail_aware.policy import TailAware
from autoscaler.ports import Policy
from contracts.settings import Settings, Target, shared_fields, unknown_name
from contracts.validation import parse

GROUP: Final = "tailpack.policies"
FILE: Final = ".py"


@dataclass(frozen=True, slots=True)
class PolicyFactory:
    """Creates a named policy, and describes it in one line."""

    description: str
    build: Callable[[PolicySettings, Any], Policy]
    """Takes the settings that policies share, and an instance of `options`."""
    options: type[Settings]
    """Class of the policy's own settings, and of the shared ones that it reads."""


def _factory_of(policy: Callable[..., Policy], options: type[Settings]) -> PolicyFactory:
    """Return the factory of a class, described by its first line. The class takes any number of `build`'s arguments."""
    description, accepted = policy.__doc__ or policy.__name__, len(signature(policy).parameters)
    return PolicyFactory(description.partition("\n")[0], lambda *arguments: policy(*arguments[:accepted]), options)


POLICIES: Final[dict[str, PolicyFactory]] = {
    "algorithm-1": PolicyFactory(
        "Packs partitions into replicas by arrival rate and lag (CLOSER 2024, Algorithm 1).",
        lambda settings, _: BinPacking(settings, tail_aware=False),
        Factors,
    ),
    "algorithm-2": PolicyFactory(
        "As algorithm-1, for the expected lag after the rebalance (CLOSER 2024, Algorithm 2).",
        lambda settings, _: BinPacking(settings, tail_aware=True),
        Factors,
    ),
    "linear": _factory_of(Linear, Factors),
    "ffd-2022": _factory_of(FirstFit2022, FirstFit2022Settings),
    "paper-optimal": _factory_of(references.PaperOptimal, references.PaperOptimalSettings),
    "overprovisioned": _factory_of(references.Overprovisioned, references.OverprovisionedSettings),
    "keda-hpa": _factory_of(KedaHpa, KedaHpaSettings),
    "flink-ds2": _factory_of(FlinkDs2, FlinkDs2Settings),
    "landau": _factory_of(Landau, LandauSettings),
    "static": PolicyFactory(
        "Keeps a fixed count and spreads partitions evenly once.", lambda settings, _: Static(settings), StaticSettings
    ),
    "clairvoyant": _factory_of(references.Clairvoyant, references.ClairvoyantSettings),
    "tail-aware": _factory_of(TailAware, TailAwareSettings),
}


_CLASSES: Final[dict[str, type]] = {}


def use_class(policy: type) -> str:
    """Make a class with `decide` a policy of this process, and return its name. A class of the same name replaces it.

    Raises ValueError if one of our policies has this name.
    """
    name = str(getattr(policy, "name", policy.__name__)).lower()
    if name in POLICIES:
        raise ValueError(f"the class {policy.__name__} has the name of our policy {name!r}; give it another `name`")
    _CLASSES[name] = policy
    return name


def policy_names() -> list[str]:
    """Return the names of our policies, then of those that packages offer, without importing them."""
    return list(dict.fromkeys([*POLICIES, *sorted(entry_points(group=GROUP).names)]))


def policy_factory(name: str) -> PolicyFactory:
    """Return the factory of the policy called `name`. A package cannot replace a built-in policy. Case is ignored.

    Raises ValueError with the existing policies, or with the problem of a package or file and its name.
    """
    if FILE in name:
        return _factory_in_file(name)
    name = name.lower()
    if name in POLICIES:
        return POLICIES[name]
    if name in _CLASSES:
        return _load_external(repr(name), lambda: _CLASSES[name])
    if count := fixed_count(name):
        return replace(POLICIES["static"], build=lambda settings, _: Static(settings, count))
    offers = list(entry_points(group=GROUP, name=name))
    if not offers:
        number = name.rpartition("-")[2]
        fixed = ""
        if number.isdecimal() and "algo" not in name:
            fixed = f"unknown; did you mean static-{number}?" if int(number) else "no replica; use static-1 or more"
        raise ValueError(f"{name!r} is {fixed or unknown_name(name, policy_names())}")
    where = [f"package {offer.dist.name if offer.dist else '?'} ({offer.value})" for offer in offers]
    if len(offers) > 1:
        raise ValueError(f"{name!r} is offered by {' and '.join(where)}; uninstall all but one")
    return _load_external(f"{name!r} of {where[0]}", offers[0].load, name)


def fixed_count(name: str) -> int:
    """Return the count in a name such as `static-5`; 0 for other policies."""
    number = name.lower().removeprefix("static-")
    return int(number) if number != name.lower() and number.isdecimal() else 0


@cache
def _factory_in_file(name: str) -> PolicyFactory:
    """Return the named policy of a file, else its first PolicyFactory, else its first class with `decide`."""
    stem, _, attribute = name.replace(f"{FILE}:", FILE).partition(FILE)

    def load() -> Any:
        spec = spec_from_file_location(stem.rpartition("/")[2], stem + FILE)
        module = module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        return vars(module)

    members = _try(f"{name!r} cannot be imported", load)
    classes = [value for value in members.values() if _decides(value) and value.__module__ == members["__name__"]]
    factories = [value for value in members.values() if isinstance(value, PolicyFactory)]
    found = members.get(attribute) if attribute else next(iter([*factories, *classes]), None)
    if found is None:
        names = ", ".join(policy.__name__ for policy in classes)
        raise ValueError(f"{stem}{FILE}: has no class {attribute or 'with `decide`'}; it has {names or 'none'}")
    return _load_external(repr(name), lambda: found)


def _load_external(where: str, load: Callable[[], Any], name: str = "") -> PolicyFactory:
    """Return the factory of a policy that is not ours: a PolicyFactory, or one for a class with a method `decide`.

    A class takes nothing, PolicySettings, or these and an instance of its attribute `options`, a class of Settings.
    where: names the origin in errors. name: name that the policy must have; empty: any.
    """
    found = _try(f"{where} cannot be imported", load)
    if _decides(found):
        found = _factory_of(found, getattr(found, "options", Settings))
    if not isinstance(found, PolicyFactory):
        raise ValueError(f"{where} must be a PolicyFactory or a class with `decide`, not {type(found).__name__}")

    def build(*arguments: Any) -> Policy:
        policy: Any = _try(f"policy {where} cannot be created", lambda: found.build(*arguments))
        if not hasattr(policy, "decide") or name not in ("", getattr(policy, "name", name)):
            lacks = f"must make an object with a method `decide` and the `name` {name!r}, not {type(policy).__name__}"
            raise ValueError(f"policy {where} {lacks}")
        if not hasattr(policy, "name"):
            policy.name = name or type(policy).__name__
        return policy  # type: ignore[no-any-return]

    return replace(found, build=build)


def _decides(value: object) -> bool:
    return isinstance(value, type) and hasattr(value, "decide")


def _try(problem: str, step: Callable[[], Any]) -> Any:
    try:
        return step()
    except (Exception, SystemExit) as error:  # code of users may raise anything
        raise ValueError(f"{problem}: {type(error).__name__}: {' '.join(str(error).split())}") from error


def make_policy(
    name: str,
    settings: PolicySettings | None = None,
    guards: GuardSettings | None = None,
    options: Mapping[str, Any] | None = None,
) -> Policy:
    """Return the policy called `name`, inside guards unless `guards` is None.

    options: values by name, which override the policy's defaults and `settings`.
    Raises ValueError as policy_factory, or naming every option that is wrong or missing.
    """
    try:
        factory = policy_factory(name)
    except ValueError as error:
        raise ValueError(f"policy {error}") from error
    settings = settings or PolicySettings()
    try:
        own = parse({**shared_fields(settings, factory.options), **(options or {})}, factory.options)
        settings = replace(settings, **shared_fields(own, PolicySettings))
    except ValueError as error:
        raise ValueError(f"policy {name}: {error}") from error
    policy = factory.build(settings, own)
    return policy if guards is None else add_guards(policy, settings, guards)


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """A policy with its settings. options: its own settings. counts_only, fallback: see GuardSettings."""

    scaling: Scaling
    target: Target
    guards: Guards
    options: Mapping[str, Any]
    counts_only: bool = False
    fallback: bool = True

    def policy(self) -> Policy:
        """Return the policy inside its guards. Raises ValueError naming the wrong setting."""
        settings, limits = self.settings()
        return make_policy(self.scaling.policy, settings, limits, self.options)

    def settings(self) -> tuple[PolicySettings, GuardSettings]:
        """Return the settings of policy and guards. Raises ValueError."""
        limits = shared_fields(self.scaling, GuardSettings) | shared_fields(self.guards, Guards)
        shared = shared_fields(self.scaling, PolicySettings) | shared_fields(self.target, Target)
        return (
            PolicySettings(**shared | {"static_replicas": self.scaling.initial_replicas}),
            GuardSettings(**limits | {"counts_only": self.counts_only, "fallback": self.fallback}),
        )
