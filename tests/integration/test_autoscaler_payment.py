"""The autoscaler scales real replicas up under load and down after it, and every payment is served.

Our replicas follow its plans. For other runtimes it decides only the number of replicas; the group assigns partitions.
"""

import signal
from collections import Counter
from pathlib import Path

import pytest
from kafka_helpers import create_topics, wait_for
from live_autoscaler import Autoscaler
from payment_load import PaymentLoad

from contracts.clock import now_us
from contracts.journal import ReplicaChange

pytestmark = pytest.mark.kafka
COMPILED_S = 300.0
"""In a new checkout a policy is compiled before the first plan; that takes minutes on a busy machine."""
MODULE = "services.payment"
AT_LEAST = 0.7
"""Share of its service rate that a replica reaches where others want its core; it never serves more than that rate."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", ["linear", "tail-aware"])
def test_the_group_scales_up_under_load_and_down_after_it(
    kafka: str, namespace: str, tmp_path: Path, policy: str
) -> None:
    create_topics(kafka, namespace, 4)
    at_once = {"TAILPACK_POLICY_OPTIONS": '{"keep_s": 0}'} if policy == "tail-aware" else {}
    with Autoscaler(
        kafka, namespace, tmp_path / "state", policy=policy, initial_replicas=1, replica_module=MODULE, more=at_once
    ) as autoscaler:
        autoscaler.wait_for_plan(1, deadline_s=COMPILED_S)
        with PaymentLoad(kafka, namespace, rate=220, partitions=4) as load:
            up = autoscaler.wait_for_plan(2)[1]
            assert len(up.replicas) > 1, "one replica serves 200 events/s"
            assert (up.assignment is None) == (policy == "linear")
            autoscaler.wait_for_tick(lambda tick: tick.ready_replicas > 1, "members that are ready")
        wait_for(lambda: len(autoscaler.plans()[-1].replicas) == 1, "scale-down in silence")
        wait_for(lambda: not load.unserved(), "every payment served")
        wait_for(lambda: len(autoscaler.pids()) == 1, "the end of the others")
        assert AT_LEAST * 200 < autoscaler.ticks()[-1].service_rate < 210
        actions = [one.action for one in autoscaler.written()]
        assert actions[0] == "start"
        assert "up" in actions
        assert "down" in actions
        assert "repair" not in actions
        autoscaler.signal(signal.SIGTERM)
        status, output = autoscaler.ended()
        assert status == 0
        warnings = [line for line in output.splitlines() if "warning: " in line]
        unseen = "autoscaler: warning: offsets: "  # a busy machine's broker may answer late
        assert all(line.startswith(unseen) for line in warnings), output


@pytest.mark.timeout(600)
def test_a_replica_that_becomes_slow_gets_fewer_partitions(kafka: str, namespace: str, tmp_path: Path) -> None:
    create_topics(kafka, namespace, 4)
    start_file = tmp_path / "start_at"
    slow = {"SLOW_FACTOR": "2.5", "SLOW_REPLICAS": "1", "SLOW_UNTIL_S": "3600", "START_FILE": str(start_file)}
    more = {f"TAILPACK_{name}": value for name, value in slow.items()}
    more |= {"TAILPACK_MIN_REPLICAS": "2", "TAILPACK_MAX_REPLICAS": "2", "TAILPACK_SERVICE_TIME_S": "0.005"}
    with Autoscaler(
        kafka, namespace, tmp_path / "state", policy="tail-aware", replica_module=MODULE, more=more
    ) as autoscaler:
        autoscaler.wait_for_plan(1, deadline_s=COMPILED_S)
        with PaymentLoad(kafka, namespace, rate=200, partitions=4):
            autoscaler.wait_for_tick(lambda tick: sum(one.arrival_rate for one in tick.partitions) > 150, "the load")
            assert shares(autoscaler) == {"payment-0": 2, "payment-1": 2}
            start_file.write_text(str(now_us()))
            wait_for(lambda: shares(autoscaler) == {"payment-0": 3, "payment-1": 1}, "a plan for their speeds")
            learned = wait_for(lambda: known_slow(autoscaler, "payment-1", below=120), "its own service rate")
            assert AT_LEAST * 200 < learned["payment-0"] < 210


def known_slow(autoscaler: Autoscaler, replica: str, *, below: float) -> dict[str, float] | None:
    """Return what is learned of all once it is learned that `replica` serves fewer than `below` events/s."""
    learned: dict[str, float] = autoscaler.get("/plan")["service_rates"]
    return learned if learned.get(replica, below) < below else None


def shares(autoscaler: Autoscaler) -> dict[str, int]:
    """Return how many partitions the newest plan gives to each replica."""
    return dict(Counter((autoscaler.plans()[-1].assignment or {}).values()))


@pytest.mark.long
def test_replicas_that_do_not_follow_plans_are_scaled_by_count(kafka: str, namespace: str, tmp_path: Path) -> None:
    create_topics(kafka, namespace, 4)
    more = {"TAILPACK_RUNTIME": "kip848", "TAILPACK_SERVICE_TIME_S": "0.005"}
    module, state = "tailpack.comparators", tmp_path / "state"
    with Autoscaler(
        kafka, namespace, state, policy="algorithm-2", initial_replicas=1, replica_module=module, more=more
    ) as autoscaler:
        autoscaler.wait_for_plan(1)
        with PaymentLoad(kafka, namespace, rate=220, partitions=4) as load:
            wait_for(lambda: len(load.settled()) > 0, "the first payment served")
            up = autoscaler.wait_for_plan(2)[1]
            autoscaler.wait_for_tick(lambda tick: tick.ready_replicas > 1, "replicas that are ready")
        wait_for(lambda: not load.unserved(), "every payment served")
        wait_for(lambda: len(autoscaler.pids()) == 1, "the end of the others")
        assert {plan.assignment for plan in autoscaler.plans()} == {None}
        changes = {one.change for name in up.replicas for one in autoscaler.changes(name)}
        never = {ReplicaChange.DIED, ReplicaChange.START_FAILED, ReplicaChange.DRAINED}
        assert not never & changes, "it reads no plan that would tell it to drain"
