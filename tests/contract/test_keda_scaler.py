"""The external scaler with a real gRPC client, the real process and a real plan topic."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from http_answer import http_answer
from kafka_helpers import DEADLINE_S, create_topics, wait_for

from autoscaler.live.plan_log import PlanLog
from contracts.connection import Connection
from tailpack.local.broker import Broker
from tailpack.local.ports import free_port

grpc = pytest.importorskip("grpc", reason="gRPC is not installed: pip install '.[keda]'")
from autoscaler.keda.scaler import MESSAGE  # noqa: E402  # needs gRPC

pytestmark = pytest.mark.kafka
SCALED_OBJECT = MESSAGE["ScaledObjectRef"](name="payment", namespace="shop")


class Scaler:
    """The process and a client with KEDA's calls."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, http_port: int) -> None:
        self.process, self._http_port = process, http_port
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")

    def call(self, method: str, request: Any, answer: Any, kind: str = "unary_unary") -> Any:
        stub = getattr(self.channel, kind)(
            f"/externalscaler.ExternalScaler/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return stub(request, wait_for_ready=True, timeout=DEADLINE_S)

    def spec(self) -> Any:
        (one,) = self.call("GetMetricSpec", SCALED_OBJECT, MESSAGE["GetMetricSpecResponse"]).metricSpecs
        return one

    def metric(self) -> float | None:
        """The metric for the HPA; None: unavailable."""
        asked = MESSAGE["GetMetricsRequest"](scaledObjectRef=SCALED_OBJECT, metricName=self.spec().metricName)
        try:
            (one,) = self.call("GetMetrics", asked, MESSAGE["GetMetricsResponse"]).metricValues
        except grpc.RpcError as refused:
            if refused.code() is not grpc.StatusCode.UNAVAILABLE or "no plan is known yet" not in refused.details():
                raise
            return None
        return float(one.metricValueFloat)

    def health(self) -> tuple[int, dict[str, Any]]:
        code, text = http_answer(f"http://127.0.0.1:{self._http_port}/healthz")
        return code, json.loads(text)


@contextmanager
def scaler(kafka: str, namespace: str, folder: Path) -> Iterator[Scaler]:
    """The command with a settings file; the environment overrides it."""
    port, http_port = free_port(), free_port()
    config = folder / "scaler.toml"
    config.write_text(f'bootstrap_servers = "{kafka}"\nnamespace = "another"\ngrpc_port = {port}\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "tailpack", "scaler", str(config)],
        env=os.environ | {"TAILPACK_NAMESPACE": namespace, "TAILPACK_HTTP_PORT": str(http_port)},
        stderr=subprocess.PIPE,
        text=True,
    )
    running = Scaler(process, port, http_port)
    try:
        yield running
    finally:
        running.channel.close()
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=DEADLINE_S)[1]
        assert process.returncode == 0, errors
        assert "Traceback" not in errors, errors


def plans(kafka: str, namespace: str) -> PlanLog:
    create_topics(kafka, namespace, 4)
    return PlanLog(Connection(bootstrap_servers=kafka, namespace=namespace))


def test_the_metric_is_the_count_of_the_newest_plan_also_after_a_restart(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    log = plans(kafka, namespace)
    with scaler(kafka, namespace, tmp_path) as keda:
        assert (keda.spec().targetSize, keda.spec().targetSizeFloat) == (1, 1.0)
        assert keda.metric() is None, "a guess would stop replicas"
        assert keda.call("IsActive", SCALED_OBJECT, MESSAGE["IsActiveResponse"]).result
        log.write(("pod-a", "pod-b"), None, "first")
        wait_for(lambda: keda.metric() == 2, "the first plan")
        pushed = keda.call("StreamIsActive", SCALED_OBJECT, MESSAGE["IsActiveResponse"], "unary_stream")
        assert next(pushed).result
        log.write(("pod-a", "pod-b"), None, "more are wanted than serve", wanted=5)
        assert next(pushed).result, "each plan is pushed"
        assert keda.metric() == 5
        pushed.cancel()
    with scaler(kafka, namespace, tmp_path) as keda:
        wait_for(lambda: keda.metric() == 5, "the same after a restart")
        log.write(("pod-a",), None, "fewer")
        wait_for(lambda: keda.metric() == 1, "a plan after the restart")
        status, body = keda.health()
        assert (status, body["status"]) == (200, "ok")


def test_many_open_streams_do_not_block_other_calls(kafka: str, namespace: str, tmp_path: Path) -> None:
    plans(kafka, namespace).write(("pod-a",), None, "first")
    with scaler(kafka, namespace, tmp_path) as keda:
        wait_for(lambda: keda.metric() == 1, "the plan")
        streams = [
            keda.call("StreamIsActive", SCALED_OBJECT, MESSAGE["IsActiveResponse"], "unary_stream") for _ in range(60)
        ]
        assert all(next(one).result for one in streams)
        assert keda.metric() == 1
        for one in streams:
            one.cancel()


def test_the_scaler_reports_the_last_plan_and_a_problem_while_kafka_is_down(
    private_broker: Broker, namespace: str, tmp_path: Path
) -> None:
    kafka = str(private_broker.address())
    log = plans(kafka, namespace)
    log.write(("pod-a", "pod-b", "pod-c"), None, "first")
    with scaler(kafka, namespace, tmp_path) as keda:
        wait_for(lambda: keda.metric() == 3, "the plan")
        private_broker.stop()
        status, body = wait_for(lambda: (found := keda.health())[1]["status"] == "degraded" and found, "the problem")
        assert status == 200, "a restart would forget the plan and mend nothing"
        assert body["problems"]["plans"].endswith("; plan 1 stays in force")
        assert keda.metric() == 3
        private_broker.start()
        wait_for(lambda: keda.health()[1]["status"] == "ok", "the end of the problem")
        plans(kafka, namespace).write(("pod-a",), None, "after the outage")
        wait_for(lambda: keda.metric() == 1, "the next plan")


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("GRPC_PORT", "seventy", "TAILPACK_GRPC_PORT = 'seventy'"),
        ("GRPC_HOST", "192.0.2.1", "cannot listen on 192.0.2.1:"),
        ("CLIENT_PROPERTIES", "/nowhere/client.properties", "/nowhere/client.properties: cannot be read"),
    ],
)
def test_an_invalid_setting_is_one_line(variable: str, value: str, line: str) -> None:
    settings = {"BOOTSTRAP_SERVERS": "127.0.0.1:1", "GRPC_PORT": "0", variable: value}
    environ = os.environ | {f"TAILPACK_{name}": text for name, text in settings.items()}
    done = subprocess.run(
        [sys.executable, "-m", "autoscaler.keda"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [done.stderr.strip()], done.stderr
    assert done.stderr.startswith(f"keda: {line}")
