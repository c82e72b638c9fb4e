"""Parts of the pipeline are killed during a run: no event is lost, and no effect happens twice."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka_helpers import wait_for
from live_run import LiveRun, start_run

from tailpack.local.broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.long]


@pytest.fixture
def run(tmp_path: Path, private_broker: Broker) -> Iterator[LiveRun]:
    """The smoke scenario on a broker that the test may kill."""
    address = private_broker.address()
    assert address
    live = start_run(tmp_path / "out", "smoke", "--bootstrap-servers", address)
    try:
        yield live
    finally:
        family = [*live.family(), psutil.Process(live.process.pid)] if live.process.poll() is None else []
        for process in family:
            process.kill()
        live.process.communicate()


def assert_exactly_once(live: LiveRun) -> dict[str, Any]:
    status, result = live.ended()
    assert result, live.errors
    effects = result["effects"]
    assert (effects["orders"], effects["exactly_once"], result["lost"]) == (400, 400, 0), live.errors
    assert status == 0
    return result


def test_kafka_is_killed_and_restarted_in_mid_run(run: LiveRun, private_broker: Broker) -> None:
    run.wait_for_second(6)
    private_broker.kill()
    private_broker.start()
    assert assert_exactly_once(run)["failures"] == [], "an outage of the brokers kills no replica"


def test_a_service_a_replica_and_the_autoscaler_are_killed_in_mid_run(run: LiveRun) -> None:
    run.wait_for_second(3)
    run.child("services.notification").kill()
    run.wait_for_second(6)
    run.child("services.payment").kill()
    run.wait_for_second(8)
    replicas = {one.pid for one in run.running("services.payment")}
    run.child("autoscaler.live").kill()
    assert all(psutil.pid_exists(pid) for pid in replicas), "replicas outlive the autoscaler, with the plan in force"
    assert_exactly_once(run)
    wait_for(lambda: not any(map(psutil.pid_exists, replicas)), "and are stopped with the run")


@pytest.mark.parametrize(("second", "number"), [(None, signal.SIGINT), (4, signal.SIGTERM)])
def test_ctrl_c_leaves_no_process_behind(
    run: LiveRun, private_broker: Broker, second: int | None, number: signal.Signals
) -> None:
    if second is None:
        run.child("services.order")  # in the middle of starting
    else:
        run.wait_for_second(second)
    family = run.family()
    run.interrupt(number)
    status, result = run.ended()
    assert (status, result) == (130, {})
    assert "tailpack report" in run.errors
    assert "Traceback" not in run.errors
    assert not [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert private_broker.nodes[1].pid, "a broker that the run did not start is not the run's to stop"
    assert not list(run.folder.glob("**/*lock*"))
    assert (run.folder / "run.json").exists()
