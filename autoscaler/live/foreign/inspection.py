"""The check before the autoscaler joins a group: whether it can plan the group, and if not, why."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    IncompatibleBrokerVersion,
    KafkaError,
    NotCoordinatorForGroupError,
    UnsupportedVersionError,
)

from autoscaler.live.foreign.broker_settings import brokers_without_assignor
from autoscaler.live.foreign.coordinator import Coordinator, describe_error
from autoscaler.live.foreign.leader import BY_BROKERS
from autoscaler.live.foreign.planner import CARRIERS, CLASSIC
from autoscaler.live.foreign.wire import PLANNER, PROTOCOL_TYPE
from autoscaler.live.settings import AutoscalerSettings
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.plan import ASSIGNOR
from contracts.preflight import PreflightError

INSTALL: Final = "install it, see docs/howto/scale-your-consumers.md; until then: tailpack shadow"
DEAD: Final = "Dead"
"""State of a group that does not exist, or that has another protocol than those of consumers."""
LOADING_S: Final = 20.0  # longest wait for a coordinator that is not ready yet
RETRY_S: Final = 0.5


def inspect(connection: Connection, settings: AutoscalerSettings) -> tuple[str, str]:
    """Return the setting `consumers` that `auto` stands for, and one sentence: what the autoscaler will do and why.

    Nothing is changed. Raises PreflightError if the autoscaler cannot plan the group.
    """
    group, consumers = settings.group_in(connection.namespace), settings.consumers
    try:
        found, assigned = asyncio.run(_read(connection, group, is_assigned=consumers == "assigned"))
    except (KafkaError, OSError, TimeoutError) as failed:
        raise PreflightError(f"group {group} cannot be described: {describe_error(failed)}") from failed
    if consumers == "auto":
        consumers = "assigned" if assigned else "ours" if found[4] == ASSIGNOR else "led"
    if consumers == "ours":
        return consumers, f"scales group {group}, whose members follow plans by themselves"
    if consumers == "assigned":
        members = [one for one in assigned[7] if one[0] not in CARRIERS] if assigned else found[5]
        return consumers, _assigned(connection, group, len(members), is_classic=bool(found[5]))
    if reason := BY_BROKERS if assigned else _why_not(found, settings.led_protocols):
        raise PreflightError(f"group {group} cannot be led: {reason}")
    if members := [one for one in found[5] if one[1] != PLANNER]:
        is_kept = len(members) < len(found[5])
        by = "the last autoscaler is still a member" if is_kept else "no autoscaler is a member, so it follows no plan"
        return consumers, f"joins group {group} ({len(members)} consumers, assignor {found[4]}): {by}"
    of = f"must use one of {', '.join(settings.led_protocols)}; if they use KIP-848, set consumers = assigned"
    return consumers, f"leads group {group}, which is empty; its consumers {of}"


def _assigned(connection: Connection, group: str, members: int, *, is_classic: bool) -> str:
    if is_classic:
        raise PreflightError(f"group {group} cannot be assigned: its {members} consumers {CLASSIC}")
    line = f"plans group {group} ({members} consumers, KIP-848), whose partitions the brokers assign"
    if (asked := brokers_without_assignor(connection)) is None:
        return f"{line}; no right to see whether they have the assignor of tailpack"
    lacking, brokers = asked
    if len(lacking) == brokers:
        raise PreflightError(f"group {group} cannot be assigned: no broker has the assignor of tailpack; {INSTALL}")
    return f"{line}; brokers {lacking} lack the assignor of tailpack: {INSTALL}" if lacking else line


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


async def _read(connection: Connection, group: str, *, is_assigned: bool) -> Any:
    deadline_s = monotonic_s() + LOADING_S
    while True:
        coordinator = Coordinator(connection, group)
        try:
            await coordinator.connect()
            found, assigned = await coordinator.describe(), None
            with suppress(*(() if is_assigned else (IncompatibleBrokerVersion, UnsupportedVersionError))):
                assigned = await coordinator.describe_assigned()
                if found[2] == DEAD and not assigned and (type_ := await coordinator.find_type()):
                    raise PreflightError(f"group {group} is a {type_} group; plans exist only for groups of consumers")
            return found, assigned
        except (GroupCoordinatorNotAvailableError, NotCoordinatorForGroupError, GroupLoadInProgressError):
            # It is about to be elected, also on a new cluster, or reads its log.
            if monotonic_s() >= deadline_s:
                raise
        finally:
            await coordinator.close()
        await asyncio.sleep(RETRY_S)
