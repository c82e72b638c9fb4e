"""`tailpack run` on a Kafka with TLS, SASL and ACLs: every client of the project logs in, from Locust to Spark."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_run import LiveRun, start_run
from secured_broker import SecuredKafka, secured_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.long]
SMOKE = ("smoke", "--duration", "6s")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured"), prefix="smoke-") as kafka:
        yield kafka


def run(secured: SecuredKafka, out: Path, properties: Path) -> LiveRun:
    return start_run(out, *SMOKE, "--bootstrap-servers", secured.address, "--client-properties", str(properties))


def only_line(live: LiveRun) -> str:
    """Return what a run that was refused says."""
    status, _ = live.ended()
    assert status == 2, live.errors
    (line,) = live.errors.strip().splitlines()
    return line


def test_a_run_on_a_secured_kafka_has_every_effect_exactly_once(secured: SecuredKafka, tmp_path: Path) -> None:
    live = run(secured, tmp_path, secured.client_properties())
    status, result = live.ended(deadline_s=480)
    assert status == 0, live.errors
    effects = result["effects"]
    assert 0 < effects["orders"] == effects["exactly_once"]


def test_a_wrong_password_prints_one_line(secured: SecuredKafka, tmp_path: Path) -> None:
    properties = secured.client_properties("wrong")
    line = only_line(run(secured, tmp_path, properties))
    assert line.startswith(f"tailpack: Kafka at {secured.address} rejects the client")
    assert line.endswith(f"correct sasl.mechanism, sasl.username or sasl.password in {properties}")
