"""Reaching Kafka: security settings, patience with a deadline, quiet logs."""

import asyncio
import io
import logging
import time

import pytest
from aiokafka.errors import KafkaConnectionError

from contracts.connection import Connection
from services.consumer.connection import aiokafka_arguments, patiently, together
from services.consumer.errors import ReplicaError
from services.consumer.logs import Sparingly


def test_without_a_properties_file_the_connection_is_plain():
    arguments = aiokafka_arguments(Connection(bootstrap_servers="one:9092"))

    assert arguments["bootstrap_servers"] == "one:9092"
    assert arguments["security_protocol"] == "PLAINTEXT"
    assert "ssl_context" not in arguments


def test_sasl_over_tls_comes_from_the_properties_file(tmp_path):
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.username=me\nsasl.password=secret\n"
    )

    arguments = aiokafka_arguments(Connection(bootstrap_servers="one:9093", client_properties=str(properties)))

    assert arguments["security_protocol"] == "SASL_SSL"
    assert arguments["sasl_mechanism"] == "SCRAM-SHA-256"
    assert (arguments["sasl_plain_username"], arguments["sasl_plain_password"]) == ("me", "secret")
    assert arguments["ssl_context"].check_hostname


def test_a_certificate_that_is_not_there_is_named(tmp_path):
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\nssl.ca.location=/nowhere/ca.pem\n")

    with pytest.raises(ReplicaError, match=r"client\.properties: certificates cannot be loaded"):
        aiokafka_arguments(Connection(bootstrap_servers="one:9093", client_properties=str(properties)))


def test_a_broker_that_comes_back_in_time_is_waited_for():
    answers = [KafkaConnectionError("away"), OSError("refused"), None]

    async def attempt() -> str:
        if (answer := answers.pop(0)) is not None:
            raise answer
        return "connected"

    assert asyncio.run(patiently(attempt, "no Kafka", deadline=time.monotonic() + 10)) == "connected"


def test_one_that_stays_away_is_one_line_at_the_deadline():
    async def attempt() -> None:
        raise KafkaConnectionError("refused")

    with pytest.raises(ReplicaError, match=r"no Kafka at one:9092 \(KafkaConnectionError: refused\)"):
        asyncio.run(patiently(attempt, "no Kafka at one:9092", deadline=time.monotonic() + 0.1))


def test_of_several_attempts_the_first_error_ends_all():
    cancelled = []

    async def fails() -> None:
        raise ReplicaError("no topic")

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    with pytest.raises(ReplicaError, match="no topic"):
        asyncio.run(together(waits(), fails()))
    assert cancelled


def test_a_message_that_repeats_at_every_retry_is_shown_once_and_without_a_traceback():
    shown = io.StringIO()
    handler = logging.StreamHandler(shown)
    handler.addFilter(Sparingly())
    log = logging.getLogger("test-sparingly")
    log.propagate = False
    log.addHandler(handler)

    for node in range(5):
        log.warning("cannot reach node %d", node)
    try:
        raise ValueError("odd")
    except ValueError:
        log.exception("hook failed")

    assert shown.getvalue() == "cannot reach node 0\nhook failed: ValueError('odd')\n"
