"""Traces across the hops of Kafka, by OpenTelemetry: off unless told where to send them.

A record carries the context of the work that wrote it in the header `traceparent` (W3C). Work on one record goes on
with its trace. Work on several, or on one that was tried before, is a trace of its own, linked with what caused it: it
has no single parent. Where a record carries nothing, a trace begins.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from contracts.settings import Settings, setting
from contracts.validation import InvalidSettingsError, from_environment

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import SpanContext

FLUSH_S: Final = 1.0
"""How long the end of a process waits for its last spans to be sent."""
PARENT: Final = "traceparent"
Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, kw_only=True)
class TraceSettings(Settings):
    """Environment: TAILPACK_TRACE_…."""

    trace_endpoint: str = setting("")
    """Where spans are sent by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; empty: there are no traces."""
    trace_share: float = setting(1.0, least=0, most=1)
    """Share of the traces that are recorded; who goes on with one does as whoever began it."""


class Record(Protocol):
    """What is known of a record, whatever client has read it."""

    @property
    def topic(self) -> str: ...  # noqa: D102
    @property
    def partition(self) -> int: ...  # noqa: D102
    @property
    def offset(self) -> int: ...  # noqa: D102
    @property
    def headers(self) -> Sequence[tuple[str, bytes]] | Mapping[str, bytes]: ...  # noqa: D102


class Tracing:
    """The spans of one process."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry import trace  # noqa: PLC0415  an extra
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        self.provider = provider
        self._trace = trace
        self._tracer = provider.get_tracer("tailpack")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def work(
        self, group: str, records: Sequence[Record], earlier: "SpanContext | None" = None
    ) -> Iterator["SpanContext"]:
        """Record the work on `records` as a span. earlier: that of the attempt before this one. Yields its context."""
        parents = [self._propagator.extract(self._carried(record)) for record in records]
        is_alone = len(records) == 1 and earlier is None
        causes = [] if is_alone else [self._trace.get_current_span(one).get_span_context() for one in parents]
        if earlier is not None:
            causes.append(earlier)
        first = records[0]
        with self._tracer.start_as_current_span(
            f"process {first.topic}",
            context=parents[0] if is_alone else self._trace.set_span_in_context(self._trace.INVALID_SPAN),
            kind=self._trace.SpanKind.CONSUMER,
            links=[self._trace.Link(cause) for cause in causes if cause.is_valid],
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

    def under(self, context: "SpanContext") -> AbstractContextManager[object]:
        """Let what is written carry `context`, whose span has ended."""
        return self._trace.use_span(self._trace.NonRecordingSpan(context))

    def begin(self, name: str) -> AbstractContextManager[object]:
        """Record what begins a trace, or goes on with that of this task."""
        return self._tracer.start_as_current_span(name, kind=self._trace.SpanKind.PRODUCER)

    def headers(self) -> Headers:
        """Return the context of the span of this task."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return [(name, text.encode()) for name, text in carrier.items()]

    def _carried(self, record: Record) -> dict[str, str]:
        parent = dict(record.headers).get(PARENT) if record.headers else None
        return {PARENT: parent.decode("latin-1")} if parent else {}


on: Tracing | None = None
"""None: there are no traces."""
_OFF: Final[AbstractContextManager[Any]] = nullcontext()


def work(group: str, records: Sequence[Record], earlier: "SpanContext | None" = None) -> AbstractContextManager[Any]:
    """Return `Tracing.work`; without traces nothing."""
    return on.work(group, records, earlier) if on else _OFF


def under(context: "SpanContext | None") -> AbstractContextManager[object]:
    """Return `Tracing.under`; without traces nothing."""
    return on.under(context) if on and context else _OFF


def begin(name: str) -> AbstractContextManager[object]:
    """Return `Tracing.begin`; without traces nothing."""
    return on.begin(name) if on else _OFF


def headers() -> Headers | None:
    """Return what a record that is written now carries; None without traces."""
    return on.headers() if on else None


def configure(process: str, environ: Mapping[str, str]) -> None:
    """Begin to trace this process if it is told to. Raises InvalidSettingsError: the extra is not there, too."""
    global on  # noqa: PLW0603  as OpenTelemetry's own provider: one to a process
    settings = from_environment(environ, TraceSettings)
    if not settings.trace_endpoint:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio  # noqa: PLC0415
    except ImportError as missing:
        problem = f"TAILPACK_TRACE_ENDPOINT: {missing.name} is not there; pip install '.[traces]'"
        raise InvalidSettingsError([problem]) from missing
    provider = TracerProvider(
        sampler=ParentBasedTraceIdRatio(settings.trace_share),
        resource=Resource.create({"service.name": process}),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(settings.trace_endpoint)))
    on = Tracing(provider)


def stop() -> None:
    """Send the last spans, for a second at most."""
    if on:
        sending = threading.Thread(target=on.provider.shutdown, daemon=True)
        sending.start()
        sending.join(FLUSH_S)
