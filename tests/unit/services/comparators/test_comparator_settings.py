"""What a comparator replica is told, and what it says when it is told wrongly."""

import os
import subprocess
import sys

import pytest

from contracts.connection import Connection
from contracts.delivery import RUNTIMES, Delivery
from services.comparators import librdkafka
from services.comparators.__main__ import MODULES, ComparatorSettings
from services.comparators.groups import group_settings
from services.payment.settings import ReplicaSettings

SETTINGS = ReplicaSettings(replica="payment-0")
CONNECTION = Connection(bootstrap_servers="127.0.0.1:1", namespace="run-1")


def test_our_own_consumer_is_no_comparator():
    with pytest.raises(ValueError, match=r"runtime = 'eager': .* known are cooperative-sticky, kip848, share, faust"):
        ComparatorSettings(replica="payment-0", runtime=Delivery.EAGER)


def test_every_runtime_has_its_module():
    assert set(MODULES) == set(RUNTIMES)


def test_a_process_with_bad_settings_says_each_problem_on_its_line_and_exits_with_2():
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
    environ["TAILPACK_SERVICE_TIME_S"] = "soon"

    done = subprocess.run(
        [sys.executable, "-m", "services.comparators"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 2
    assert {line.split(" ")[0].rstrip(":") for line in done.stderr.splitlines()} == {
        "TAILPACK_BOOTSTRAP_SERVERS",
        "TAILPACK_RUNTIME",
        "TAILPACK_REPLICA",
        "TAILPACK_SERVICE_TIME_S",
    }


def test_heartbeat_and_session_are_the_groups_under_the_new_protocols():
    assert group_settings(Delivery.KIP848, heartbeat_s=0.1, session_s=6) == {
        "consumer.heartbeat.interval.ms": "100",
        "consumer.session.timeout.ms": "6000",
        "consumer.assignment.interval.ms": "0",
    }
    assert group_settings(Delivery.SHARE, heartbeat_s=3, session_s=9.5) == {
        "share.heartbeat.interval.ms": "3000",
        "share.session.timeout.ms": "9500",
        "share.assignment.interval.ms": "0",
        "share.auto.offset.reset": "earliest",
    }


def test_nothing_is_committed_or_stored_behind_the_replicas_back():
    options = librdkafka.group_consumer(CONNECTION, SETTINGS)

    assert options["group.id"] == "run-1.payment"
    assert options["enable.auto.commit"] is False
    assert options["enable.auto.offset.store"] is False
    assert librdkafka.producer(CONNECTION, SETTINGS)["enable.idempotence"] is True
