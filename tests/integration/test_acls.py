"""The rights that `tailpack topics create` gives, on a broker with an authorizer: a replica cannot write plans."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from secured_broker import USER, secured_kafka

from contracts.connection import Connection
from contracts.topics import ScaledGroup
from tailpack.local import acls, topics

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120), pytest.mark.long]


def test_a_replica_reports_and_cannot_write_plans_or_the_journal(tmp_path: Path) -> None:
    scaled = ScaledGroup(topic="names", group="greeters")
    with secured_kafka(tmp_path / "kafka", prefix="elsewhere-") as kafka:
        administrator = Connection(bootstrap_servers=kafka.plain, namespace="greeters")
        topics.create_control_topics(administrator, scaled, 2)
        replica = {"replica": acls.of_group("greeters", scaled)["replica"]}
        acls.create(administrator, replica, {"replica": USER})
        own = Connection(bootstrap_servers=kafka.address, client_properties=str(kafka.client_properties()))
        told: dict[str, KafkaError | None] = {}
        producer = Producer(own.librdkafka() | {"message.timeout.ms": 20_000})
        for name in ("plans", "journal", "progress"):
            producer.produce(
                f"greeters.autoscaler.{name}", b"x", on_delivery=lambda error, _, name=name: told.update({name: error})
            )
        assert producer.flush(60) == 0
    refused = {name: error is not None and error.code() for name, error in told.items()}
    no = KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert refused == {"plans": no, "journal": no, "progress": False}
