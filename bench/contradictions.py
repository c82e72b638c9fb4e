"""What cannot be true together in a scenario, although each value is right by itself."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from autoscaler.policies.registry import POLICIES
from contracts.delivery import RUNTIMES, Delivery
from loadgen import spec
from loadgen.schedule import Split
from loadgen.workloads import WORKLOADS

BY_RATE_ALONE: Final = ("linear", "static")
"""Policies that look at arrival rates, or at nothing."""
Values = Mapping[str, Any]
"""Dotted key → value of everything that is well-formed."""

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


def contradictions(values: Values) -> list[tuple[str, str]]:
    """Return (dotted key, sentence) for each contradiction. A rule that lacks a value is left out."""
    load = {field: values[key] for field, key in _LOAD_KEYS.items() if key in values}
    found = [(_LOAD_KEYS[field], problem) for field, problem in spec.contradictions(load)]
    for key, rule in _RULES:
        with suppress(KeyError):
            problem = rule(values)
            if problem is not None:
                found.append((key, problem))
    return found


def _known_policy(values: Values) -> str | None:
    name = values["autoscaler.policy"]
    return None if name in POLICIES else f"{name!r} is unknown; known are {', '.join(POLICIES)}"


def _enough_partitions(values: Values) -> str | None:
    most, partitions = values["autoscaler.max_replicas"], values["payment.partitions"]
    fits = most <= partitions
    return None if fits else f"{most} is more than the {partitions} partitions; the rest would own nothing"


def _minimum_below_maximum(values: Values) -> str | None:
    least, most = values["autoscaler.min_replicas"], _maximum(values)
    return None if least <= most else f"{least} is more than the maximum of {most}"


def _initial_within_bounds(values: Values) -> str | None:
    initial, least, most = values["autoscaler.initial_replicas"], values["autoscaler.min_replicas"], _maximum(values)
    return f"{initial} is outside {least} to {most}" if least <= most and not least <= initial <= most else None


def _maximum(values: Values) -> int:
    return int(values["autoscaler.max_replicas"] or values["payment.partitions"])


def _down_below_up(values: Values) -> str | None:
    down, up = values["autoscaler.f_down"], values["autoscaler.f_up"]
    return None if down <= up else f"{down} is more than f_up = {up}: the group would shrink and grow in turn"


def _tick_inside_interval(values: Values) -> str | None:
    offset_s, interval_s = values["autoscaler.tick_offset_s"], values["autoscaler.decision_interval_s"]
    return None if offset_s < interval_s else f"{offset_s:g} is not less than decision_interval_s = {interval_s:g}"


def _heartbeats_in_session(values: Values) -> str | None:
    heartbeat_s, session_s = values["payment.heartbeat_s"], values["payment.session_s"]
    return None if heartbeat_s < session_s else f"{heartbeat_s:g} is not less than session_s = {session_s:g}"


def _known_runtime(values: Values) -> str | None:
    name = values["payment.runtime"]
    known = f"known are {', '.join(RUNTIMES)}; empty: our own"
    return None if name in ("", *RUNTIMES) else f"{name!r} is unknown; {known}"


def _delivery_is_ours(values: Values) -> str | None:
    runtime, delivery = values["payment.runtime"], values["payment.delivery"]
    means_nothing = runtime and delivery not in (Delivery.INCREMENTAL, runtime)
    return f"{delivery} says nothing about {runtime}, which delivers in its own way" if means_nothing else None


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


def _slow_in_order(values: Values) -> str | None:
    begin_s, end_s = values["simulation.slow_from_s"], values["simulation.slow_until_s"]
    return None if begin_s <= end_s else f"{end_s:g} is before slow_from_s = {begin_s:g}"


def _failures_in_time(values: Values) -> str | None:
    late = [at_s for at_s in values["simulation.failures_s"] if at_s >= values["duration_s"]]
    return f"{late[0]:g} is not before the end at {values['duration_s']} s" if late else None


_RULES: Final[tuple[tuple[str, Callable[[Values], str | None]], ...]] = (
    ("payment.heartbeat_s", _heartbeats_in_session),
    ("payment.runtime", _known_runtime),
    ("payment.runtime", _policy_sees_lag),
    ("payment.delivery", _delivery_is_ours),
    ("autoscaler.absence_grace_s", _grace_is_ours),
    ("autoscaler.policy", _known_policy),
    ("autoscaler.max_replicas", _enough_partitions),
    ("autoscaler.min_replicas", _minimum_below_maximum),
    ("autoscaler.initial_replicas", _initial_within_bounds),
    ("autoscaler.f_down", _down_below_up),
    ("autoscaler.tick_offset_s", _tick_inside_interval),
    ("simulation.split", _simulated_split_fits),
    ("simulation.slow_until_s", _slow_in_order),
    ("simulation.failures_s", _failures_in_time),
)
