"""Reads the control topic: the pause or pin that an operator has set for the group."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from autoscaler.policies.guards.holds import Restriction
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.holds import Direction, Hold, decode_hold, stricter
from contracts.plan import plan_key
from contracts.record_reader import BEGINNING, RecordReader
from contracts.topics import ScaledGroup, Topic, qualified
from contracts.validation import DECODE_ERRORS
from contracts.waiting import WaitTimeoutError, until

READ_DEADLINE_S: Final = 10.0
NOT_READ: Final = "the control topic cannot be read yet"
BATCH: Final = 1000


class HoldReader:
    """The newest hold of one group. Never waits after its creation: a thread fetches the records."""

    def __init__(
        self,
        connection: Connection,
        scaled: ScaledGroup,
        *,
        warn: Callable[[str], None] = lambda _: None,
        annotated: Callable[[], tuple[Hold | None, str]] = lambda: (None, ""),
        clock_us: Callable[[], int] = now_us,
    ) -> None:
        """Read the topic to its end, for at most READ_DEADLINE_S. warn: called when a hold begins or ends.

        annotated: returns the hold of annotations, and why some of them are ignored.
        """
        namespace = connection.namespace
        self._key = plan_key(scaled.group_in(namespace), scaled.topic_in(namespace))
        self._warn, self._annotated, self._clock_us = warn, annotated, clock_us
        self._newest: Hold | None = None
        self.is_read = False
        """Whether the topic was read to its end once. Until then nothing may change: the group may be paused."""
        self.shown: Hold | None = None
        """The hold that applied at the last call of `current`. May be read from another thread."""
        self._unreadable = ""
        """Why the newest record of the group was ignored; empty: it is valid."""
        self._records = RecordReader(connection, {(qualified(namespace, Topic.HOLDS), 0): BEGINNING}, wait_ms=500)
        with suppress(WaitTimeoutError):
            until(self._read_on, READ_DEADLINE_S, "the end of the topic", poll_s=0)

    @property
    def problem(self) -> str:
        """Why the hold is not known, or the newest record was ignored; empty: neither."""
        why = self._unreadable if self.is_read else f"{NOT_READ}: {self._records.error or 'its broker is silent'}"
        return "; ".join(filter(None, (why, self._annotated()[1])))

    def current(self) -> Hold | None:
        """Return the hold that applies now; None: there is none, or it is not known yet."""
        self._take(0)
        newest = self._newest if self.is_read else None
        active = newest if newest is not None and newest.is_active(self._clock_us()) else None
        hold = stricter(active, self._annotated()[0])
        if hold != self.shown:
            self._warn(str(hold) if hold else "no longer paused or pinned")
            self.shown = hold
        return hold

    def restriction(self) -> Restriction | None:
        """Return the present hold in the form of the guard. Until it is known, everything stays as it is."""
        hold = self.current()
        if not self.is_read:
            return Restriction(False, False, False, 0, NOT_READ)
        if hold is None:
            return None
        is_pin = hold.direction is Direction.PIN
        return Restriction(
            may_grow=hold.direction is Direction.IN,
            may_shrink=hold.direction is Direction.OUT,
            may_move=hold.direction is not Direction.ALL,
            pinned=max(1, hold.replicas) if is_pin else 0,
            why=str(hold),
        )

    def close(self) -> None:
        """Disconnect from the brokers."""
        self._records.close()

    def _read_on(self) -> bool:
        self._take(0.05)
        return self.is_read

    def _take(self, timeout_s: float) -> None:
        for record in self._records.read(BATCH, timeout_s):
            if record.key != self._key:
                continue
            try:
                self._newest, self._unreadable = (decode_hold(record.value) if record.value else None), ""
            except DECODE_ERRORS as error:  # the earlier hold stays: a damaged record must not end a pause
                self._unreadable = f"skipped offset {record.offset} of the control topic: {error}"
        self.is_read = self.is_read or self._records.is_at_end()
