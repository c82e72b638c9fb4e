"""Spans of a replica: one event goes on with its trace; a batch and another attempt are linked with their causes."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from consumer_fakes import Kitchen, Record
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id, format_trace_id

from contracts.validation import InvalidSettingsError
from services.common import traces
from services.consumer.interface import Event

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CARRIED = (("traceparent", f"00-{TRACE}-{PARENT}-01".encode()),)


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    provider, spans = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(traces, "on", traces.Tracing(provider))
    yield spans
    provider.shutdown()


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return format_trace_id(span.context.trace_id)


def linked(span: ReadableSpan) -> list[str]:
    return [format_span_id(link.context.span_id) for link in span.links]


def context_of(headers: list[tuple[str, bytes]] | None) -> tuple[str, str]:
    assert headers is not None
    ((name, value),) = headers
    assert name == "traceparent"
    _, trace, span, _ = value.decode().split("-")
    return trace, span


async def test_another_attempt_is_linked_with_the_one_before(exporter: InMemorySpanExporter) -> None:
    refused: list[Any] = []

    async def handle(_: Sequence[Event]) -> None:
        raise ValueError("no")

    async def on_error(_event: Event, _wrong: Exception) -> None:
        refused.append(traces.headers())

    kitchen = Kitchen(handle, on_error=on_error, attempts=2)
    kitchen.queues.put(0, [Record(0, headers=CARRIED)], 1)
    await kitchen.serve(lambda: bool(refused))
    first, second = exporter.get_finished_spans()
    assert first.context is not None
    assert second.parent is None
    assert linked(second) == [PARENT, format_span_id(first.context.span_id)]
    assert [event.name for event in first.events] == ["exception"]
    assert context_of(refused[0])[0] == trace_of(second)


def test_where_the_extra_is_missing_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InvalidSettingsError, match=r"^TAILPACK_TRACE_ENDPOINT: .*pip install '.*\[traces\]'$"):
        traces.configure("order", {"TAILPACK_TRACE_ENDPOINT": "http://127.0.0.1:1/v1/traces"})
    traces.configure("order", {})
    assert traces.on is None
