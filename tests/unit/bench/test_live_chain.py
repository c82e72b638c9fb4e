"""What a live chain came to: from outputs to latencies, from pairs of runs to the table of docs/chain.md."""

from typing import ClassVar

import msgspec
import pytest

from bench import BenchError
from bench.live_chain import outputs as module
from bench.live_chain.outputs import Outputs, Passed
from bench.live_chain.pairs import ChainLiveRow, LiveWay, compared, stages, tables
from bench.live_chain.run import live_stages
from bench.scenario import load_scenario
from bench.simulation.chain import ChainResult, StageResult
from contracts.connection import Connection
from contracts.events import Timeline
from contracts.topics import Topic
from tailpack import live_chains
from tailpack.live_chains import live_pairs

NAMES = ("payment", "shipment", "notification")


class FakeLog:
    """What a topic holds, handed out once."""

    held: ClassVar[dict[str, list[Passed]]] = {}

    def __init__(self, _connection, topic, _partitions):
        self.topic = topic

    def fresh(self):
        yield from (msgspec.json.encode(one) for one in self.held.pop(self.topic, ()))


def passed(order, *, accepted=True, **stamps):
    return Passed(order, Timeline(intended_us=100, placed_us=100, **stamps), accepted)


@pytest.fixture
def seen(monkeypatch):
    monkeypatch.setattr(module, "Log", FakeLog)
    FakeLog.held = {
        Topic.PAYMENTS_SETTLED: [passed("a", done_us=300), passed("b", accepted=False, done_us=400)],
        Topic.SHIPMENTS_SCHEDULED: [passed("a", done_us=300, shipped_us=350), passed("a", done_us=300, shipped_us=900)],
        Topic.NOTIFICATIONS_SENT: [passed("a", notified_us=360)],
    }
    return Outputs(Connection(bootstrap_servers="none"), NAMES, 4)


def test_a_chain_is_complete_when_the_declined_are_told_of_too(seen):
    assert not seen.complete(2)
    FakeLog.held[Topic.NOTIFICATIONS_SENT] = [passed("b", notified_us=700)]
    assert seen.complete(2)
    assert not seen.complete(3)
    assert seen.repeated == 1


def test_latencies_count_from_the_intended_time_and_at_a_stage_from_the_end_of_the_one_before_it(seen):
    FakeLog.held[Topic.NOTIFICATIONS_SENT].append(passed("b", notified_us=700))
    assert seen.complete(2)
    whole, by_stage = seen.took_us()
    assert whole.tolist() == [260, 600]
    assert {name: took.tolist() for name, took in by_stage.items()} == {
        "payment": [200, 300], "shipment": [50], "notification": [10],
    }  # fmt: skip


def test_a_chain_that_ends_with_shipment_ends_for_a_declined_order_with_its_payment(seen):
    two = Outputs(Connection(bootstrap_servers="none"), NAMES[:2], 4)
    assert two.complete(2)
    assert two.took_us()[0].tolist() == [250, 300]


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("demo", {}, "in this order, two or more"),
        (
            "chain-surge",
            {"stages.shipment.name": "parcels"},
            "stages that run live are payment, shipment, notification",
        ),
        ("chain-surge", {"stages.notification.partitions": 3}, "shipments.scheduled has pipeline_partitions = 2"),
    ],
)
def test_stages_that_cannot_run_live_are_named(name, changes, said):
    with pytest.raises(BenchError, match=said):
        live_stages(load_scenario(name, changes))


def test_what_cannot_run_live_is_refused_before_the_first_run(tmp_path):
    with pytest.raises(BenchError, match="stages that run live"):
        live_pairs(["chain-surge", "demo"], 3, None, tmp_path / "into", pytest.fail)


def result(max_s, minutes):
    figures = {"p999_s": max_s, "max_s": max_s, "replica_minutes": minutes, "in_sla": 1 - max_s / 10, "events": 9}
    some = [StageResult(stage=name, peak_replicas=2, plan_changes=1, **figures) for name in NAMES]
    return ChainResult(scenario="s", coordinated=True, seed=1, p99_s=max_s, stages=tuple(some), **figures)


def pair(seed, blind_s, as_one_s, *, valid=True):
    def way(max_s):
        ran = result(max_s, 2 * max_s)
        return LiveWay(live=ran, simulated=result(1.0, 3.0), valid=valid, lateness_p99_s=0.001, repeated=0)

    return ChainLiveRow(scenario="s", seed=seed, blind=way(blind_s), as_one=way(as_one_s))


def test_pairs_are_compared_live_and_simulated_and_invalid_ones_are_counted_only():
    rows = [pair(1, 2.0, 1.0), pair(2, 3.0, 1.0), pair(3, 4.0, 2.0), pair(4, 9.0, 0.0, valid=False)]
    live, simulated = compared(rows)
    assert (live.world, simulated.world) == ("s, live (3, 1 invalid)", "s, simulated (3, 1 invalid)")
    difference = live.differences["max_s"]
    assert difference.mean == pytest.approx((-1 - 2 - 2) / 3)
    assert -2 <= difference.low < difference.mean < difference.high <= -1
    assert simulated.differences["max_s"].mean == 0
    assert stages(rows)[1] == ["s: shipment", "70.00 → 86.67", "3.00 → 1.33", "3.00 → 1.33", "6.00 → 2.67"]
    assert "(-2.00 to -1.00)" in tables(rows)


def test_of_two_pairs_no_interval_is_said_and_of_none_only_the_heads_are_there():
    assert " to " not in tables([pair(1, 2.0, 1.0), pair(2, 3.0, 1.0)])
    heads = tables([]).splitlines()
    assert [line.startswith("|") for line in heads if line] == [True] * 4
    assert compared([pair(1, 1.0, 1.0, valid=False)]) == []


def test_ways_take_turns_in_going_first_and_only_what_is_not_known_or_was_invalid_is_run(tmp_path, monkeypatch):
    ran = []

    def run(scenario, _played):
        ran.append((scenario.name, scenario.seed, scenario.chain.coordinated))
        valid = len(ran) != 3
        return LiveWay(live=result(1, 1), simulated=result(1, 1), valid=valid, lateness_p99_s=None, repeated=0)

    monkeypatch.setattr(live_chains, "_run", run)
    first = live_pairs(["chain-surge"], 2, None, tmp_path, lambda _: None)
    assert ran == [("chain-surge", *one) for one in ((1, False), (1, True), (2, True), (2, False))]
    assert [one.valid for one in first] == [True, False]
    again = live_pairs(["chain-surge"], 3, None, tmp_path, lambda _: None)
    assert [one[1:] for one in ran[4:]] == [(2, True), (2, False), (3, False), (3, True)]
    assert [(one.seed, one.valid) for one in again] == [(1, True), (2, True), (3, True)]
