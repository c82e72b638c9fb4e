"""SIGTERM and SIGINT as a flag: what is under way is finished first."""

import signal
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """Whether the process has been asked to stop."""

    def __init__(self) -> None:
        self.requested = False

    def listen(self) -> "Stop":
        """Take the signals from now on. Call it from the main thread."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: self.request())
        return self

    def request(self) -> None:
        """Ask to stop."""
        self.requested = True
