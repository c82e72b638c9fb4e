"""Control records in which one field at a time has an extreme value of its JSON type."""

import copy
import json
from collections.abc import Iterator

import msgspec
from hostile import EXTREMES, places

from contracts.plan import Eviction, PlanRecord
from contracts.progress import Progress, Rebalance, RebalanceKind, ReplicaState

REBALANCE = Rebalance(
    generation=2, epoch=1, kind=RebalanceKind.PLAN, members=2, moved=1, taken=1, released=1, pause_us=9, at_us=9
)


def full_report(replica: str, pid: int, incarnation: str, group: str) -> Progress:
    """Return the report of a member, with a value in each field."""
    return Progress(
        replica=replica, incarnation=incarnation, pid=pid, member_id=f"member-{pid}", generation=2, epoch=1,
        assigned_epoch=1, state=ReplicaState.MEMBER, partitions=(0, 1), positions={0: 9}, processed=99,
        busy_us=500_000, late=1, latencies=(1,) * 8, rebalances=1, at_us=9,
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


def extremes(record: msgspec.Struct) -> Iterator[bytes]:
    """Yield the record as JSON. In each copy, one value is replaced by an extreme value of its type."""
    plain = json.loads(msgspec.json.encode(record))
    for index, (container, key) in enumerate(places(plain)):
        for value in EXTREMES:
            if type(value) is type(container[key]):
                changed = copy.deepcopy(plain)
                inner, at = list(places(changed))[index]
                inner[at] = value
                yield json.dumps(changed).encode()
