"""gRPC service for KEDA: the metric is the planned replica count, and its target is 1 for each replica."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from contracts.metrics import gauge
from contracts.pages import PortTakenError
from contracts.plan import PlanRecord
from contracts.settings import WebPages, setting
from contracts.topics import ScaledGroup

PACKAGE: Final = "externalscaler"
MESSAGES: Final[dict[str, dict[str, str | list[str]]]] = {
    "ScaledObjectRef": {"name": "string", "namespace": "string"},
    "IsActiveResponse": {"result": "bool"},
    "MetricSpec": {"metricName": "string", "targetSize": "int64", "targetSizeFloat": "double"},
    "GetMetricSpecResponse": {"metricSpecs": ["MetricSpec"]},
    "GetMetricsRequest": {"scaledObjectRef": "ScaledObjectRef", "metricName": "string"},
    "MetricValue": {"metricName": "string", "metricValue": "int64", "metricValueFloat": "double"},
    "GetMetricsResponse": {"metricValues": ["MetricValue"]},
}
"""Messages of KEDA's externalscaler.proto: name → fields, numbered from 1 in this order. A list: repeated.
Generated code would tie protobuf's release to that of a compiler. Protobuf ignores other fields that KEDA sends."""
METRIC: Final = "tailpack-planned-replicas"
TARGET: Final = 1
"""Target of the metric for each replica: the HPA requests ⌈metric⌉ replicas."""
TOLERANCE_MARGIN: Final = 0.01
"""Amount added to the metric, because the HPA acts above 1 + tolerance, not at it. The metric has three decimals."""

EPOCH = gauge("tailpack_keda_plan_epoch", "", "Epoch of the newest known plan")
PLANNED = gauge("tailpack_keda_planned_replicas", "replicas", "Replica count of the newest known plan")


@dataclass(frozen=True, kw_only=True)
class KedaSettings(WebPages, ScaledGroup):
    """Settings of the external scaler: TAILPACK_GRPC_PORT, …"""

    grpc_host: str = setting("127.0.0.1")
    """Address for KEDA; 0.0.0.0 in a container."""
    grpc_port: int = setting(9090, least=0, most=65535)
    """Port for KEDA; 0: any free port, printed on standard error."""
    hpa_tolerance: float = setting(0.1, "share", least=0, below=1)
    """Tolerance of the HPA. While replicas are missing, the metric is outside it."""


def _messages() -> dict[str, Any]:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for number, (name, declared) in enumerate(fields.items(), start=1):
            kind = declared[0] if isinstance(declared, list) else declared
            added = described.field.add(name=name, number=number)
            added.label = field.LABEL_REPEATED if isinstance(declared, list) else field.LABEL_OPTIONAL
            if kind in MESSAGES:
                added.type, added.type_name = field.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            else:
                added.type = field.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


MESSAGE: Final = _messages()


def metric_value(plan: PlanRecord, tolerance: float) -> float:
    """Return the metric with which the HPA starts the planned number of replicas, or up to 10 % more, never fewer.

    The HPA ignores deviations within its tolerance (10 %), so it would not add one replica to ten or more. While
    replicas are missing, the metric is therefore at least slightly above (1 + tolerance) × the serving replicas.

    >>> plan = PlanRecord(epoch=1, at_us=0, replicas=("a",) * 20, assignment=None, reason="", wanted=21)
    >>> metric_value(plan, 0.1)
    22.01
    """
    serving = len(plan.replicas)
    if plan.count <= serving or not serving:
        return float(plan.count)
    return max(float(plan.count), round(serving * (1 + tolerance) + TOLERANCE_MARGIN, 3))


class Scaler:
    """Reports the newest plan. All calls come from one event loop.

    newest: returns the newest plan. While it returns None, the metric is unavailable, and the HPA keeps its count.
    """

    def __init__(self, newest: Callable[[], PlanRecord | None], tolerance: float) -> None:
        self._newest, self._tolerance = newest, tolerance
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Notify every open stream of a new plan."""
        self._changed.set()
        self._changed = asyncio.Event()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the gRPC service."""
        about, unary = MESSAGE["ScaledObjectRef"], grpc.unary_unary_rpc_method_handler
        calls = {
            "IsActive": (unary, self._is_active, about),
            "StreamIsActive": (grpc.unary_stream_rpc_method_handler, self._stream_is_active, about),
            "GetMetricSpec": (unary, self._metric_spec, about),
            "GetMetrics": (unary, self._metrics, MESSAGE["GetMetricsRequest"]),
        }
        serialize = methodcaller("SerializeToString")
        handlers = {
            name: kind(call, request_deserializer=request.FromString, response_serializer=serialize)
            for name, (kind, call, request) in calls.items()
        }
        return grpc.method_handlers_generic_handler(f"{PACKAGE}.ExternalScaler", handlers)

    async def _is_active(self, _request: Any, _context: Any) -> Any:
        # never scale to zero: partitions without traffic need an owner too
        return MESSAGE["IsActiveResponse"](result=True)

    async def _stream_is_active(self, _request: Any, _context: Any) -> AsyncIterator[Any]:
        while True:
            changed = self._changed
            yield MESSAGE["IsActiveResponse"](result=True)
            await changed.wait()

    async def _metric_spec(self, _request: Any, _context: Any) -> Any:
        spec = MESSAGE["MetricSpec"](metricName=METRIC, targetSize=TARGET, targetSizeFloat=TARGET)
        return MESSAGE["GetMetricSpecResponse"](metricSpecs=[spec])

    async def _metrics(self, request: Any, context: Any) -> Any:
        plan = self._newest()
        if plan is None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "no plan is known yet; keep the current replica count")
            raise AssertionError("abort raises")
        value = metric_value(plan, self._tolerance)
        name = request.metricName or METRIC
        answer = MESSAGE["MetricValue"](metricName=name, metricValue=round(value), metricValueFloat=value)
        return MESSAGE["GetMetricsResponse"](metricValues=[answer])


def bind_server(scaler: Scaler, host: str, port: int) -> tuple[grpc.aio.Server, int]:
    """Return a bound server that is not started, and its port. port: 0 means any free one. Raises PortTakenError."""
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))  # a second server on this port is an error
    server.add_generic_rpc_handlers((scaler.handlers(),))
    bound = 0
    with suppress(RuntimeError):
        bound = server.add_insecure_port(f"{host}:{port}")
    if not bound:
        raise PortTakenError(f"cannot listen on {host}:{port}: set TAILPACK_GRPC_HOST or TAILPACK_GRPC_PORT")
    return server, bound
