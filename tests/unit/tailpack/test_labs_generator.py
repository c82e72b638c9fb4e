"""The generator of the experiments: when events are intended, and what it says it sent."""

import numpy as np

from tailpack.labs.generator import Sent, offsets_us


def sent(*, refused: tuple[int, ...] = ()) -> Sent:
    return Sent(
        started_us=1_000_000,
        rate=150.0,
        sent=6,
        refused=refused,
        lateness_p50_us=100,
        lateness_p99_us=900,
        lateness_max_us=2000,
    )


def test_events_are_evenly_spaced_and_none_shares_its_time() -> None:
    offsets = offsets_us(150.0, 450)
    assert offsets[0] == 0
    assert offsets[150] == 1_000_000
    assert set(np.diff(offsets).tolist()) == {6666, 6667}


def test_events_that_the_broker_refused_are_not_counted_as_sent() -> None:
    everything = sent().acknowledged_us()
    assert everything.tolist() == [1_000_000, 1_006_666, 1_013_333, 1_020_000, 1_026_666, 1_033_333]
    assert sent(refused=(1, 5)).acknowledged_us().tolist() == np.delete(everything, [1, 5]).tolist()
