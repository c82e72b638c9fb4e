"""Bursts and even streams, told apart by end offsets that were sampled between ticks."""

import numpy as np

from autoscaler.live.loads import SLOT_S, ArrivalSamples


def sampled(events_at, readings, partitions=1):
    """events_at: times of the events of partition 0; the others get none."""
    samples = ArrivalSamples()
    for at_s in readings:
        if samples.due(at_s):
            samples.note(at_s, [sum(event <= at_s for event in events_at), *[0] * (partitions - 1)])
    return samples


def every(step_s, start_s, end_s):
    return [start_s + step_s * i for i in range(round((end_s - start_s) / step_s))]


def test_a_burst_at_a_whole_second_lies_in_one_slot_whatever_the_phase_of_the_readings():
    burst = [100.0 + 0.0002 * i for i in range(100)]  # 20 ms long
    for phase_s in np.linspace(0, 0.02, 7):
        samples = sampled(burst, every(0.02, 98.5 + phase_s, 100.1))
        samples.note(100.1 + phase_s, [100])
        counts = samples.recent(100.1 + phase_s, 1.0).counts[:, 0]
        assert counts.max() == counts.sum() == 100
        assert counts[-1] == 100  # its slot ends at 100.05; the next one has not ended yet


def test_an_even_stream_fills_all_slots_alike():
    stream = every(0.01, 98.0, 101.0)
    samples = sampled(stream, every(0.02, 98.5, 100.1))
    samples.note(100.1, [sum(event <= 100.1 for event in stream)])
    counts = samples.recent(100.1, 1.0).counts[:, 0]
    assert len(counts) == 10
    assert counts[:-1].tolist() == [10] * 9 or (abs(counts[:-1] - 10) <= 2).all()
    assert 95 <= counts.sum() <= 106


def test_events_between_two_readings_far_apart_count_for_the_later_one():
    samples = ArrivalSamples()
    samples.note(99.0, [0])
    samples.note(99.46, [0])
    samples.note(99.96, [50])  # nothing was read for half a second
    samples.note(100.1, [50])
    counts = samples.recent(100.1, 1.0).counts[:, 0]
    assert counts.tolist() == [0] * 8 + [50, 0]


def test_nothing_is_said_before_the_readings_reach_back_over_the_interval():
    samples = ArrivalSamples()
    assert samples.recent(100.1, 1.0) is None
    samples.note(99.5, [0])
    samples.note(100.1, [10])
    assert samples.recent(100.1, 1.0) is None
    assert samples.recent(100.1, 0.5) is not None


def test_a_topic_that_grew_or_was_made_anew_starts_the_picture_again():
    for fresh in ([5, 0], [1]):
        samples = ArrivalSamples()
        for tenth in range(15):
            samples.note(98.5 + SLOT_S * tenth, [5])
        samples.note(100.1, fresh)
        assert samples.recent(100.1, 1.0) is None
