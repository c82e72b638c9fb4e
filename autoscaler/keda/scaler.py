"""The gRPC service that KEDA asks: the planned count against a target of 1 for each replica."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

import grpc

from autoscaler.keda import messages
from contracts.plan import PlanRecord

SERVICE: Final = "externalscaler.ExternalScaler"
METRIC: Final = "tailpack-planned-replicas"
TARGET: Final = 1
"""Of the metric for each replica, so that the HPA wants ⌈metric⌉ replicas."""
BEYOND: Final = 0.01
"""The metric has three decimals; the HPA acts above 1 + tolerance, not at it."""


def metric(plan: PlanRecord, tolerance: float) -> float:
    """Return the value for which the HPA brings as many replicas as the plan wants, or a few more, never fewer.

    The HPA compares the metric with the count it has, and does nothing within the tolerance: from 10 replicas on, one
    more never comes. So while replicas are missing the metric lies just beyond the tolerance around those that serve.

    >>> plan = PlanRecord(epoch=1, at_us=0, replicas=("a",) * 20, assignment=None, reason="", wanted=21)
    >>> metric(plan, 0.1)
    22.01
    """
    serving = len(plan.replicas)
    if plan.count <= serving or not serving:
        return float(plan.count)
    return max(float(plan.count), round(serving * (1 + tolerance) + BEYOND, 3))


class Scaler:
    """Answers from the newest plan that it was given. One event loop calls everything here.

    newest: returns that plan; None while none is known. Then the metric is refused, and the HPA keeps what it has.
    told: called with the value of each metric that is answered.
    """

    def __init__(
        self, newest: Callable[[], PlanRecord | None], tolerance: float, told: Callable[[float], None] = lambda _: None
    ) -> None:
        self._newest = newest
        self._tolerance = tolerance
        self._told = told
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Tell every open stream that there is another plan."""
        self._changed.set()
        self._changed = asyncio.Event()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the service."""
        calls = {
            "IsActive": (grpc.unary_unary_rpc_method_handler, self._is_active, messages.ScaledObjectRef),
            "StreamIsActive": (grpc.unary_stream_rpc_method_handler, self._stream_is_active, messages.ScaledObjectRef),
            "GetMetricSpec": (grpc.unary_unary_rpc_method_handler, self._metric_spec, messages.ScaledObjectRef),
            "GetMetrics": (grpc.unary_unary_rpc_method_handler, self._metrics, messages.GetMetricsRequest),
        }
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                name: kind(call, request_deserializer=request.FromString, response_serializer=_serialized)
                for name, (kind, call, request) in calls.items()
            },
        )

    async def _is_active(self, _request: Any, _context: Any) -> Any:
        return messages.IsActiveResponse(result=True)  # somebody owns the partitions in silence too

    async def _stream_is_active(self, _request: Any, _context: Any) -> AsyncIterator[Any]:
        """Say so at once and with each plan. It ends with the call; KEDA opens another one."""
        while True:
            changed = self._changed
            yield messages.IsActiveResponse(result=True)
            await changed.wait()

    async def _metric_spec(self, _request: Any, _context: Any) -> Any:
        spec = messages.MetricSpec(metricName=METRIC, targetSize=TARGET, targetSizeFloat=TARGET)
        return messages.GetMetricSpecResponse(metricSpecs=[spec])

    async def _metrics(self, request: Any, context: Any) -> Any:
        plan = self._newest()
        if plan is None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "no plan is known yet; the replicas stay as they are")
            raise AssertionError("abort raises")
        value = metric(plan, self._tolerance)
        self._told(value)
        answer = messages.MetricValue(
            metricName=request.metricName or METRIC, metricValue=round(value), metricValueFloat=value
        )
        return messages.GetMetricsResponse(metricValues=[answer])


def _serialized(message: Any) -> bytes:
    return message.SerializeToString()  # type: ignore[no-any-return]


class PortUnusableError(Exception):
    """KEDA cannot be answered on the address that was asked for."""


def listening(scaler: Scaler, host: str, port: int) -> tuple[grpc.aio.Server, int]:
    """Return a server that is bound and not started, and its port (0: any that is free). Raises PortUnusableError."""
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))  # a second one on the port shall be told, not share
    server.add_generic_rpc_handlers((scaler.handlers(),))
    bound = 0
    with suppress(RuntimeError):
        bound = server.add_insecure_port(f"{host}:{port}")
    if not bound:
        raise PortUnusableError(f"cannot listen on {host}:{port}; set TAILPACK_GRPC_HOST and TAILPACK_GRPC_PORT")
    return server, bound
