"""Settings that the new group protocols keep on the broker: heartbeat, session, and how soon it assigns."""

import logging
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from contracts.connection import Connection
from contracts.delivery import Delivery
from contracts.topics import AUTO_OFFSET_RESET, Group, qualified
from services.common.records import ServiceError

log = logging.getLogger(__name__)

PREFIX: Final = {Delivery.KIP848: "consumer", Delivery.SHARE: "share"}
"""Of a group's settings; under the classic protocol the client has them itself."""
ANSWER_S: Final = 10.0


def group_settings(runtime: Delivery, heartbeat_s: float, session_s: float) -> dict[str, str]:
    """Return the group's settings by name."""
    prefix = PREFIX[runtime]
    settings = {
        f"{prefix}.heartbeat.interval.ms": str(round(heartbeat_s * 1000)),
        f"{prefix}.session.timeout.ms": str(round(session_s * 1000)),
        # Since Kafka 4.3 the broker waits a second between two assignments, unless told not to.
        f"{prefix}.assignment.interval.ms": "0",
    }
    if runtime is Delivery.SHARE:
        settings["share.auto.offset.reset"] = AUTO_OFFSET_RESET
    return settings


def configure_group(connection: Connection, runtime: Delivery, heartbeat_s: float, session_s: float) -> None:
    """Set what `runtime` wants of the Payment group. Doing it again changes nothing.

    Settings that the broker does not know yet are left out. Raises ServiceError when it refuses one (below its
    minimum: group.consumer.min.heartbeat.interval.ms, group.share.min.session.timeout.ms, …) or does not answer.
    """
    wanted = group_settings(runtime, heartbeat_s, session_s)
    admin = AdminClient(connection.librdkafka(), logger=log)
    group = qualified(connection.namespace, Group.PAYMENT)
    try:
        known = _known(admin, group)
        resource = ConfigResource(ConfigResource.Type.GROUP, group)
        for name, value in wanted.items():
            if name in known:
                resource.add_incremental_config(ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET))
        for answer in admin.incremental_alter_configs([resource], request_timeout=ANSWER_S).values():
            answer.result(ANSWER_S)
    except KafkaException as refused:
        raise ServiceError(
            f"group {group} on {connection.bootstrap_servers} cannot be set up for {runtime} "
            f"({refused.args[0].str()}); raise the setting or lower the broker's minimum"
        ) from refused
    except TimeoutError as away:
        raise ServiceError(
            f"group {group}: no answer from {connection.bootstrap_servers} within {ANSWER_S:.0f} s; "
            "start Kafka, or correct TAILPACK_BOOTSTRAP_SERVERS"
        ) from away


def _known(admin: AdminClient, group: str) -> set[str]:
    asked = admin.describe_configs([ConfigResource(ConfigResource.Type.GROUP, group)], request_timeout=ANSWER_S)
    (answer,) = asked.values()
    return set(answer.result(ANSWER_S))
