"""An operator pauses, pins and resumes a running autoscaler by commands."""

import os
import signal

import msgspec
import pytest
from kafka_helpers import create_topics, produce, wait_for
from live_autoscaler import Autoscaler
from tailpack_command import tailpack

from contracts.holds import Direction, Hold
from contracts.plan import plan_key
from contracts.topics import Topic

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


def test_an_autoscaler_is_pinned_paused_and_resumed_and_replaces_the_dead_meanwhile(kafka, namespace, tmp_path):
    create_topics(kafka, namespace, 4)
    environ = os.environ | {"TAILPACK_BOOTSTRAP_SERVERS": kafka, "TAILPACK_NAMESPACE": namespace}

    def command(*words: str, status: int = 0) -> str:
        done = tailpack(*words, deadline_s=60, environ=environ)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    def replicas(count: int):
        return wait_for(lambda: len(auto.plans()[-1].replicas) == count == len(auto.pids()), f"{count} replicas")

    def key() -> bytes:
        return plan_key(f"{namespace}.payment", f"{namespace}.payments.requested")

    with Autoscaler(kafka, namespace, tmp_path / "state", initial_replicas=2) as auto:
        environ["TAILPACK_HTTP_PORT"] = str(auto.port)
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

        produce(kafka, namespace, Topic.HOLDS, [b"\xff damaged"], key=key())
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

        past = Hold(at_us=1, direction=Direction.PIN, until_us=2, replicas=4)
        produce(kafka, namespace, Topic.HOLDS, [msgspec.json.encode(past)], key=key())
        ticks = len(auto.ticks())
        wait_for(lambda: len(auto.ticks()) >= ticks + 3, "three more decisions")
        assert len(auto.plans()[-1].replicas) == 2, "a hold that has ended is ignored"
        assert "not paused" in command("status")


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
