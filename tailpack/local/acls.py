"""Who needs which rights on Kafka: each principal just what it does, printed for Kafka's own tool or created here."""

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
from contracts.topics import Group, ScaledGroup, Topic, qualified
from tailpack.errors import TailpackError

READ: Final = ("Read",)
WRITE: Final = ("Write",)
BOTH: Final = ("Read", "Write")
"""Each of them implies Describe."""
DEADLINE_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Right:
    """What may be done with one resource."""

    kind: ResourceType
    name: str
    operations: tuple[str, ...]
    is_prefix: bool = False


Rights = dict[str, list[Right]]
"""Role → its rights. A role is one service, under one principal."""


def of_group(namespace: str, scaled: ScaledGroup, outputs: Sequence[str] = ()) -> Rights:
    """Return the rights of an autoscaler, of the replicas that it scales, of KEDA's scaler, and of a shadow.

    outputs: topics that replicas write.
    """
    group, events = scaled.group_in(namespace), scaled.topic_in(namespace)
    plans, journal, progress = (_topic(namespace, one) for one in (Topic.PLANS, Topic.JOURNAL, Topic.PROGRESS))
    seen = [Right(ResourceType.TOPIC, events, ("Describe",)), Right(ResourceType.GROUP, group, ("Describe",))]
    reader = Right(ResourceType.GROUP, qualified(namespace, "autoscaler.reader"), ("Describe",))
    return {
        "autoscaler": [
            *seen,
            *(plans(BOTH), journal(WRITE), progress(READ)),
            reader,
            Right(ResourceType.TRANSACTIONAL_ID, f"{group}-autoscaler", WRITE),
        ],
        "replica": [
            Right(ResourceType.TOPIC, events, READ),
            *(plans(READ), progress(WRITE)),
            *(Right(ResourceType.TOPIC, one, WRITE) for one in outputs),
            Right(ResourceType.GROUP, group, READ),
            Right(ResourceType.TRANSACTIONAL_ID, f"{group}.", WRITE, is_prefix=True),
        ],
        "keda": [plans(READ), reader],
        "shadow": seen,
    }


def of_run(namespace: str) -> Rights:
    """Return the rights of the pipeline's services, of the load, and of who watches and reports."""
    named = {topic: _topic(namespace, topic) for topic in Topic}
    letters, settled = named[Topic.DEAD_LETTERS], named[Topic.PAYMENTS_SETTLED]
    outputs = [qualified(namespace, one) for one in (Topic.PAYMENTS_SETTLED, Topic.DEAD_LETTERS)]
    scaled = of_group(namespace, ScaledGroup(), outputs)

    def service(group: Group, reads: Sequence[Topic], writes: Sequence[Topic]) -> list[Right]:
        """A stage reads its own outputs back when it starts, its dead letters too."""
        rights = [named[one](READ) for one in reads if one not in writes]
        return [
            *rights,
            *(named[one](BOTH) for one in writes),
            letters(BOTH),
            Right(ResourceType.GROUP, qualified(namespace, group), READ),
        ]

    return {
        "order": service(
            Group.ORDER,
            (Topic.PAYMENTS_SETTLED, Topic.NOTIFICATIONS_SENT),
            (Topic.ORDERS_PLACED, Topic.PAYMENTS_REQUESTED, Topic.ORDERS_STATUS),
        ),
        "payment": scaled["replica"],
        "shipment": service(Group.SHIPMENT, (Topic.PAYMENTS_SETTLED,), (Topic.SHIPMENTS_SCHEDULED,)),
        "notification": service(
            Group.NOTIFICATION,
            (Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED),
            (Topic.NOTIFICATIONS_SENT,),
        ),
        **{role: scaled[role] for role in ("autoscaler", "keda", "shadow")},
        "load": [named[Topic.ORDERS_PLACED](WRITE), named[Topic.PAYMENTS_REQUESTED](WRITE), settled(READ)],
        "report": [
            *(named[one](READ) for one in Topic),
            Right(ResourceType.GROUP, qualified(namespace, "watcher"), READ),
        ],
    }


def commands(rights: Rights, users: Mapping[str, str]) -> list[str]:
    """Return a line for `kafka-acls` for each right. users: role → principal's name, where it is not the role's."""
    lines = []
    for role, right in ((role, right) for role, ones in rights.items() for right in ones):
        kind = right.kind.name.lower().replace("_", "-")
        words = ["--add", "--allow-principal", f"User:{users.get(role, role)}", f"--{kind}", right.name]
        words += [word for operation in right.operations for word in ("--operation", operation)]
        words += ["--resource-pattern-type", "prefixed"] if right.is_prefix else []
        lines.append(f"kafka-acls {shlex.join(words)}")
    return lines


def create(connection: Connection, rights: Rights, users: Mapping[str, str]) -> None:
    """Create them on the brokers; one that is there already stays. Raises TailpackError."""
    bindings = [
        AclBinding(
            right.kind,
            right.name,
            ResourcePatternType.PREFIXED if right.is_prefix else ResourcePatternType.LITERAL,
            f"User:{users.get(role, role)}",
            "*",
            AclOperation[operation.upper()],
            AclPermissionType.ALLOW,
        )
        for role, ones in rights.items()
        for right in ones
        for operation in right.operations
    ]
    try:
        admin = AdminClient(connection.librdkafka())  # named: without it, requests under way would end
        for done in admin.create_acls(bindings).values():
            done.result(DEADLINE_S)
    except (KafkaException, TimeoutError) as refused:
        why = refused.args[0].str() if isinstance(refused, KafkaException) else "no answer"
        raise TailpackError(
            f"rights could not be created on {connection.bootstrap_servers}: {why}; who creates them needs Alter on "
            "the cluster, and the brokers need an authorizer"
        ) from refused


def _topic(namespace: str, topic: Topic) -> Callable[[tuple[str, ...]], Right]:
    return partial(Right, ResourceType.TOPIC, qualified(namespace, topic))
