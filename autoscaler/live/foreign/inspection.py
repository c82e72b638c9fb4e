"""The check before the autoscaler joins a group: it can be led, or one sentence says what prevents that."""

import asyncio
from collections.abc import Collection
from typing import Any, Final

from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, NoError, for_code

from autoscaler.live.foreign import wire
from autoscaler.live.foreign.wire import PLANNER, PROTOCOL_TYPE
from contracts.connection import Connection
from contracts.plan import ASSIGNOR
from contracts.preflight import PreflightError

STREAMS: Final = "stream"
"""Assignor of Kafka Streams in the classic protocol."""
CLASSIC: Final = "classic"
SETTLED: Final = ("Stable", "Empty", "Dead")
SETTLE_TRIES: Final = 20
SETTLE_S: Final = 0.5


def inspect(connection: Connection, group: str, protocols: Collection[str]) -> str:
    """Return what the autoscaler will do with the group, one sentence. Nothing is changed.

    protocols: assignors that it offers. Raises PreflightError if the group cannot be led.
    """
    try:
        kind, found = asyncio.run(_read(connection, group))
    except (KafkaError, OSError, TimeoutError) as failed:
        raise PreflightError(f"group {group} cannot be described: {type(failed).__name__}: {failed}") from failed
    if reason := _why_not(kind, found, protocols):
        raise PreflightError(f"group {group} cannot be led: {reason}")
    members = [one for one in found[5] if one[1] != PLANNER]
    if not members:
        return f"leads group {group}, which is empty; its consumers must use one of {', '.join(protocols)}"
    return f"joins group {group} ({len(members)} consumers, assignor {found[4]})"


def _why_not(kind: str, found: Any, protocols: Collection[str]) -> str:
    error, _, _, protocol_type, protocol, members, *_ = found
    other_kind = {"consumer": "brokers assign its partitions (KIP-848); set group.protocol=classic at its consumers"}
    other_protocol = {
        STREAMS: "its members are Kafka Streams applications, whose leader needs their own metadata",
        ASSIGNOR: "its members follow plans by themselves; set consumers = ours",
    }
    reason = ""
    if for_code(error) is not NoError:
        denied = for_code(error) is GroupAuthorizationFailedError
        reason = "no right; allow READ and DESCRIBE on the group" if denied else for_code(error).__name__
    elif kind != CLASSIC:
        reason = other_kind.get(kind, f"it is a {kind} group")
    elif protocol_type not in ("", PROTOCOL_TYPE):
        reason = f"its protocol type is {protocol_type}, not {PROTOCOL_TYPE}; Kafka Connect assigns connectors itself"
    elif members and protocol and protocol not in protocols:
        reason = other_protocol.get(protocol, f"its assignor is {protocol}; add it to led_protocols")
    return reason


async def _read(connection: Connection, group: str) -> tuple[str, Any]:
    """Return the type of the group and its description, once it does not rebalance."""
    client, node = await wire.connect(connection, group)
    try:
        try:
            listed = (await client.send(node, wire.list_groups())).groups
        except NotImplementedError:  # a broker before 3.8
            listed = []
        kind = next((one[3] for one in listed if one[0] == group), CLASSIC)
        for _ in range(SETTLE_TRIES):
            (found,) = (await client.send(node, wire.describe(group))).groups
            if found[2] in SETTLED or found[0]:
                break
            await asyncio.sleep(SETTLE_S)
        return kind.lower(), found
    finally:
        await client.close()
