"""The state of a group as one JSON object, whose differences are JSON merge patches (RFC 7386)."""

from math import ceil
from typing import Any, Final

import msgspec

from autoscaler.page.decisions import Decided
from autoscaler.page.state import DEAD_SHOWN_US, LiveState, Second, ranks
from contracts.journal import ReplicaChange, TickRecord

PHASES: Final = {
    ReplicaChange.REQUESTED: "starting", ReplicaChange.STARTED: "starting", ReplicaChange.READY: "ready",
    ReplicaChange.ADOPTED: "ready", ReplicaChange.DRAINED: "draining", ReplicaChange.START_FAILED: "dead",
}  # fmt: skip
MAX_MOVES: Final = 50


def snapshot(state: LiveState, now_us: int, **more: Any) -> dict[str, Any]:
    """Return the state at a time. No key has the value None, because a merge patch removes it.

    more: further keys, such as title and phase.
    """
    tick, newest, pauses = state.tick, state.newest, state.pauses_s
    found: dict[str, Any] = {
        "now_us": now_us,
        "first_us": state.first_us or 0,
        "target_s": state.latency_target_s,
        "done": state.done,
        "in_time": state.in_sla,
        "policy": newest.policy if newest else "",
        "service_rate": round(tick.service_rate, 2) if tick else 0,
        "ready": newest.ready_replicas if newest else 0,
        "cost_s": round(state.cost_at(now_us), 1),
        "epoch": newest.epoch if newest else 0,
        "pause_ms": round(state.longest_pause_s * 1e3),
        "problems": list(state.problems),
        "partitions": _partitions(state),
        "replicas": _replicas(state, now_us),
        "startup_s": state.startup_us / 1e6,
        "ticks": {str(row[0].at_us // 1000): _tick_row(*row) for row in state.sums},
        "latency": {str(number): _latency_row(second) for number, second in state.seconds.items()},
        "plans": {
            str(plan.epoch): [plan.at_us, plan.action, plan.moved, round(pauses.get(plan.epoch, 0.0) * 1e3)]
            for plan in state.plans
        },
        "decisions": {str(number): _decision_row(row) for number, row in state.decisions.rows.items()},
    }
    return found | more


def _partitions(state: LiveState) -> dict[str, list[Any]]:
    """Return partition → owner, arrival rate, lag, and age of its oldest waiting event in ms (None: unknown)."""
    loads = {one.partition: one for one in state.tick.partitions} if state.tick else {}
    rows: dict[str, list[Any]] = {}
    for number, owner in sorted(state.owners.items()):
        load = loads.get(number)
        age_ms = None if load is None or load.oldest_s is None else round(load.oldest_s * 1e3)
        rows[str(number)] = [owner, *((round(load.arrival_rate, 1), load.lag) if load else (0.0, 0)), age_ms]
    return rows


def _replicas(state: LiveState, now_us: int) -> dict[str, list[Any]]:
    """Return replica → phase, and time of its newest change in µs."""
    planned = state.plans[-1].replicas if state.plans else ()
    rows: dict[str, list[Any]] = {}
    for name, change in state.replicas.items():
        phase = PHASES.get(change, "ready")
        rows[name] = ["draining" if phase == "ready" and planned and name not in planned else phase]
    for name, at_us in list(state.since_us.items()):
        if name not in rows and now_us - at_us < DEAD_SHOWN_US:
            rows[name] = ["dead"]
    for owner in state.owners.values():
        if owner:
            rows.setdefault(owner, ["ready"])
    return {name: [*row, state.since_us.get(name, 0)] for name, row in rows.items()}


def _tick_row(tick: TickRecord, rate: float, lag: int) -> list[Any]:
    """Return events/s, lag, requested, ready, needed; then the forecast: mean, 10 and 90 % in events/s, span in s."""
    needed = max(1, ceil(rate / tick.service_rate)) if tick.service_rate > 0 else 0
    found: list[Any] = [round(rate, 1), lag, tick.requested_replicas, tick.ready_replicas, needed]
    if (expected := tick.expected) is not None and expected.seconds > 0:
        each = (expected.events, expected.low, expected.high)
        found += [*(round(events / expected.seconds, 1) for events in each), expected.seconds]
    return found


def _latency_row(second: Second) -> list[Any]:
    """Return p50, p99 and maximum in ms (None: unknown), and the numbers of finished and of late events."""
    known = ranks(second.latencies_s)
    return [*([round(value * 1e3, 1) for value in known] if known else [None] * 3), second.done, second.late]


def _decision_row(row: Decided) -> dict[str, Any]:
    """Return a decision with at most MAX_MOVES moves. Its effect is empty until it is known."""
    return msgspec.to_builtins(row) | {"effect": row.effect or (), "moves": row.moves[:MAX_MOVES]}  # type: ignore[no-any-return]


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch that turns `old` into `new`."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if changes := difference(before, value):
                patch[key] = changes
        elif value != before:
            patch[key] = value
    return patch
