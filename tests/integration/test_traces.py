"""The four services, as processes on a real Kafka, send spans by OTLP to a collector of this test."""

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kafka_helpers import wait_for
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.scenario import load_scenario
from contracts.clock import now_us
from contracts.connection import Connection
from loadgen.result import READY_FILE
from tailpack.local.stack import Stack
from tailpack.local.topics import create_topics

LOAD_S = 5
Span = tuple[str, Any]
"""Service, and what OTLP says of the span."""


@pytest.fixture
def collected() -> Iterator[tuple[str, list[Span]]]:
    """Address of a collector, and what came to it."""
    spans: list[Span] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                (service,) = (
                    one.value.string_value for one in resource.resource.attributes if one.key == "service.name"
                )
                spans.extend((service, span) for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", spans
    server.shutdown()
    server.server_close()


def test_an_order_is_one_trace_through_four_services(
    kafka: str, collected: tuple[str, list[Span]], tmp_path: Path
) -> None:
    endpoint, spans = collected
    scenario = load_scenario("demo", {"duration_s": LOAD_S}).for_live()
    connection = Connection(bootstrap_servers=kafka, namespace="traced")
    create_topics(connection, scenario.payment.partitions)
    stack = Stack(scenario, connection, tmp_path, {**os.environ, "TAILPACK_TRACE_ENDPOINT": endpoint})
    try:
        stack.start(scenario.load_spec())
        wait_for(lambda: not stack.unhealthy() and (tmp_path / READY_FILE).exists(), "all are ready", deadline_s=120)
        stack.start_file.write_text(str(now_us() + 1_000_000))
        wait_for(lambda: any(_whole(one) for one in _traces(spans).values()), "a trace of all four", deadline_s=60)
    finally:
        stack.stop()
    whole = [one for one in _traces(spans).values() if _whole(one)]
    for trace in whole:
        ids = {span.span_id for _, span in trace}
        (root,) = (service for service, span in trace if not span.parent_span_id)
        assert root == "order"
        assert all(span.parent_span_id in ids for _, span in trace if span.parent_span_id)
        assert not any(span.links for _, span in trace), "nothing was tried twice, or handled in batches"
    assert len(whole) > 10


def _traces(spans: list[Span]) -> dict[bytes, list[Span]]:
    found: dict[bytes, list[Span]] = {}
    for service, span in list(spans):
        found.setdefault(span.trace_id, []).append((service, span))
    return found


def _whole(trace: list[Span]) -> bool:
    services = {service.partition("-")[0] for service, _ in trace}
    return services >= {"order", "payment", "shipment", "notification"}
