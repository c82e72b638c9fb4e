"""Targets: the control records, in all that reads them."""

import asyncio
import json
from contextlib import suppress
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import msgspec
from extremes import full_plan, full_report
from live_worlds import GroupWorld, started
from rich.console import Console

from autoscaler.keda.scaler import MESSAGE, Scaler
from autoscaler.live.metrics import Metrics
from autoscaler.ports import NotReadyError
from contracts.connection import Connection
from contracts.events import DeadLetter, Timeline
from contracts.journal import JournalDecoder
from contracts.plan import PlanRecord, decode_plan
from contracts.progress import RebalanceKind, decode_progress
from contracts.topics import Topic
from contracts.validation import DECODE_ERRORS
from fuzz_suite.inputs import NOW_US, Inputs
from loadgen.spec import Topology
from services.consumer.assignor import PlanAssignor, decode_metadata, decode_subscription
from services.consumer.rebalance import AssignmentMetadata, HandedOverOffset, MemberMetadata, decide
from tailpack.live_view import RunStatus, line, render
from tailpack.watch import Watcher

TICK: Final = {
    "kind": "tick", "v": 2, "at_us": 1, "tick": 1, "policy": "p", "action": "no-change", "reason": "r",
    "service_rate": 1.0, "partitions": [{"partition": 0, "arrival_rate": 1.0, "lag": 1, "owner": "payment-0"}],
    "ready_replicas": 1, "requested_replicas": 1, "planned_replicas": 1, "epoch": 1, "problems": ["p"],
    "alternatives": [{"replicas": 1, "moved": 0, "in_sla": 0.9, "cost_s": 1.0}],
}  # fmt: skip
WRITTEN: Final = {
    "kind": "plan", "v": 2, "at_us": 1, "epoch": 1, "action": "up", "reason": "r", "replicas": ["payment-0"],
    "assignment": {"0": "payment-0"}, "moved": 1,
}  # fmt: skip
JOURNAL: Final = (
    TICK,
    TICK | {"kind": "tick-changes", "since_us": 1},
    {"kind": "piece", "v": 2, "at_us": 1, "part": 0, "parts": 1, "text": json.dumps(TICK)},
    WRITTEN,
    {"kind": "replica", "v": 2, "at_us": 1, "replica": "payment-0", "change": "died", "detail": "d"},
)
MEMBER: Final = msgspec.to_builtins(
    MemberMetadata(name="payment-0", incarnation="1", epoch=1, newest_epoch=2, owned=(0, 1), generation=3,
                   first_generation=1, handed_over={2: HandedOverOffset(5, 6)}, follow_up_of=RebalanceKind.PLAN),
    str_keys=True,
)  # fmt: skip
ASSIGNMENT: Final = msgspec.to_builtins(
    AssignmentMetadata(epoch=1, kind=RebalanceKind.PLAN, members=2, moved=1, handed_over={0: HandedOverOffset(5, 6)}),
    str_keys=True,
)
SUBSCRIPTION: Final = b"\0\0\0\0\0\1\0\1t\0\0\0\2{}"
REPORT: Final = msgspec.to_builtins(full_report("payment-0", 100, "life-100", "payment"), str_keys=True)
FINISHED: Final = {"order_id": "o", "timeline": msgspec.to_builtins(Timeline(intended_us=1, placed_us=2, done_us=3))}
LETTER: Final = msgspec.to_builtins(
    DeadLetter(letter_id="t/0/1", stage="order", topic="t", partition=0, offset=1, reasons=("r",), order_id="o",
               payload="p", payload_bytes=1, at_us=NOW_US)
)  # fmt: skip


class Control(Inputs):
    """Plans, reports, the journal and the metadata of members."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self._journal = JournalDecoder()
        self._watcher = Watcher(Connection(bootstrap_servers="127.0.0.1:1"), Topology.PIPELINE, 0.5, 1)

    def plan_at_start(self) -> None:
        if plan := self._plan("payment"):
            world = GroupWorld(in_force=plan)
            world.group.start(("payment-0",))
            assert 1 <= len(world.scaler.requested) <= 4
            for name in world.scaler.instances:
                world.report(name)
            self._watch(world)

    def plan_in_members(self) -> None:
        if plan := self._plan("demo.payment"):
            self._check_shares(decide(plan, self._members(), range(4), 5), 4)

    def plan_in_keda(self) -> None:
        plan, request = self._plan("demo.payment"), MESSAGE["GetMetricsRequest"](metricName="m" * 300)
        sent = self._damaged(request.SerializeToString())
        try:
            request = MESSAGE["GetMetricsRequest"].FromString(sent)
        except Exception:  # gRPC answers INTERNAL, whatever the deserializer raises
            return
        if plan:
            answer: Any = asyncio.run(Scaler(lambda: plan, 0.1)._metrics(request, None))
            answer.SerializeToString()
            assert answer.metricValues[0].metricValueFloat >= plan.count

    def member_metadata(self) -> None:
        generation = self._chance.choice((1, 4, 2**31 - 1))
        self._check_shares(decide(None, self._members(), range(6), generation), 6)

    def group_metadata(self) -> None:
        assignor = PlanAssignor("payment-0", "1", lambda: None, is_eager=False)
        assignor.metadata(["t"])
        members = self._subscriptions() | {"raw": decode_subscription(self._damaged(SUBSCRIPTION))}
        assert isinstance(assignor.topic_of(members), str)
        assignor.assign(SimpleNamespace(partitions_for_topic=lambda _: {0, 1, 2, 3}), members)
        assignor.on_assignment(SimpleNamespace(user_data=self._record(ASSIGNMENT)))
        assignor.metadata(["t"])

    def progress(self) -> None:
        world = started(2)
        with suppress(*DECODE_ERRORS):
            report = decode_progress(self._record(REPORT))
            world.reports.reports[report.replica] = report
            world.reports.arrived_s[report.replica] = world.clock()
            world.reports.rebalances += report.recent_rebalances
            self._watch(world)

    def journal(self) -> None:
        with suppress(*DECODE_ERRORS):
            self._journal.decode(self._record(*JOURNAL))

    def live_view(self) -> None:
        records = {
            Topic.JOURNAL: JOURNAL, Topic.PROGRESS: (REPORT,), Topic.DEAD_LETTERS: (LETTER,),
            Topic.NOTIFICATIONS_SENT: (FINISHED,),
        }  # fmt: skip
        topic = self._chance.choice([*records])
        key = self._chance.choice((None, b"", *self._watcher._keys))
        self._watcher._record(topic, key, self._value(*records[topic]))
        if self._chance.random() < 0.1:  # one record shows on many pictures
            moment = RunStatus("demo", "load", 12.0, 60.0, 100.0)
            console = Console(file=StringIO(), width=self._chance.choice((1, 80, 140)))
            console.print(render(self._watcher.state, moment), line(self._watcher.state, moment))

    def _subscriptions(self) -> dict[str, Any]:
        return {f"m{n}": SimpleNamespace(user_data=self._record(MEMBER), subscription=["t"]) for n in range(3)}

    def _members(self) -> dict[str, MemberMetadata]:
        found = {id_: decode_metadata(member, "t") for id_, member in self._subscriptions().items()}
        return {id_: metadata for id_, metadata in found.items() if isinstance(metadata, MemberMetadata)}

    def _plan(self, group: str) -> PlanRecord | None:
        base = msgspec.to_builtins(full_plan(group, "t"), str_keys=True)
        with suppress(*DECODE_ERRORS):
            return decode_plan(self._record(base), None, group)
        return None

    def _watch(self, world: GroupWorld) -> None:
        for _ in range(3):
            world.step(0.3)
        with suppress(NotReadyError):
            world.group.observe()
        world.group.status()
        metrics = Metrics()
        for entry in world.journal:
            metrics.count_entry(entry)

    def _check_shares(self, shares: Any, partitions: int) -> None:
        owned = [partition for share in shares.values() for partition in share.partitions]
        assert len(owned) == len(set(owned)), "a partition has two owners"
        assert set(owned) <= set(range(partitions))
        for share in shares.values():
            msgspec.json.encode(share.assignment)
