"""The policy's compiler fails on this machine: every output reports it, and a fallback scales the group."""

from pathlib import Path

import pytest
from http_answer import http_answer
from kafka_helpers import create_topics, produce, wait_for
from live_autoscaler import PARTITIONS, TESTS, Autoscaler

from contracts.topics import Topic

pytestmark = pytest.mark.kafka


def test_a_failing_policy_is_unhealthy_and_a_fallback_scales_the_group(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    create_topics(kafka, namespace, PARTITIONS)
    broken = tmp_path / "broken" / "numba"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise OSError('cannot cache: read-only file system')\n")
    more = {"PYTHONPATH": f"{broken.parent}:{TESTS}", "TAILPACK_INITIAL_REPLICAS": "1"}
    with Autoscaler(kafka, namespace, tmp_path / "state", policy="tail-aware", more=more) as autoscaler:
        autoscaler.wait_for_plan(1)

        def is_unhealthy() -> bool:
            status, body = http_answer(f"http://127.0.0.1:{autoscaler.port}/healthz")
            return status == 503 and "cannot cache: read-only file system" in body

        wait_for(is_unhealthy, "/healthz reports the failing policy")
        metrics = http_answer(f"http://127.0.0.1:{autoscaler.port}/metrics")[1]
        assert 'tailpack_condition{type="policy"} 1.0' in metrics

        for partition in range(PARTITIONS):
            produce(kafka, namespace, Topic.PAYMENTS_REQUESTED, [b"{}"] * 500, partition=partition)
        complete = lambda: [one for one in autoscaler.plans() if len(one.replicas) == PARTITIONS]  # noqa: E731
        plan = wait_for(complete, "a plan for 2,000 events that wait")[0]
        assert set((plan.assignment or {}).values()) == set(plan.replicas)
        assert "tail-aware failed: OSError" in plan.reason
        assert any("tail-aware failed" in problem for problem in autoscaler.ticks()[-1].problems)
        assert autoscaler.process is not None
        autoscaler.process.terminate()
        code, output = autoscaler.ended()
    assert code == 0
    assert "policy: unhealthy: tail-aware failed" in output
    assert len(output.splitlines()) < 10, "printed once, not at each tick"
