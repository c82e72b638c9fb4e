"""Ways to understand what was run, where text and experiment are not the same."""

from collections.abc import Mapping
from typing import Any, Final

from studies.paper.statement import Reading

Changes = Mapping[str, Any]

ON_A_CLUSTER: Final[Changes] = {"delivery": "eager", "heartbeat_s": 3.0, "rebalance_time_s": 0.05}
"""The whole group stops for t_r, and learns of it at its heartbeat: 3 s unless a row says otherwise."""
COOL_DOWN: Final[Changes] = {"cool_down_up_s": 10.0, "cool_down_down_s": 10.0}
KNOWN_OVERHEAD: Final[Changes] = {"overhead_s": 0.0007}
UNKNOWN_OVERHEAD: Final[Changes] = {"slow_factor": 1.14, "slow_until_s": 86_400.0}
"""5.7 ms for each event, while policies reckon with μ = 200."""
POLLED: Final[Changes] = {"poll_events": 500}
"""Lag contains a whole poll until its commit; 500 is what Kafka's consumers poll at most."""
NO_HYSTERESIS: Final[Changes] = {"f_down": 0.9}
"""What the printed cost of `linear` implies: with 0.4 it stays longer at a high count, and costs 30.6 r-m on W1. Then
it holds for all that was run."""

CLOSER: Final[dict[str, Changes]] = {
    "text": {},
    "cool-down": COOL_DOWN,
    "cool-down, overhead": {**COOL_DOWN, **KNOWN_OVERHEAD},
    "cool-down, unknown overhead": {**COOL_DOWN, **UNKNOWN_OVERHEAD},
    "cool-down, polls": {**COOL_DOWN, **POLLED},
    "all switches": {**COOL_DOWN, **UNKNOWN_OVERHEAD, **POLLED},
    "cool-down, no hysteresis": {**COOL_DOWN, **NO_HYSTERESIS},
    "cool-down, unknown overhead, no hysteresis": {**COOL_DOWN, **UNKNOWN_OVERHEAD, **NO_HYSTERESIS},
}
"""Name → what is set, for every row and policy alike."""
ICCBDC: Final[dict[str, Changes]] = {
    "nominal": {},
    "μ 95": {"overhead_s": 0.000526},
    "μ 95, polls": {"overhead_s": 0.000526, **POLLED},
}
"""100 events/s are nominal, 95 were measured."""
COMPUTED: Final = "computed"
BY_CHANCE: Final = ", by chance"
"""Ends the name of a reading in which chance decides which partitions move."""
FREE: Final[Changes] = {"delivery": "incremental", "pause_s": 0.0}
"""Neither start-up nor handover costs anything: the papers' references were computed, not run."""
SETTINGS: Final[dict[str, Changes]] = {
    **CLOSER,
    **ICCBDC,
    **{name + BY_CHANCE: changes for name, changes in ICCBDC.items()},
    COMPUTED: FREE,
}


def closer(policy: str, *, split: str | None = "random", row: Changes | None = None) -> tuple[Reading, ...]:
    """Return the readings of CLOSER 2024 for a policy.

    split: None where the workload has a partition table of its own. row: what this row is about, set in every reading.
    """
    spread = {"split": split} if split else {}
    return tuple(
        _reading(name, policy, {**ON_A_CLUSTER, **spread, **changes}, row or {}) for name, changes in CLOSER.items()
    )


def iccbdc(policy: str, *, ways: tuple[str, str] = ("", ""), row: Changes | None = None) -> tuple[Reading, ...]:
    """Return the readings of ICCBDC 2022 for a policy, those in which chance decides which partitions move last.

    ways: of the others and of the last, see `studies.paper.work`; both alike where no assignor has a say.
    """
    return tuple(
        _reading(name + suffix, policy, {**ON_A_CLUSTER, **changes}, row or {}, way)
        for way, suffix in zip(ways, ("", BY_CHANCE), strict=True)
        for name, changes in ICCBDC.items()
    )


def free(policy: str, row: Changes) -> tuple[Reading, ...]:
    """Return the reading of a reference: the policy in a world where changes are free. row: as for `closer`."""
    return (_reading(COMPUTED, policy, FREE, row),)


def in_words(changes: Changes) -> str:
    """Return what is set, as `--set` takes it."""
    return ", ".join(f"{key}={value}" for key, value in changes.items()) or "nothing more"


def _reading(name: str, policy: str, changes: Changes, row: Changes, way: str = "") -> Reading:
    return Reading(name, policy, tuple({**changes, **row}.items()), tuple(row.items()), way)
