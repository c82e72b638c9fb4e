"""The pacer with a simulated clock sends on time, never early, and records lateness."""

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loadgen.orders import Event, Record
from loadgen.pacing import SHORTEST_PAUSE_S, Pacer

START_US = 5_000_000


class SimulatedClock:
    """A clock that only moves when the pacer pauses or sends. It records the times of sends and preparations."""

    def __init__(self, *, send_us: int = 0) -> None:
        self.now_us = START_US - 1_000_000
        self.send_us = send_us
        self.sent_at: list[int] = []
        self.prepared_at: list[int] = []
        self.pauses: list[float] = []

    def pause(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        self.now_us += max(round(pause_s * 1e6), 1)

    def send(self, record: Record) -> None:
        self.sent_at.append(int(record.value))
        self.now_us += self.send_us

    def source(self, total: int) -> Iterator[Event]:
        for _ in range(total):
            self.prepared_at.append(self.now_us)
            yield lambda placed_us: Record(b"", str(placed_us).encode(), [], 0)

    def pacer(self, offsets: list[int]) -> Pacer:
        return Pacer(
            np.array(offsets, dtype=np.int64),
            self.source(len(offsets)),
            started_us=START_US,
            send=self.send,
            now_us=lambda: self.now_us,
            pause=self.pause,
        )


@given(st.lists(st.integers(0, 10_000_000), max_size=60).map(sorted))
def test_without_load_every_event_is_sent_at_its_intended_time(offsets: list[int]) -> None:
    clock = SimulatedClock()
    pacer = clock.pacer(offsets)
    pacer.run()
    assert pacer.sent == len(offsets)
    late_us = np.array(clock.sent_at, dtype=np.int64) - START_US - np.array(offsets, dtype=np.int64)
    assert late_us.tolist() == pacer.lateness_us.tolist()
    assert (late_us >= 0).all()
    assert (late_us <= SHORTEST_PAUSE_S * 1e6).all()


def test_a_burst_is_prepared_before_its_time() -> None:
    clock = SimulatedClock(send_us=10)
    pacer = clock.pacer([1_000_000] * 350)
    pacer.run()
    assert max(clock.prepared_at) < START_US + 1_000_000
    assert pacer.lateness_us.max() <= 350 * 10 + 1


def test_slow_sends_delay_events_but_do_not_move_the_schedule() -> None:
    clock = SimulatedClock(send_us=1_000)
    pacer = clock.pacer([0] * 100 + [1_000_000])
    pacer.run()
    assert pacer.lateness_us[:3].tolist() == [0, 1_000, 2_000]
    assert pacer.lateness_us[-1] == 0
