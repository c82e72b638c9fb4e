"""OpenTelemetry traces across Kafka. They are off unless an endpoint is configured.

The header `traceparent` (W3C) of a record carries the context of the work that wrote it. Work on one record continues
its trace. Work on several records, or a retry, has no single parent. It starts a new trace with links to its causes.
The existing instrumentation of aiokafka covers polls, but not the work on an event after the poll.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contracts.settings import Settings, setting
from contracts.validation import InvalidSettingsError, from_environment

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import SpanContext

FLUSH_S: Final = 1.0  # longest wait for the last spans when the process ends
PARENT: Final = "traceparent"
Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, kw_only=True)
class TraceSettings(Settings):
    """Settings of traces, from TAILPACK_TRACE_ENDPOINT and TAILPACK_TRACE_SHARE."""

    trace_endpoint: str = setting("")
    """OTLP/HTTP endpoint for spans, such as http://127.0.0.1:4318/v1/traces; empty: no traces."""
    trace_share: float = setting(1.0, least=0, most=1)
    """Share of traces that are recorded. A trace is recorded in all services or in none."""


class Tracing:
    """The spans of one process."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry import trace  # noqa: PLC0415  an extra
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        self.provider, self.api = provider, trace
        self.tracer = provider.get_tracer("tailpack")
        self.propagator = TraceContextTextMapPropagator()

    @contextmanager
    def work(self, group: str, records: Sequence[Any], earlier: "SpanContext | None") -> Iterator["SpanContext"]:
        """Record the work on `records` as a span. The function `work` explains the arguments."""
        parents = [self.propagator.extract(_carrier_of(record)) for record in records]
        is_alone = len(records) == 1 and earlier is None
        causes = [] if is_alone else [self.api.get_current_span(parent).get_span_context() for parent in parents]
        first = records[0]
        with self.tracer.start_as_current_span(
            f"process {first.topic}",
            context=parents[0] if is_alone else self.api.set_span_in_context(self.api.INVALID_SPAN),
            kind=self.api.SpanKind.CONSUMER,
            links=[self.api.Link(cause) for cause in (*causes, earlier) if cause is not None and cause.is_valid],
            attributes={
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.consumer.group.name": group,
                "messaging.destination.name": first.topic,
                "messaging.destination.partition.id": str(first.partition),
                "messaging.kafka.offset": first.offset,
                "messaging.batch.message_count": len(records),
            },
        ) as span:
            yield span.get_span_context()


def _carrier_of(record: Any) -> dict[str, str]:
    parent = dict(record.headers).get(PARENT) if record.headers else None
    return {PARENT: parent.decode("latin-1")} if parent else {}


on: Tracing | None = None
"""Tracing of this process. None: traces are off."""
_OFF: Final[AbstractContextManager[Any]] = nullcontext()


def work(group: str, records: Sequence[Any], earlier: "SpanContext | None" = None) -> AbstractContextManager[Any]:
    """Record the work on `records` as a span and yield its context. earlier: context of the previous attempt.

    records: of any Kafka client. They have topic, partition, offset and headers.
    """
    return on.work(group, records, earlier) if on else _OFF


def under(context: "SpanContext | None") -> AbstractContextManager[object]:
    """Give records written inside this block the `context` of a span that has ended."""
    return on.api.use_span(on.api.NonRecordingSpan(context)) if on and context else _OFF


def begin(name: str) -> AbstractContextManager[object]:
    """Start a trace, or continue the trace of this task."""
    return on.tracer.start_as_current_span(name, kind=on.api.SpanKind.PRODUCER) if on else _OFF


def headers() -> Headers | None:
    """Return the headers of a record written now: the context of the current span. None if traces are off."""
    carrier: dict[str, str] = {}
    if on:
        on.propagator.inject(carrier)
    return [(name, text.encode()) for name, text in carrier.items()] if on else None


def configure(process: str, environ: Mapping[str, str]) -> None:
    """Start tracing if an endpoint is configured. Raises InvalidSettingsError, also if a package is missing."""
    global on  # noqa: PLW0603  one provider for each process, as in OpenTelemetry
    settings = from_environment(environ, TraceSettings)
    if not settings.trace_endpoint:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio  # noqa: PLC0415
    except ImportError as error:
        problem = f"TAILPACK_TRACE_ENDPOINT: {error.name} is not installed; pip install '.[traces]'"
        raise InvalidSettingsError([problem]) from error
    sampler, resource = ParentBasedTraceIdRatio(settings.trace_share), Resource.create({"service.name": process})
    provider = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(settings.trace_endpoint)))
    on = Tracing(provider)


def stop() -> None:
    """Send the last spans. Wait at most FLUSH_S."""
    if on:
        sending = threading.Thread(target=on.provider.shutdown, daemon=True)
        sending.start()
        sending.join(FLUSH_S)
