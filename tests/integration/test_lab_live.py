"""A lesson's live run on a real Kafka: a replica dies, the broker stands still, and the pictures show both."""

from pathlib import Path

import pytest

from tailpack import lab

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


def test_a_live_run_shows_the_death_of_a_replica_and_a_broker_that_stands_still(tmp_path: Path) -> None:
    run = lab.live("smoke", kill="payment-0@3", freeze="9+2", out=str(tmp_path))
    (failure,) = (one for one in run.result.failures if one.replica == "payment-0")
    assert 3 <= failure.at_s < 9
    assert run.result.world == "live"
    assert run.result.effects_complete
    late = run.events["intended_s"][run.events["latency_s"] > 1]
    assert len(late)
    assert any(8 <= at_s <= 11 for at_s in late), "events that were sent while the broker stood still"
    assert run.timeline()._repr_png_()
