"""How aiokafka's clients reach Kafka, and how long a replica waits for it at the start."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from aiokafka.errors import KafkaError
from aiokafka.helpers import create_ssl_context

from contracts.connection import Connection
from services.consumer.errors import ReplicaError

T = TypeVar("T")

START_DEADLINE_S: Final = 30.0
"""A broker that is being restarted is back within it; one that is not there is reported after it."""
RETRY_S: Final = 0.2
RETRY_BACKOFF_MS: Final = 20
"""aiokafka sleeps this long after each failed join, sync or produce; its default, 100, would be felt in a rebalance."""


def aiokafka_arguments(connection: Connection) -> dict[str, Any]:
    """Return the arguments that consumers and producers share.

    Raises InvalidSettingsError for a bad properties file, ReplicaError for certificates that cannot be loaded.
    """
    security = connection.security()
    arguments: dict[str, Any] = {
        "bootstrap_servers": connection.bootstrap_servers,
        "security_protocol": security.security_protocol,
        "retry_backoff_ms": RETRY_BACKOFF_MS,
    }
    if security.sasl_mechanism:
        arguments |= {
            "sasl_mechanism": security.sasl_mechanism,
            "sasl_plain_username": security.sasl_username,
            "sasl_plain_password": security.sasl_password,
        }
    if security.security_protocol in {"SSL", "SASL_SSL"}:
        try:
            arguments["ssl_context"] = create_ssl_context(
                cafile=security.ssl_ca_location or None,
                certfile=security.ssl_certificate_location or None,
                keyfile=security.ssl_key_location or None,
                password=security.ssl_key_password or None,
            )
        except OSError as unusable:
            raise ReplicaError(
                f"{connection.client_properties}: certificates cannot be loaded ({unusable}); correct the ssl. paths"
            ) from unusable
    return arguments


async def together(*attempts: Coroutine[Any, Any, Any]) -> None:
    """Await all; the first error cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for attempt in attempts:
                group.create_task(attempt)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def patiently(attempt: Callable[[], Awaitable[T]], what: str, *, deadline: float) -> T:
    """Return the first result of `attempt` that is not an error, trying again until `deadline` (monotonic seconds).

    Raises ReplicaError with `what` and the last reason.
    """
    while True:
        left_s = deadline - time.monotonic()
        try:
            return await asyncio.wait_for(attempt(), max(left_s, RETRY_S))
        except (KafkaError, OSError, TimeoutError) as failed:
            if left_s <= RETRY_S:
                raise ReplicaError(f"{what} ({str(failed) or 'no answer'})") from failed
        await asyncio.sleep(RETRY_S)  # nothing tells when a broker starts to listen
