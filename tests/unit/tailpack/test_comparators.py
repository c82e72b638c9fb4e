"""The replica of a comparator: its settings, its consumer options and its reported state."""

import pytest

from contracts.connection import Connection
from contracts.progress import ReplicaState
from contracts.rebalance_protocol import RebalanceProtocol
from services.payment.comparator import Replica, consumer_options
from services.payment.replica import ReplicaSettings
from tailpack.comparators import ComparatorSettings

SETTINGS = ReplicaSettings(replica="payment-0", service_time_s=0.0)
CONNECTION = Connection(bootstrap_servers="127.0.0.1:1", namespace="run-1")


def test_the_runtime_of_our_own_consumer_is_refused():
    with pytest.raises(ValueError, match=r"runtime = 'eager': must be one of cooperative-sticky, kip848"):
        ComparatorSettings(replica="payment-0", runtime=RebalanceProtocol.EAGER)


def test_librdkafka_commits_and_stores_no_offsets_by_itself():
    options = consumer_options(CONNECTION, SETTINGS, RebalanceProtocol.KIP848)
    assert options["group.id"] == "run-1.payment"
    assert options["enable.auto.commit"] is False
    assert options["enable.auto.offset.store"] is False
    assert options["group.protocol"] == "consumer"


def test_a_replica_is_warm_until_its_first_partition_and_then_a_member():
    replica = Replica(SETTINGS)
    replica.add_partitions([])
    assert replica.report().state is ReplicaState.WARM
    replica.add_partitions([3, 1])
    assert replica.report().state is ReplicaState.MEMBER
    replica.remove_partitions([1, 3])
    assert replica.report().state is ReplicaState.MEMBER
    assert replica.report(stopping=True).state is ReplicaState.STOPPING
