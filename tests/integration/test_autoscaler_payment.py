"""The autoscaler with real Payment replicas: up under load, down after it, every payment served."""

import signal
from pathlib import Path

import pytest
from kafka_helpers import create_topics, wait_for
from live_autoscaler import Autoscaler
from payment_load import PaymentLoad

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("policy", ["algorithm-2", "linear", "tail-aware"])
def test_up_under_load_and_down_after_it(kafka: str, namespace: str, tmp_path: Path, policy: str) -> None:
    create_topics(kafka, namespace, 4)
    with Autoscaler(
        kafka, namespace, tmp_path / "state", policy=policy, initial_replicas=1, replica_module="services.payment"
    ) as autoscaler:
        autoscaler.wait_for_plan(1)
        with PaymentLoad(kafka, namespace, rate=220, partitions=4) as load:
            up = autoscaler.wait_for_plan(2)[1]
            assert len(up.replicas) > 1, "one replica serves 200 events/s"
            assert (up.assignment is None) == (policy == "linear")
            autoscaler.wait_for_tick(lambda tick: tick.ready_replicas > 1, "members that are ready")
        wait_for(lambda: len(autoscaler.plans()[-1].replicas) == 1, "scale-down in silence", deadline_s=30)
        wait_for(lambda: not load.unserved(), "every payment served", deadline_s=30)
        wait_for(lambda: len(autoscaler.pids()) == 1, "the end of the others")
        assert autoscaler.ticks()[-1].service_rate == pytest.approx(200, rel=0.1)
        actions = [one.action for one in autoscaler.written()]
        assert actions[0] == "start"
        assert "up" in actions
        assert "down" in actions
        assert "repair" not in actions
        autoscaler.signal(signal.SIGTERM)
        assert autoscaler.ended() == (0, "")
