"""Requests for `consumers = assigned`: which brokers lack the assignor, and the intervals of the group."""

from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from autoscaler.live.foreign.assignor import CLASS
from autoscaler.live.kafka import DEADLINE_S
from autoscaler.live.settings import AutoscalerSettings
from contracts.connection import Connection
from contracts.membership import Membership
from contracts.preflight import client_config

ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"
NOT_SET: Final = "keep their values; plans take longer: lower group.consumer.min.heartbeat.interval.ms on the brokers"
NO_ANSWER: Final = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT)


def brokers_without_assignor(connection: Connection) -> tuple[list[int], int] | None:
    """Return the brokers that do not name the assignor, and the number of brokers. None: no right to read this."""
    admin = AdminClient(client_config(connection))
    try:
        nodes = sorted(admin.list_topics(timeout=DEADLINE_S).brokers)
        asked = [[ConfigResource(ResourceType.BROKER, str(node))] for node in nodes]  # a request allows one broker
        answers = [[*admin.describe_configs(one, request_timeout=DEADLINE_S).values()] for one in asked]
        found = [one.result(DEADLINE_S).get("group.consumer.assignors") for (one,) in answers]
    except (KafkaException, TimeoutError):
        return None
    return [node for node, one in zip(nodes, found, strict=True) if CLASS not in getattr(one, "value", "")], len(nodes)


def configure_group(connection: Connection, group: str, settings: AutoscalerSettings) -> list[str]:
    """Set the intervals of the group. Return a line about those that the brokers reject. Raises TimeoutError."""
    rejected = [f"{name} ({why})" for name, why in rejected_intervals(connection, group, settings).items()]
    return [f"group {group}: {', '.join(rejected)} {NOT_SET}"] if rejected else []


def rejected_intervals(connection: Connection, group: str, settings: Membership) -> dict[str, str]:
    """Set the intervals of a KIP-848 group. Return NAME=VALUE → why the brokers reject it. Raises TimeoutError."""
    wanted = {
        ASSIGNMENT_INTERVAL: 0,  # since Kafka 4.3 the default is a second between two assignments
        "consumer.session.timeout.ms": round(settings.session_s * 1000),
        "consumer.heartbeat.interval.ms": round(settings.heartbeat_s * 1000),
    }
    admin, rejected = AdminClient(client_config(connection)), dict[str, str]()
    for name, value in wanted.items():  # one by one, so that a rejected one does not prevent the others
        entry = ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
        try:
            for done in admin.incremental_alter_configs([resource], request_timeout=DEADLINE_S).values():
                done.result(DEADLINE_S)
        except KafkaException as failed:
            if failed.args[0].code() in NO_ANSWER:
                raise TimeoutError from failed
            rejected[f"{name}={value}"] = failed.args[0].str()
    return rejected
