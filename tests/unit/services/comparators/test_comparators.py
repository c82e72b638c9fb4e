"""A comparator's replica: its settings, the work of `services.payment`, and what it tells of itself while it waits."""

import os
import subprocess
import sys

import pytest

from contracts.connection import Connection
from contracts.delivery import Delivery
from contracts.progress import ReplicaState, ServiceTimes
from services.comparators.__main__ import ComparatorSettings
from services.comparators.client import consumer_options
from services.comparators.replica import Replica
from services.consumer import Event
from services.payment.replica import ReplicaSettings

SETTINGS = ReplicaSettings(replica="payment-0", service_time_s=0.0)
CONNECTION = Connection(bootstrap_servers="127.0.0.1:1", namespace="run-1")


def test_our_own_consumer_is_no_comparator():
    with pytest.raises(ValueError, match=r"runtime = 'eager': must be one of cooperative-sticky, kip848"):
        ComparatorSettings(replica="payment-0", runtime=Delivery.EAGER)


def test_a_process_with_bad_settings_says_each_problem_on_its_line_and_exits_with_2():
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
    environ["TAILPACK_SERVICE_TIME_S"] = "soon"
    command = [sys.executable, "-m", "services.comparators"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    named = {
        line.removeprefix("payment: ").split(" ")[0].rstrip(":").removeprefix("TAILPACK_")
        for line in done.stderr.splitlines()
    }
    assert named == {"BOOTSTRAP_SERVERS", "RUNTIME", "REPLICA", "SERVICE_TIME_S"}


def test_nothing_is_committed_or_stored_behind_the_replicas_back():
    options = consumer_options(CONNECTION, SETTINGS, Delivery.KIP848)
    assert options["group.id"] == "run-1.payment"
    assert options["enable.auto.commit"] is False
    assert options["enable.auto.offset.store"] is False
    assert options["group.protocol"] == "consumer"


def test_a_replica_is_warm_until_its_first_partition_and_a_member_from_then_on():
    replica = Replica(SETTINGS)
    replica.taken([])
    assert replica.report().state is ReplicaState.WARM
    replica.taken([3, 1])
    assert replica.report().state is ReplicaState.MEMBER
    replica.given_up([1, 3])
    assert replica.report().state is ReplicaState.MEMBER
    replica.stop()
    assert replica.report().state is ReplicaState.STOPPING


def served(replica: Replica, partition: int, offset: int) -> None:
    replica.begin(b"order", idle=True)
    replica.finish(Event("run.payments.requested", partition, offset, b"k", None, (), 0, received_us=0, epoch=0))


def test_a_report_has_the_partitions_with_their_positions_and_the_service_times_since_the_last_one():
    replica = Replica(SETTINGS)
    replica.taken([3, 1])
    served(replica, 1, 41)
    replica.taken([2])
    served(replica, 2, 7)
    replica.given_up([1])
    report = replica.report()
    assert (report.partitions, report.positions, report.processed) == ((2, 3), {2: 8}, 2)
    assert (report.epoch, report.assigned_epoch) == (0, 0), "there is no plan"
    assert report.service.events == 2
    assert replica.report().service == ServiceTimes()
