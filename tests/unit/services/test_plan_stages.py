"""A stage that follows plans reads the topics of its rules only."""

import pytest

from contracts.connection import Connection
from contracts.topics import Group, Topic
from contracts.validation import InvalidSettingsError
from services.notification.replica import RULES
from services.payment.replica import ReplicaSettings
from services.plan_stage import PlanStage


@pytest.mark.parametrize("topic", ["", "mine.orders.placed", "mine.nopayments.settled"])
def test_an_unreadable_topic_is_refused_and_the_readable_ones_are_named(topic: str) -> None:
    settings = ReplicaSettings(replica="notification-0", topic=topic)
    connection = Connection(bootstrap_servers="127.0.0.1:1", namespace="run.behind")
    with pytest.raises(InvalidSettingsError, match=r"must end in shipments\.scheduled or payments\.settled"):
        PlanStage(Group.NOTIFICATION, RULES, Topic.NOTIFICATIONS_SENT, settings, connection)
