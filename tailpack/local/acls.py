"""Print the minimal rights (ACLs) of each service as commands of kafka-acls, or create them."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from contracts.connection import Connection
from contracts.topics import CONTROL, Group, ScaledGroup, Topic, qualified
from tailpack.errors import TailpackError

READ: Final = ("Read",)
WRITE: Final = ("Write",)
BOTH: Final = ("Read", "Write")
"""In Kafka, both operations include Describe."""
DEADLINE_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Right:
    """The operations that a principal may perform on one resource."""

    kind: ResourceType
    name: str
    operations: tuple[str, ...]
    is_prefix: bool = False


Rights = dict[str, list[Right]]
"""Role → its rights. A role is a service with its own principal."""


def of_group(namespace: str, scaled: ScaledGroup, outputs: Sequence[str] = (), *, consumers: str = "ours") -> Rights:
    """Return the rights of an autoscaler, the replicas that it scales, KEDA's scaler, a shadow, and an operator.

    outputs: topics that the replicas write. consumers: setting of the autoscaler.
    """
    group, events = scaled.group_in(namespace), scaled.topic_in(namespace)
    plans, journal, progress, holds = (_topic(namespace, topic) for topic in CONTROL)
    observed = [Right(ResourceType.TOPIC, events, ("Describe",)), Right(ResourceType.GROUP, group, ("Describe",))]
    reader = Right(ResourceType.GROUP, qualified(namespace, "autoscaler.reader"), ("Describe",))
    named = Right(ResourceType.TOPIC, "tailpack-plan-", ("Describe",), is_prefix=True)
    planner = [Right(ResourceType.GROUP, group, ("Read", "Alter_Configs")), named]
    return {
        "autoscaler": [
            *([Right(ResourceType.GROUP, group, READ)] if consumers == "led" else []),
            *(planner if consumers in ("assigned", "auto") else []),
            *(*observed, plans(BOTH), journal(WRITE), progress(READ), holds(READ), reader),
            Right(ResourceType.TRANSACTIONAL_ID, f"{group}-autoscaler", WRITE),
        ],
        "replica": [
            Right(ResourceType.TOPIC, events, READ),
            *(plans(READ), progress(WRITE)),
            *(Right(ResourceType.TOPIC, output, WRITE) for output in outputs),
            Right(ResourceType.GROUP, group, READ),
            Right(ResourceType.TRANSACTIONAL_ID, f"{group}.", WRITE, is_prefix=True),
        ],
        "keda": [plans(READ), reader],
        "shadow": observed,
        "operator": [holds(BOTH), plans(READ)],
    }


def of_run(namespace: str) -> Rights:
    """Return the rights of the pipeline's services, the load, the live view and the report."""
    named = {topic: _topic(namespace, topic) for topic in Topic}
    outputs = [qualified(namespace, topic) for topic in (Topic.PAYMENTS_SETTLED, Topic.DEAD_LETTERS)]
    scaled = of_group(namespace, ScaledGroup(), outputs)

    def service(group: Group, reads: Sequence[Topic], *writes: Topic) -> list[Right]:
        """Return the rights of a stage. At its start, a stage reads its own earlier outputs and dead letters."""
        rights = [named[read](READ) for read in reads] + [named[topic](BOTH) for topic in (*writes, Topic.DEAD_LETTERS)]
        return [*rights, Right(ResourceType.GROUP, qualified(namespace, group), READ)]

    settled, scheduled, sent = Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT
    order = (Topic.ORDERS_PLACED, Topic.PAYMENTS_REQUESTED, Topic.ORDERS_STATUS)
    watcher = Right(ResourceType.GROUP, qualified(namespace, "watcher"), READ)
    return {
        "order": service(Group.ORDER, (settled, sent), *order),
        "payment": scaled["replica"],
        "shipment": service(Group.SHIPMENT, (settled,), scheduled),
        "notification": service(Group.NOTIFICATION, (settled, scheduled), sent),
        **{role: scaled[role] for role in ("autoscaler", "keda", "shadow", "operator")},
        "load": [named[Topic.ORDERS_PLACED](WRITE), named[Topic.PAYMENTS_REQUESTED](WRITE), named[settled](READ)],
        "report": [*(named[topic](READ) for topic in Topic), watcher],
    }


def commands(rights: Rights, users: Mapping[str, str]) -> list[str]:
    """Return a `kafka-acls` command for each right. users: role → name of its principal; default: the role."""
    lines = []
    for role, right in ((role, right) for role, granted in rights.items() for right in granted):
        kind = right.kind.name.lower().replace("_", "-")
        words = ["--add", "--allow-principal", f"User:{users.get(role, role)}", f"--{kind}", right.name]
        words += [word for operation in right.operations for word in ("--operation", operation.replace("_", ""))]
        words += ["--resource-pattern-type", "prefixed"] if right.is_prefix else []
        lines.append(f"kafka-acls {shlex.join(words)}")
    return lines


def create(connection: Connection, rights: Rights, users: Mapping[str, str]) -> None:
    """Create the rights on the brokers. Existing rights remain. Raises TailpackError."""
    bindings = []
    for role, right in ((role, right) for role, granted in rights.items() for right in granted):
        pattern = ResourcePatternType.PREFIXED if right.is_prefix else ResourcePatternType.LITERAL
        user = (f"User:{users.get(role, role)}", "*")
        allowed = [AclOperation[operation.upper()] for operation in right.operations]
        bindings += [
            AclBinding(right.kind, right.name, pattern, *user, action, AclPermissionType.ALLOW) for action in allowed
        ]
    try:
        admin = AdminClient(connection.librdkafka())  # a variable keeps it alive until the requests are answered
        for done in admin.create_acls(bindings).values():
            done.result(DEADLINE_S)
    except (KafkaException, TimeoutError) as error:
        why = error.args[0].str() if isinstance(error, KafkaException) else "no answer"
        needs = "the user who creates them needs Alter on the cluster, and the brokers need an authorizer"
        where = connection.bootstrap_servers
        raise TailpackError(f"rights could not be created on {where}: {why}; {needs}") from error


def _topic(namespace: str, topic: Topic) -> Callable[[tuple[str, ...]], Right]:
    return partial(Right, ResourceType.TOPIC, qualified(namespace, topic))
