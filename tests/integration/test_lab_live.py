"""The live run of a lesson on a real Kafka: a replica dies, the broker stands still, and the figures show both."""

from pathlib import Path

import pytest

from tailpack import lab


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_live_run_has_the_death_of_a_replica_and_the_events_of_a_frozen_broker(tmp_path: Path) -> None:
    run = lab.live("smoke", kill="payment-0@3", freeze="9+2", out=str(tmp_path))
    assert run.result.world == "live"
    assert run.result.effects_complete
    (death,) = (one for one in run.result.failures if one.replica == "payment-0")
    assert 3 <= death.at_s < 9
    frozen = (run.events["intended_s"] >= 9) & (run.events["intended_s"] < 10)
    assert run.events["latency_s"][frozen].max() > 0.9, "an event waited until the broker went on"
    assert run.timeline()._repr_png_()
