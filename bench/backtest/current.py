"""Reads what a user runs today, in the words of its manifest: `keda lagThreshold=500 max=12`, `static 12`."""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from autoscaler.policies.registry import policy_factory
from bench.matrix import Contender
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol
from contracts.settings import duration_s, unknown_name
from contracts.validation import InvalidSettingsError

KEDA: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "lagThreshold": ("policy.lag_threshold", int),
    "averageValue": ("policy.lag_threshold", int),
    "ensureEvenDistributionOfPartitions": ("policy.ensure_even_distribution_of_partitions", "true".__eq__),
    "minReplicaCount": ("autoscaler.min_replicas", int),
    "maxReplicaCount": ("autoscaler.max_replicas", int),
    "min": ("autoscaler.min_replicas", int),
    "max": ("autoscaler.max_replicas", int),
    "syncPeriod": ("policy.sync_s", duration_s),
    "tolerance": ("policy.tolerance", float),
    "scaleUpStabilization": ("policy.scale_up_stabilisation_s", duration_s),
    "scaleDownStabilization": ("policy.scale_down_stabilisation_s", duration_s),
}
"""Key of a ScaledObject, or of an HPA with the lag as AverageValue → setting, and the parser of its value."""
COMMON: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "min": KEDA["min"],
    "max": KEDA["max"],
    "heartbeat": ("payment.heartbeat_s", duration_s),
    "interval": ("autoscaler.decision_interval_s", duration_s),
}
"""Keys of every kind."""
NO_EFFECT: Final = ("pollingInterval", "cooldownPeriod")
"""Keys of a ScaledObject that only concern a group without replicas."""
KINDS: Final = {"keda": "keda-hpa", "hpa": "keda-hpa", "flink": "flink-ds2"}
"""First word → policy. `static N`, and any other policy with options as `policy.NAME=VALUE`, are given by name."""
THRESHOLDS: Final = (1, 5, 10, 25, 50, 100, 250, 500)
"""Values of lagThreshold among which the tuned KEDA is chosen, events."""


class Current(msgspec.Struct, frozen=True):
    """The scaler of today as a contender, and notes about keys that have no effect here."""

    contender: Contender
    notes: tuple[str, ...]

    def tuned(self) -> list[Contender]:
        """Return the same scaler with other thresholds; empty for other scalers than KEDA or an HPA."""
        if self.contender.policy != "keda-hpa":
            return []
        key = KEDA["lagThreshold"][0]
        return [
            Contender(policy="keda-hpa", name=f"keda, lagThreshold={value}", set={**self.contender.set, key: value})
            for value in THRESHOLDS
        ]


def read_current(text: str) -> Current:
    """Return what `text` describes. Raises InvalidSettingsError with one sentence."""
    kind, *words = text.split() or [""]
    fixed = re.fullmatch(r"(?:static|fixed)[- ]?(\d+)?", kind)
    if fixed:
        count = fixed[1] or (words.pop(0) if words and words[0].isdecimal() else "")
        if not count or not int(count):
            raise InvalidSettingsError([f"--current {text!r}: give the number of replicas, for example static 12"])
        policy = f"static-{int(count)}"
    else:
        policy = KINDS.get(kind.lower(), kind)
        try:
            policy_factory(policy)
        except ValueError as error:
            known = "use keda, hpa, flink, static N or the name of a policy"
            raise InvalidSettingsError([f"--current {text!r}: {error}; {known}"]) from error
    changes: dict[str, Any] = {}
    protocol, notes = RebalanceProtocol.EAGER, []
    keys = COMMON | (KEDA if policy == "keda-hpa" else {})
    for word in words:
        key, equals, value = word.partition("=")
        if key in NO_EFFECT and policy == "keda-hpa":
            notes.append(f"{key} only concerns a group without replicas; it changes nothing here")
        elif key == "protocol" and value in {*RebalanceProtocol}:
            protocol = RebalanceProtocol(value)
        elif key == "protocol":
            raise InvalidSettingsError([f"--current: protocol {value!r} is {unknown_name(value, RebalanceProtocol)}"])
        elif key.startswith("policy."):
            changes[key] = _number(value)
        elif not equals or key not in keys:
            raise InvalidSettingsError([f"--current: {word!r} is {unknown_name(key, sorted([*keys, 'protocol']))}"])
        else:
            setting, parse = keys[key]
            try:
                changes[setting] = parse(value)
            except ValueError as error:
                raise InvalidSettingsError([f"--current: {word!r}: {value!r} is not a valid value"]) from error
    changes["payment.runtime" if protocol in RUNTIMES else "payment.rebalance_protocol"] = protocol.value
    return Current(Contender(policy=policy, name=f"today ({text})", set=changes), tuple(notes))


def _number(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
