"""Control records in which one field at a time has an extreme value of its JSON type."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from contracts.plan import Eviction, PlanRecord
from contracts.progress import Progress, Rebalance, RebalanceKind, ReplicaState, ServiceTimes

NUMBERS = (-(10**400), -1, 10**12, 2**63 - 1, 10**16, 10**400, 1e308)
TEXTS = ("", "a\0b", "../../../x", "two\nlines", "x" * 20_000)
KEYS = ("-5", "99999999999999999999", "1000000000", "x")


REBALANCE = Rebalance(
    generation=2,
    epoch=1,
    kind=RebalanceKind.PLAN,
    members=2,
    moved=1,
    taken=1,
    released=1,
    pause_us=9,
    plan_us=9,
    at_us=9,
)


def full_report(replica: str, pid: int, incarnation: str, group: str) -> Progress:
    """Return the report of a member, with a value in each field."""
    return Progress(
        replica=replica, incarnation=incarnation, pid=pid, member_id=f"member-{pid}", generation=2, epoch=1,
        assigned_epoch=1, state=ReplicaState.MEMBER, partitions=(0, 1), positions={0: 9}, processed=99,
        busy_us=500_000, late=1, latencies=(1,) * 8, rebalances=1, at_us=9, service=ServiceTimes(events=1),
        recent_rebalances=(REBALANCE,), problems=("slow",), host="a", pages="a:1", group=group,
    )  # fmt: skip


def full_plan(group: str, topic: str, epoch: int = 1) -> PlanRecord:
    """Return a plan for two replicas and four partitions, with a value in each field."""
    names = ("payment-0", "payment-1")
    return PlanRecord(
        epoch=epoch, at_us=1, replicas=names, assignment={number: names[number % 2] for number in range(4)},
        reason="r", evictions=(Eviction(replica="payment-1", member_id="m", incarnation="i"),), grace_s=1.0, wanted=2,
        group=group, topic=topic,
    )  # fmt: skip


def extremes(record: Any) -> Iterator[bytes]:
    """Yield the record as JSON, once for each field, nested ones too, and each extreme value.

    record: a struct, or its fields as builtin values, with an item in each list and map.
    """
    plain = msgspec.to_builtins(record, str_keys=True)
    for changed in _changed(plain):
        yield json.dumps(changed).encode()  # msgspec encodes no integer above 64 bits


def _changed(value: Any) -> Iterator[Any]:
    """Yield `value` with one part of it replaced."""
    match value:
        case bool() | None:
            yield from (None, 10**400)
        case int() | float():
            yield from NUMBERS
        case str():
            yield from TEXTS
        case list() | tuple():
            yield from ([], value * 2, value * 3000)
            for changed in _changed(value[0]) if value else ():
                yield [changed, *value[1:]]
        case dict():
            if value and all(key.isdecimal() for key in value):
                first = next(iter(value.values()))
                yield from ({}, *({key: first} for key in KEYS), {str(key): first for key in range(3000)})
            for key, inner in value.items():
                for changed in _changed(inner):
                    yield value | {key: changed}
