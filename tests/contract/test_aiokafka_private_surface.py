"""What services/consumer uses of aiokafka beyond its documentation. After an upgrade, this fails by name."""

import inspect
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.consumer import consumer as consumer_module
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from aiokafka.consumer.subscription_state import Subscription, SubscriptionState
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.producer.sender import SendProduceReqHandler
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.group import LeaveGroupRequest


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("owner", "name", "expected"),
    [
        (GroupCoordinator, "_do_rejoin_group", ["self", "subscription"]),
        (
            GroupCoordinator,
            "_on_join_complete",
            ["self", "generation", "member_id", "protocol", "member_assignment_bytes"],
        ),
        (GroupCoordinator, "_do_commit_offsets", ["self", "assignment", "offsets"]),
        (GroupCoordinator, "request_rejoin", ["self"]),
        (GroupCoordinator, "reset_generation", ["self"]),
        (GroupCoordinator, "ensure_coordinator_known", ["self"]),
        (SubscriptionState, "unsubscribe", ["self"]),
        (AIOKafkaClient, "send", ["self", "node_id", "request", "group"]),
        (LeaveGroupRequest, "__init__", ["self", "group", "member_id"]),
        (AbstractPartitionAssignor, "metadata", ["topics"]),
        (AbstractPartitionAssignor, "assign", ["cluster", "members"]),
        (AbstractPartitionAssignor, "on_assignment", ["assignment"]),
        (ConsumerProtocolMemberMetadata, "__init__", ["self", "args", "kwargs"]),
    ],
)
def test_a_method_we_override_or_call_has_the_parameters_we_rely_on(owner, name, expected):
    assert parameters(getattr(owner, name)) == expected


@pytest.mark.parametrize(
    "name",
    ["generation", "member_id", "group_id", "coordinator_id", "_client", "_subscription", "_coordination_task"],
)
def test_the_coordinator_has_the_attribute(name):
    assert f"self.{name} = " in inspect.getsource(inspect.getmodule(GroupCoordinator))


def test_the_consumer_makes_its_coordinator_in_start_and_keeps_its_subscription():
    source = inspect.getsource(consumer_module.AIOKafkaConsumer)
    assert "self._coordinator = GroupCoordinator(" in source
    assert "self._subscription = SubscriptionState(" in source


def test_the_coordinator_can_change_its_class():
    """__slots__ or another layout would forbid what PlanCoordinator.adopt does."""
    assert not hasattr(GroupCoordinator, "__slots__")


def test_a_subscription_tells_whether_it_is_active():
    assert isinstance(Subscription.active, property)


def test_a_leave_can_take_another_connection_than_a_join():
    assert ConnectionGroup.DEFAULT != ConnectionGroup.COORDINATION


def test_the_offset_commit_is_built_from_the_generation_of_the_moment_and_ignores_the_assignment():
    source = inspect.getsource(GroupCoordinator._do_commit_offsets)
    assert "self.generation" in source
    assert source.count("assignment") == 1, "we pass None"


def test_the_hooks_run_on_both_sides_of_the_join():
    before = inspect.getsource(GroupCoordinator._on_join_prepare)
    after = inspect.getsource(GroupCoordinator._on_join_complete)
    assert before.index("begin_reassignment()") < before.index("on_partitions_revoked")
    assert (
        after.index("assign_from_subscribed")
        < after.index("assignor.on_assignment")
        < after.index("on_partitions_assigned")
    )


def test_a_join_that_was_left_meanwhile_is_given_up():
    assert "if not self._subscription.active:" in inspect.getsource(CoordinatorGroupRebalance.perform_group_join)


def test_polls_hand_out_nothing_between_revocation_and_assignment():
    from aiokafka.consumer.fetcher import Fetcher

    source = inspect.getsource(Fetcher.fetched_records)
    assert source.index("reassignment_in_progress") < source.index("self._records.keys()")


def test_an_idempotent_producer_never_gives_up_on_a_batch():
    assert "_txn_manager is None and batch.expired()" in inspect.getsource(SendProduceReqHandler._can_retry)


def test_a_group_description_begins_with_error_name_and_state():
    built = DescribeGroupsRequest(["group"])
    assert built is not None
    from aiokafka.protocol import admin

    for version in (admin.DescribeGroupsResponse_v0, admin.DescribeGroupsResponse_v3):
        groups = dict(zip(version.SCHEMA.names, version.SCHEMA.fields, strict=True))["groups"]
        assert list(groups.array_of.names)[:3] == ["error_code", "group", "state"]


def test_user_data_survives_the_protocol():
    metadata = ConsumerProtocolMemberMetadata(0, ["topic"], b"said")
    assert ConsumerProtocolMemberMetadata.decode(metadata.encode()).user_data == b"said"
    assignment = ConsumerProtocolMemberAssignment(0, [("topic", [1, 2])], b"origin")
    decoded = ConsumerProtocolMemberAssignment.decode(assignment.encode())
    assert (decoded.assignment, decoded.user_data) == ([("topic", [1, 2])], b"origin")
