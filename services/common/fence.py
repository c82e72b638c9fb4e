"""Refuses what a replica of Payment writes that has lost its partition without knowing it: a zombie's output.

Each record tells where its event lay and the token of who served it. Who takes a partition serves everything from where
it begins, in order. So a record of an older token is a repeat if the same newer token was seen at an offset not above
it and at one not below it: the newer owner has served that event too. Any other is let through, above all one from
before the newer owner began, which the old owner had committed. Nothing that was not seen is ever refused, also when
the group's generations start again: what is judged wrongly then is a repeat all the same.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from contracts.events import PaymentSettled, Timeline
from services.common.records import Decide, Effect, Incoming, Refusal, decoder

log = logging.getLogger(__name__)


MAX_OWNERS_PER_PARTITION: Final = 16
"""Owners of a partition that are remembered, those seen first forgotten first. A zombie wakes within a few."""
MAX_PARTITIONS: Final = 50_000  # partitions that are remembered; some 30 MB at worst
REFUSALS_PER_LOG_LINE: Final = 1000  # refusals from one to the next that is logged


class _Written(msgspec.Struct):
    timeline: Timeline
    accepted: bool = False


_written: Final = msgspec.json.Decoder(_Written)


class _OwnerSpan:
    """Offsets of a partition that were seen under one token."""

    __slots__ = ("first", "generation", "last", "least_epoch")

    def __init__(self, generation: int, epoch: int, offset: int) -> None:
        self.generation = generation
        self.least_epoch = epoch
        self.first = self.last = offset

    def covers(self, generation: int, epoch: int, offset: int) -> bool:
        return generation < self.generation and epoch <= self.least_epoch and self.first <= offset <= self.last

    def add(self, epoch: int, offset: int) -> None:
        self.least_epoch = min(self.least_epoch, epoch)
        self.first, self.last = min(self.first, offset), max(self.last, offset)


class Fence:
    """Remembers who has served which offsets of each partition of payments.requested.

    A generation is older than another if it is less and its epoch is not greater: a group that was deleted counts from
    1 again, under a newer plan. Kept for each partition in which records were read: order holds inside one alone.
    """

    def __init__(self, spans: int = MAX_OWNERS_PER_PARTITION, places: int = MAX_PARTITIONS) -> None:
        self.refused = 0
        self._spans, self._places = spans, places
        self._seen: dict[tuple[int, int], dict[int, _OwnerSpan]] = {}

    def admits(self, source: int, served: Timeline) -> bool:
        """Take note of a record read from partition `source`; return whether it may have effects.

        One without a token, from a runtime that has none, always may.
        """
        if (place := _place(served)) is None:
            return True
        partition, offset, generation, epoch = place
        spans = self._seen.get((source, partition), {})
        if any(span.covers(generation, epoch, offset) for span in spans.values()):
            self._say(served)
            return False
        self._note(source, *place)
        return True

    def remember(self, source: int, value: bytes) -> None:
        """Take note of a record that the stage itself has written to its partition `source`, read back after a restart.

        Outputs lie in the partition of the same number as their input. Raises msgspec.DecodeError.
        """
        written = _written.decode(value)
        # An accepted payment's notification follows from its shipment, which says nothing of what was read of payments.
        if not written.accepted and (place := _place(written.timeline)):
            self._note(source, *place)

    def _note(self, source: int, partition: int, offset: int, generation: int, epoch: int) -> None:
        spans = self._seen.setdefault((source, partition), {})
        if generation in spans:
            spans[generation].add(epoch, offset)
            return
        spans[generation] = _OwnerSpan(generation, epoch, offset)
        if len(spans) > self._spans:
            del spans[next(iter(spans))]
        if len(self._seen) > self._places:
            del self._seen[next(iter(self._seen))]

    def _say(self, served: Timeline) -> None:
        if self.refused % REFUSALS_PER_LOG_LINE == 0:
            log.warning(
                "refused what %s wrote for offset %s of partition %s as of generation %s: a later owner has served it",
                served.replica, served.offset, served.partition, served.generation,
            )  # fmt: skip
        self.refused += 1


def _place(served: Timeline) -> tuple[int, int, int, int] | None:
    if served.partition is None or served.offset is None or served.generation is None:
        return None
    return served.partition, served.offset, served.generation, served.epoch or 0


def fenced_decision(fence: Fence, decide: Callable[[PaymentSettled], Iterable[Effect]]) -> Decide:
    """Return `decide` for settled payments that the fence admits; what is not one is refused."""
    decode = decoder(PaymentSettled)

    def decided(record: Incoming) -> Iterable[Effect | Refusal]:
        value = decode(record.value)
        if isinstance(value, Refusal):
            return (value,)
        return decide(value) if fence.admits(record.partition, value.timeline) else ()

    return decided
