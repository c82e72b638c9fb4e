"""What cannot be true together in a scenario, although each section is right by itself."""

from typing import Final

from autoscaler.policies.registry import POLICIES
from contracts.settings import Rule, Values, contradictions, unknown
from loadgen.schedule import Split
from loadgen.spec import RULES
from loadgen.workloads import WORKLOADS

BY_RATE_ALONE: Final = ("linear", "static")
"""Policies that look at arrival rates, or at nothing."""

_LOAD_KEYS: Final = {
    "topology": "topology",
    "duration_s": "duration_s",
    "workload": "load.workload",
    "split": "load.split",
    "grouping": "load.grouping",
    "invalid_share": "load.invalid_share",
    "partitions": "payment.partitions",
}
"""Field of LoadSpec → where it stands in a scenario, for the fields that its rules read."""


def contradictions_between(values: Values) -> list[tuple[str, str]]:
    """Return (dotted key, sentence) for each contradiction. A rule that lacks a value is left out."""
    load = {field: values[key] for field, key in _LOAD_KEYS.items() if key in values}
    found = [(_LOAD_KEYS[field], problem) for field, problem in contradictions(load, RULES)]
    return found + contradictions(values, _RULES)


def _known_policy(values: Values) -> str | None:
    name = values["autoscaler.policy"]
    return None if name in POLICIES else f"{name!r} is {unknown(name, POLICIES)}"


def _enough_partitions(values: Values) -> str | None:
    most, partitions = values["autoscaler.max_replicas"], values["payment.partitions"]
    fits = most <= partitions
    return None if fits else f"{most} is more than the {partitions} partitions; the rest would own nothing"


def _enough_for_the_first(values: Values) -> str | None:
    initial, partitions = values["autoscaler.initial_replicas"], values["payment.partitions"]
    return None if initial <= partitions else f"{initial} is more than the {partitions} partitions"


def _policy_sees_lag(values: Values) -> str | None:
    blind = values["payment.runtime"] == "share" and values["autoscaler.policy"] not in BY_RATE_ALONE
    known = ", ".join(BY_RATE_ALONE)
    return f"share: no client can read a share group's lag; policies that do without are {known}" if blind else None


def _grace_is_ours(values: Values) -> str | None:
    runtime, grace_s = values["payment.runtime"], values["autoscaler.absence_grace_s"]
    means_nothing = runtime and grace_s
    return f"{grace_s:g} cannot be kept by {runtime}, which places partitions itself" if means_nothing else None


def _simulated_split_fits(values: Values) -> str | None:
    workload, split = WORKLOADS[values["load.workload"]], values["simulation.split"]
    fits = split is None or (workload.partitions is None) == (split is not Split.TABLE)
    return None if fits else f"'{split}' does not fit {workload.name}; leave it out, or say load.split"


def _failures_in_time(values: Values) -> str | None:
    late = [at_s for at_s in values["simulation.failures_s"] if at_s >= values["duration_s"]]
    return f"{late[0]:g} is not before the end at {values['duration_s']} s" if late else None


_RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("payment.runtime", _policy_sees_lag),
    ("autoscaler.absence_grace_s", _grace_is_ours),
    ("autoscaler.policy", _known_policy),
    ("autoscaler.max_replicas", _enough_partitions),
    ("autoscaler.initial_replicas", _enough_for_the_first),
    ("simulation.split", _simulated_split_fits),
    ("simulation.failures_s", _failures_in_time),
)
