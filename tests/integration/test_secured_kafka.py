"""`tailpack run` on a Kafka with TLS, SASL and ACLs: every client of the project logs in, from Locust to Spark."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_run import start_run
from secured_broker import PASSWORD, SecuredKafka, secured_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300)]
SMOKE = ("--scenario", "smoke", "--duration-s", "6")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured"), prefix="smoke-") as kafka:
        yield kafka


def test_a_run_on_a_secured_kafka_has_every_effect_exactly_once(secured: SecuredKafka, tmp_path: Path) -> None:
    properties = secured.client_properties()
    live = start_run(
        tmp_path, *SMOKE, "--bootstrap-servers", secured.address, "--client-properties", str(properties)
    )
    status, result = live.ended(deadline_s=240)
    assert status == 0, live.errors
    effects = result["effects"]
    assert 0 < effects["orders"] == effects["exactly_once"]


@pytest.mark.parametrize(
    ("password", "reason"), [("wrong", "sasl.password"), (PASSWORD.upper(), "sasl.password")]
)
def test_a_wrong_password_is_one_line(secured: SecuredKafka, tmp_path: Path, password: str, reason: str) -> None:
    properties = secured.client_properties(password)
    live = start_run(
        tmp_path, *SMOKE, "--bootstrap-servers", secured.address, "--client-properties", str(properties)
    )
    status, _ = live.ended(deadline_s=45)
    assert status == 2
    (line,) = live.errors.strip().splitlines()
    assert line.startswith(f"tailpack: Kafka at {secured.address}")
    assert reason in line
