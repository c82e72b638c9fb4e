"""The check before the autoscaler joins a group: it can be led, or one sentence says what prevents that."""

import asyncio
from collections.abc import Collection
from typing import Any, Final

from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaError,
    NotCoordinatorForGroupError,
)
from confluent_kafka import ConsumerGroupType

from autoscaler.live.foreign.coordinator import Coordinator, describe_error
from autoscaler.live.foreign.wire import PLANNER, PROTOCOL_TYPE
from autoscaler.live.kafka import describe_group
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.plan import ASSIGNOR
from contracts.preflight import PreflightError

BY_BROKER: Final = "brokers assign its partitions (KIP-848); set group.protocol=classic at its consumers"
LOADING_S: Final = 20.0  # longest wait for a coordinator that is not ready yet
RETRY_S: Final = 0.5


def inspect(connection: Connection, group: str, protocols: Collection[str]) -> str:
    """Return what the autoscaler will do with the group, one sentence. Nothing is changed.

    protocols: assignors that it offers. Raises PreflightError if the group cannot be led.
    """
    try:
        found = asyncio.run(_read(connection, group))
    except GroupCoordinatorNotAvailableError:  # a new cluster: it has no groups yet
        found = (0, group, "", "", "", [])
    except (KafkaError, OSError, TimeoutError) as failed:
        raise PreflightError(f"group {group} cannot be described: {describe_error(failed)}") from failed
    by_broker = (described := describe_group(connection, group)) and described.type is ConsumerGroupType.CONSUMER
    if reason := BY_BROKER if by_broker else _why_not(found, protocols):
        raise PreflightError(f"group {group} cannot be led: {reason}")
    if not (members := [one for one in found[5] if one[1] != PLANNER]):
        return f"leads group {group}, which is empty; its consumers must use one of {', '.join(protocols)}"
    is_kept = len(members) < len(found[5])
    by = (
        "the last autoscaler is still its leader or member"
        if is_kept
        else "no autoscaler is a member, so it follows none"
    )
    return f"joins group {group} ({len(members)} consumers, assignor {found[4]}): {by}"


def _why_not(found: Any, protocols: Collection[str]) -> str:
    protocol_type, protocol, members = found[3:6]
    if protocol_type not in ("", PROTOCOL_TYPE):
        return f"its protocol type is {protocol_type}, not {PROTOCOL_TYPE}; Kafka Connect assigns connectors itself"
    if not members or protocol in ("", *protocols):
        return ""
    return {
        "stream": "its members are Kafka Streams applications, whose leader needs their own metadata",
        ASSIGNOR: "its members follow plans by themselves; set consumers = ours",
    }.get(protocol, f"its assignor is {protocol}; add it to led_protocols")


async def _read(connection: Connection, group: str) -> Any:
    deadline_s = monotonic_s() + LOADING_S
    while True:
        coordinator = Coordinator(connection, group)
        try:
            await coordinator.connect()
            return await coordinator.describe()
        except (NotCoordinatorForGroupError, GroupLoadInProgressError):  # it is about to be elected, or reads its log
            if monotonic_s() >= deadline_s:
                raise
        finally:
            await coordinator.close()
        await asyncio.sleep(RETRY_S)
