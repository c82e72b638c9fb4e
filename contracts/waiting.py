"""Waits: for a condition by polling, with an error at the deadline that names the condition; and for the end."""

import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class WaitTimeoutError(TimeoutError):
    """The condition did not become true within the deadline."""


def until(condition: Callable[[], T], within_s: float, what: str, poll_s: float = 0.05) -> T:
    """Return the first true value of `condition`, checked at once and then every `poll_s` seconds.

    poll_s: 0 if `condition` itself waits. Raises WaitTimeoutError, which names `what`, after `within_s` seconds.
    """
    deadline_s = time.monotonic() + within_s
    while not (found := condition()):
        if time.monotonic() >= deadline_s:
            raise WaitTimeoutError(f"timed out after {within_s:g} s; waited for: {what}")
        if poll_s:
            time.sleep(poll_s)
    return found


class Stop:
    """Set once, by a thread or a signal handler. A handler that sets a threading.Event may wait for its own thread."""

    interrupts = False  # whether a signal handler shall also raise KeyboardInterrupt

    def __init__(self) -> None:
        self._is_set, self._wakes = False, SimpleQueue[None]()

    def set(self) -> None:
        """End all waiting, for ever."""
        self._is_set = True
        self._wakes.put(None)

    def is_set(self) -> bool:
        """Return whether `set` was called."""
        return self._is_set

    def wait(self, timeout_s: float) -> bool:
        """Wait until `set` is called, `timeout_s` seconds at most. Return whether it was called."""
        if not self._is_set:
            with suppress(Empty):
                self._wakes.get(timeout=timeout_s)
                self._wakes.put(None)  # for other threads
        return self._is_set
