"""An operator pauses, pins and resumes a running autoscaler by commands."""

import os
import signal

import msgspec
import pytest
from kafka_helpers import create_topics, produce, wait_for
from live_autoscaler import Autoscaler
from tailpack_command import tailpack

from contracts.clock import now_us
from contracts.holds import Direction, Hold, hold_key
from contracts.topics import Topic

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


def write(auto: Autoscaler, value: bytes | Hold, *, is_order: bool = False) -> None:
    key = hold_key(f"{auto.namespace}.payment", f"{auto.namespace}.payments.requested", is_order=is_order)
    text = msgspec.json.encode(value) if isinstance(value, Hold) else value
    produce(auto.kafka, auto.namespace, Topic.HOLDS, [text], key=key)


def test_an_autoscaler_is_pinned_paused_and_resumed_and_replaces_the_dead_meanwhile(kafka, namespace, tmp_path):
    create_topics(kafka, namespace, 4)

    def replicas(count: int):
        return wait_for(lambda: len(auto.plans()[-1].replicas) == count == len(auto.pids()), f"{count} replicas")

    with Autoscaler(kafka, namespace, tmp_path / "state", initial_replicas=2) as auto:
        command = auto.command
        auto.wait_for_plan(1)
        command("pin", "3", "--for", "1h", "--reason", "a rehearsal")
        replicas(3)
        assert "a rehearsal" in auto.plans()[-1].reason
        assert "up 2 → 3 replicas" in command("explain", "last")
        command("pause", "--reason", "move of the database")
        paused = auto.wait_for_tick(lambda tick: "move of the database" in tick.reason, "a vetoed decision")
        assert paused.action == "no-change"
        assert "move of the database" in auto.get("/healthz")["hold"]
        shown = command("status")
        for line in ("paused until", "Acting     False    Paused since", "Limited    True     hold", "Observing  True"):
            assert line in shown, shown

        write(auto, b"\xff damaged")
        auto.wait_for_tick(lambda tick: any("holds: skipped" in one for one in tick.problems), "the damaged record")
        killed = auto.pids()["payment-0"]
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: auto.pids().get("payment-0", killed) != killed or "payment-3" in auto.pids(), "a replacement")
        replicas(3)

        auto.signal(signal.SIGKILL)
        auto.ended()
        auto.start()
        auto.wait_for_tick(lambda tick: "move of the database" in tick.reason, "the pause after a restart")
        replicas(3)
        command("resume")
        replicas(2)

        write(auto, Hold(at_us=1, direction=Direction.PIN, until_us=2, replicas=4))
        ticks = len(auto.ticks())
        wait_for(lambda: len(auto.ticks()) >= ticks + 3, "three more decisions")
        assert len(auto.plans()[-1].replicas) == 2, "a hold that has ended is ignored"
        assert "not paused" in command("status")


def test_act_is_changed_while_the_autoscaler_runs_and_a_plan_is_left_whole(kafka, namespace, tmp_path):
    create_topics(kafka, namespace, 4)

    def problem(text: str) -> None:
        auto.wait_for_tick(lambda tick: any(text in one for one in tick.problems), text)

    with Autoscaler(kafka, namespace, tmp_path / "state", initial_replicas=2) as auto:
        command = auto.command
        auto.acting("On")
        auto.wait_for_plan(1)
        command("pin", "3")
        wait_for(lambda: "payment-2" in auto.pids(), "the start of a third replica")
        command("pause", "--act", "off", "--for", "1h", "--reason", "look first")
        assert "look first" in auto.acting("Off")["message"]
        left, plans = auto.pids(), auto.plans()
        assert {*plans[-1].replicas} == {*left} >= {"payment-0", "payment-1"}
        assert "act = off until" in command("status")
        assert "look first" in auto.get("/healthz")["hold"]
        os.kill(left["payment-0"], signal.SIGKILL)

        auto.signal(signal.SIGKILL)
        auto.ended()
        auto.start()
        auto.acting("Off")
        write(auto, Hold(at_us=1, direction=Direction.PIN, until_us=now_us() * 2, replicas=4), is_order=True)
        problem("has the key of another kind")
        assert (auto.pids(), len(auto.plans())) == (left, len(plans)), "nothing was done while it was off"

        assert "act = on" in command("resume", "--act", "on")
        auto.acting("Pinned")
        wait_for(lambda: len(auto.plans()[-1].replicas) == 3 == len(auto.pids()), "the pin")
        now = auto.pids()
        assert [name for name in left if now[name] != left[name]] == ["payment-0"], "the others were adopted"
        command("pause", "--act", "propose")
        problem("is not carried out")
        auto.acting("Pinned")
        write(auto, Hold(at_us=1, direction=Direction.OFF, until_us=now_us() + 20_000_000), is_order=True)
        auto.acting("Off")
        auto.acting("Pinned")
        assert auto.pids() == now


def test_wrong_holds_are_refused_with_one_line(kafka, namespace):
    environ = os.environ | {"TAILPACK_BOOTSTRAP_SERVERS": kafka, "TAILPACK_NAMESPACE": namespace}
    environ |= {"TAILPACK_MAX_REPLICAS": "4"}
    missing = tailpack("pause", deadline_s=60, environ=environ)
    assert (missing.returncode, len(missing.stderr.splitlines())) == (2, 1)
    assert "tailpack topics create" in missing.stderr
    create_topics(kafka, namespace, 4)
    for words, reason in {("pin", "5"): "1 to 4", ("pause", "--for", "ever"): "not a duration"}.items():
        refused = tailpack(*words, deadline_s=60, environ=environ)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
        assert reason in refused.stderr
