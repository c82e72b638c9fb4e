"""Waits for a condition by polling. At the deadline it raises an error that names the condition."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
POLL_S: Final = 0.05


class WaitTimeoutError(TimeoutError):
    """The condition did not become true within the deadline."""


def until(condition: Callable[[], T], within_s: float, what: str, poll_s: float = POLL_S) -> T:
    """Return the first true value of `condition`, checked at once and then every `poll_s` seconds.

    poll_s: 0 if `condition` itself waits. Raises WaitTimeoutError, which names `what`, after `within_s` seconds.
    """
    deadline_s = time.monotonic() + within_s
    while not (found := condition()):
        if time.monotonic() >= deadline_s:
            raise WaitTimeoutError(f"timed out after {within_s:g} s; waited for: {what}")
        time.sleep(poll_s)
    return found
