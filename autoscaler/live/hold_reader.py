"""Reads the control topic: the pause or pin that an operator has set for the group, and its order about `act`."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from autoscaler.policies.guards.holds import Restriction
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.holds import REMOVED_US, Direction, Hold, decode_hold, hold_key
from contracts.record_reader import BEGINNING, RecordReader
from contracts.topics import ScaledGroup, Topic, qualified
from contracts.validation import DECODE_ERRORS
from contracts.waiting import WaitTimeoutError, until

READ_DEADLINE_S: Final = 10.0
NOT_READ: Final = "the control topic cannot be read yet"
BATCH: Final = 1000
PAUSED: Final = "autoscaling.keda.sh/paused"
"""Annotation of KEDA 2.19 with the value true; also with -scale-in or -scale-out, or -replicas and a number."""
TRUE, FALSE = ("true", "t", "1"), ("false", "f", "0")


class ActChangedError(Exception):
    """The setting `act` gets another value. The argument is the order; None: the configured value applies again."""


class HoldReader:
    """The newest hold and order of one group. Never waits after its creation: a thread fetches the records."""

    def __init__(
        self,
        connection: Connection,
        scaled: ScaledGroup,
        *,
        warn: Callable[[str], None] = lambda _: None,
        configured: str = "",
        refused: Callable[[Hold], str] = lambda _: "",
        clock_us: Callable[[], int] = now_us,
    ) -> None:
        """Read the topic to its end, for at most READ_DEADLINE_S. warn: called when a hold begins or ends.

        configured: value of `act` without an order. refused: returns why an order cannot be carried out, else nothing.
        """
        names = scaled.group_in(connection.namespace), scaled.topic_in(connection.namespace)
        self._is_order = {hold_key(*names, is_order=is_order): is_order for is_order in (False, True)}
        self._warn, self._clock_us = warn, clock_us
        self.annotated: Callable[[], tuple[Hold | None, str]] = lambda: (None, "")
        """Returns the hold of annotations, and why some of them are ignored."""
        self.configured, self._refused, self._refusal = configured, refused, ""
        self._newest: dict[bool, Hold | None] = {}
        """Newest pause or pin (False) and newest order (True)."""
        self.is_read = False
        """Whether the topic was read to its end once. Until then nothing may change: the group may be paused."""
        self.shown: Hold | None = None
        """The hold that applied at the last call of `current`. May be read from another thread."""
        self.order: Hold | None = None
        """The order that applied at the last call of `act`. May be read from another thread."""
        self._unreadable: dict[bool, str] = {}
        """Why the newest record of each kind was ignored; empty: it is valid."""
        place = qualified(connection.namespace, Topic.HOLDS), 0
        self._records = RecordReader(connection, {place: BEGINNING}, wait_ms=500)
        with suppress(WaitTimeoutError):
            until(self._read_on, READ_DEADLINE_S, "the end of the topic", poll_s=0)

    def __str__(self) -> str:
        """Return the order and the hold that apply, in words; empty: none."""
        return "; ".join(str(one) for one in (self.order, self.shown) if one)

    @property
    def problem(self) -> str:
        """Why the hold is not known, or the newest record was ignored; empty: neither."""
        unread = "" if self.is_read else f"{NOT_READ}: {self._records.error or 'its broker is silent'}"
        return "; ".join(filter(None, (unread, *self._unreadable.values(), self._refusal, self.annotated()[1])))

    def current(self) -> Hold | None:
        """Return the hold that applies now; None: there is none, or it is not known yet."""
        self._take(0)
        hold = stricter(self._active(is_order=False), self.annotated()[0])
        if hold != self.shown:
            self._warn(str(hold) if hold else "no longer paused or pinned")
            self.shown = hold
        return hold

    def act(self, present: str) -> str:
        """Return the value that `act` shall have now. Until the topic was read, it stays at `present`."""
        self._take(0)
        order = self._active(is_order=True)
        why = self._refused(order) if order and order.direction != self.configured else ""
        self._refusal = f"{order} is not carried out: {why}" * bool(why)
        self.order = order if order and order.direction != self.configured and not why else None
        return (self.order.direction.value if self.order else self.configured) if self.is_read else present

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

    def _active(self, *, is_order: bool) -> Hold | None:
        newest = self._newest.get(is_order) if self.is_read else None
        return newest if newest is not None and newest.is_active(self._clock_us()) else None

    def _read_on(self) -> bool:
        self._take(0.05)
        return self.is_read

    def _take(self, timeout_s: float) -> None:
        for record in self._records.read(BATCH, timeout_s):
            if (kind := self._is_order.get(record.key)) is None:
                continue
            try:
                self._newest[kind] = decode_hold(record.value, is_order=kind) if record.value else None
                self._unreadable[kind] = ""
            except DECODE_ERRORS as error:  # the earlier hold stays: a damaged record must not end a pause
                self._unreadable[kind] = f"skipped offset {record.offset} of the control topic: {error}"
        self.is_read = self.is_read or self._records.is_at_end()


def stricter(one: Hold | None, other: Hold | None) -> Hold | None:
    """Return the hold that prevents more, with both in its text. A pause of both directions pauses everything."""
    if one is None or other is None:
        return one or other
    order = (Direction.ALL, Direction.PIN, Direction.IN, Direction.OUT)
    first, second = sorted((one, other), key=lambda hold: order.index(hold.direction))
    is_both = (first.direction, second.direction) == (Direction.IN, Direction.OUT)
    direction = Direction.ALL if is_both else first.direction
    return msgspec.structs.replace(first, direction=direction, reason=f"{first.reason}; also {second}".lstrip("; "))


def annotated_hold(annotations: Mapping[str, str], least: int, most: int) -> tuple[Hold | None, str]:
    """Return the hold that annotations of a Deployment ask for, and why some of them are ignored; empty: none is.

    least, most: limits of the number of replicas; most is 0 without a limit.
    """
    hold, problems = None, []
    kinds = {"-replicas": Direction.PIN, "": Direction.ALL, "-scale-in": Direction.IN, "-scale-out": Direction.OUT}
    for suffix, direction in kinds.items():
        value, is_pin = annotations.get(name := PAUSED + suffix), direction is Direction.PIN
        if value is None or (not is_pin and value.lower() in FALSE):
            continue
        count = int(value) if re.fullmatch(r"[0-9]{1,6}", value) else -1
        if is_pin and not least <= count <= (most or count):
            problems.append(f"{name}: {value!r} must be a number from {least} to {most or '…'}")
        elif not is_pin and value.lower() not in TRUE:
            problems.append(f"{name}: {value!r} must be true or false")
        elif not (direction is Direction.ALL and hold):  # KEDA, too, pins if both are given
            by = f"annotation {name}"
            own = Hold(at_us=0, direction=direction, until_us=REMOVED_US, replicas=max(0, count), by=by)
            hold = stricter(hold, own)
    return hold, "; ".join(problems)
