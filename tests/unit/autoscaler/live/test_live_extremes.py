"""Whatever the records of others hold, the autoscaler continues to decide, and keeps its own epochs."""

from types import SimpleNamespace

import msgspec
import pytest
from extremes import extremes
from live_worlds import started

from autoscaler.controller import Controller
from autoscaler.live import progress_reader
from autoscaler.live.composition import policy_from
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.settings import AutoscalerSettings
from contracts.connection import Connection
from contracts.progress import Progress, Rebalance, RebalanceKind, ReplicaState, ServiceTimes

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


class Topic:
    """Stands in for a confluent-kafka consumer of one partition."""

    def __init__(self, _config: object) -> None:
        self.waiting: list[bytes] = []

    def assign(self, _places: object) -> None: ...

    def get_watermark_offsets(self, _place: object, timeout: float) -> tuple[int, int]:
        return 0, 0

    def consume(self, _count: int, _timeout_s: float) -> list[SimpleNamespace]:
        values, self.waiting = self.waiting, []
        return [SimpleNamespace(error=lambda: None, offset=lambda: 0, value=lambda v=value: v) for value in values]


class TestReports:
    def test_every_extreme_report_of_an_own_replica_is_survived(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress_reader, "Consumer", Topic)
        world = started(2)
        reports = ProgressReader(Connection(bootstrap_servers="nowhere:1"), clock=world.clock)
        world.group._reports = reports
        world.group._reports.is_ours = world.scaler.is_source_of
        settings = AutoscalerSettings(policy="tail-aware", state_dir="unused")
        decisions: list[object] = []
        journal = SimpleNamespace(record=lambda seen, decision: decisions.append(decision), record_not_ready=str)
        controller = Controller(world.group, policy_from(settings), journal)  # type: ignore[arg-type]

        def say(name: str, **changes: object) -> Progress:
            pid = world.launcher.newest(name).pid
            plain = Progress(
                replica=name, incarnation=f"life-{pid}", pid=pid, member_id=f"member-{pid}", generation=2, epoch=1,
                assigned_epoch=1, state=ReplicaState.MEMBER, partitions=(0, 1), positions={0: 9}, processed=99,
                busy_us=500_000, late=1, latencies=(1,) * 8, rebalances=1, at_us=9, service=ServiceTimes(events=1),
                recent_rebalances=(REBALANCE,), problems=("slow",), host="a", pages="a:1", group="payment",
            )  # fmt: skip
            return msgspec.structs.replace(plain, **changes)

        for record in extremes(say("payment-0")):
            sound = [msgspec.json.encode(say(name)) for name in world.scaler.running if world.scaler.is_ready(name)]
            reports._consumer.waiting = [*sound, record]
            world.step()
            world.clock.advance(0.95)
            reports._consumer.waiting = sound
            controller.tick()
        assert len(decisions) > 100
        assert set(reports.poll()) <= set(world.scaler.requested) | {"payment-1", "payment-0"}
        assert world.log.epoch < 2 * len(decisions), "no reported epoch was believed that no plan can have"
