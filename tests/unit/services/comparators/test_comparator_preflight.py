"""A replica that cannot start says so in one line, and one that is told to stop does not wait for Kafka."""

import pytest

from contracts.connection import Connection
from services.common.errors import ServiceError
from services.comparators import preflight
from services.comparators.stop import Stop

NOWHERE = Connection(bootstrap_servers="127.0.0.1:1", namespace="run-1")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(preflight, "ATTEMPT_S", 0.1)


@pytest.mark.usefixtures("quick")
def test_an_absent_kafka_is_reported_at_the_deadline_with_its_address():
    with pytest.raises(ServiceError) as absent:
        preflight.check(NOWHERE, 6, Stop(), deadline_s=0.3)

    line = str(absent.value)
    assert line.startswith("Kafka cannot be reached at 127.0.0.1:1 ")
    assert "TAILPACK_BOOTSTRAP_SERVERS" in line
    assert "\n" not in line


@pytest.mark.usefixtures("quick")
def test_a_replica_that_is_told_to_stop_stops_waiting_for_kafka():
    stop = Stop()
    stop.request()

    preflight.check(NOWHERE, 6, stop, deadline_s=30.0)
