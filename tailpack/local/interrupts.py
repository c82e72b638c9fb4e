"""Put Ctrl-C off while something must not be cut in half: a child that was born but not yet written down."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold signals that ask to stop until the block is done; then the first of them is delivered.

    Main thread only. Children started inside get the default handlers, as after any exec.
    """
    held: list[int] = []
    before = {number: signal.signal(number, lambda number, _: held.append(number)) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(signal.Signals(held[0]))
