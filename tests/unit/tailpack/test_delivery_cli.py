"""What a runtime's name asks of a scenario."""

import pytest

from bench.scenario import load_scenario
from tailpack.delivery_cli import delivered_by


@pytest.mark.parametrize("runtime", ["incremental", "eager"])
def test_deliveries_of_our_own_replica_are_settings_of_it(runtime: str) -> None:
    payment = load_scenario("w1", delivered_by(runtime)).payment

    assert (payment.delivery, payment.runtime) == (runtime, "")


def test_another_runtime_takes_the_replicas_place() -> None:
    assert load_scenario("w1", delivered_by("cooperative-sticky")).payment.runtime == "cooperative-sticky"
