"""Journal entries of a small group, and a live process whose records a test decides."""

from typing import Any

from autoscaler.page.feed import Feed
from autoscaler.page.snapshot import snapshot
from autoscaler.page.state import LiveState
from contracts.journal import PartitionState, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from contracts.pages import WebServer

SECOND = 1_000_000


def tick(at_s: float, owners: tuple[str, ...] = ("payment-0", "payment-0"), **changes: Any) -> TickRecord:
    states = tuple(
        PartitionState(partition=number, arrival_rate=30.0, lag=9, owner=owner) for number, owner in enumerate(owners)
    )
    fields: dict[str, Any] = {
        "at_us": round(at_s * SECOND), "tick": 1, "policy": "tail-aware", "action": "no-change",
        "reason": "nothing is at risk", "service_rate": 50.0, "partitions": states, "ready_replicas": 1,
        "requested_replicas": 1, "planned_replicas": 1, "epoch": 1,
    }  # fmt: skip
    return TickRecord(**fields | changes)


def plan(at_s: float, epoch: int, assignment: dict[int, str], **changes: Any) -> PlanWritten:
    replicas = tuple(sorted({*assignment.values()}))
    fields: dict[str, Any] = {"action": "up", "reason": "60 > 50", "moved": 1}
    return PlanWritten(
        at_us=round(at_s * SECOND), epoch=epoch, replicas=replicas, assignment=assignment, **fields | changes
    )


def changed(at_s: float, replica: str, change: ReplicaChange) -> ReplicaChanged:
    return ReplicaChanged(at_us=round(at_s * SECOND), replica=replica, change=change, detail="signal 9")


class Story:
    """A live process whose records a test decides. A tick is a second, in which 100 events are finished."""

    def __init__(self, partitions: int = 6) -> None:
        self.state, self.second, self.epoch = LiveState(latency_target_s=0.5), 0, 0
        self.plan_for(dict.fromkeys(range(partitions), "payment-0"), action="start", reason="initial")
        self.state.record_entry(changed(0, "payment-0", ReplicaChange.READY))
        self.tick()

    def plan_for(self, owners: dict[int, str], **changes: Any) -> None:
        self.epoch, self.owners = self.epoch + 1, owners
        self.state.record_entry(plan(self.second, self.epoch, owners, **changes))

    def tick(self, **changes: Any) -> None:
        self.second += 1
        self.state.record_entry(tick(self.second, tuple(self.owners.values()), epoch=self.epoch, **changes))
        for number in range(100):
            self.state.record_latency(self.second * SECOND, 0.006 * number)

    def read(self) -> dict[str, Any]:
        return snapshot(self.state, self.second * SECOND, title="story", phase="running", percentile=0.999)

    def serve(self, port: int = 0) -> WebServer:
        server = WebServer(Feed(self.read).respond, port)
        server.start()
        return server
