"""A fence against zombies: refuses the output of a Payment replica that lost its partition without noticing.

Each record has the offset of its event and the token (generation and epoch) of the replica that served it. The fence
remembers the first and the last offset that it has seen with each token. A new owner serves its partition in order. So
it has served every event between its first and last offset. A record with such an offset and an older token is refused
as a repeat. Any other record passes, for example one that the old owner committed before the new owner began.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from contracts.events import PaymentSettled, Timeline
from services.common.records import Decide, Effect, typed_decision

log = logging.getLogger(__name__)

MAX_OWNERS_PER_PARTITION: Final = 16
"""Owners to remember for each partition. The oldest is dropped. A zombie resumes within a few changes of owner."""
MAX_PARTITIONS: Final = 50_000  # partitions remembered; about 30 MB at most
REFUSALS_PER_LOG_LINE: Final = 1000  # the log has one line for this many refusals


class _Output(msgspec.Struct):
    timeline: Timeline
    accepted: bool = False


_output: Final = msgspec.json.Decoder(_Output)


class _OwnerSpan:
    """Offsets of a partition that were seen with one token."""

    __slots__ = ("first", "generation", "last", "least_epoch")

    def __init__(self, generation: int, epoch: int, offset: int) -> None:
        self.generation, self.least_epoch = generation, epoch
        self.first = self.last = offset

    def covers(self, generation: int, epoch: int, offset: int) -> bool:
        return generation < self.generation and epoch <= self.least_epoch and self.first <= offset <= self.last

    def add(self, epoch: int, offset: int) -> None:
        self.least_epoch = min(self.least_epoch, epoch)
        self.first, self.last = min(self.first, offset), max(self.last, offset)


class Fence:
    """Remembers which owner served which offsets of each partition of payments.requested.

    A token is older than another if its generation is lower and its epoch is not higher. (A deleted group starts at
    generation 1 again, in a newer plan.) Each input partition has its own memory, as events are ordered only within it.
    """

    def __init__(self, spans: int = MAX_OWNERS_PER_PARTITION, places: int = MAX_PARTITIONS) -> None:
        self.refused = 0  # records
        self._max_spans, self._max_partitions = spans, places
        self._spans: dict[tuple[int, int], dict[int, _OwnerSpan]] = {}

    def admits(self, source: int, served: Timeline) -> bool:
        """Record the token of an input record from partition `source`. Return whether the record may have effects.

        A record without a token always may have effects, because another consumer wrote it.
        """
        if (token := _token(served)) is None:
            return True
        partition, offset, generation, epoch = token
        spans = self._spans.get((source, partition), {})
        if any(span.covers(generation, epoch, offset) for span in spans.values()):
            self._count_refusal(served)
            return False
        self._note(source, *token)
        return True

    def remember(self, source: int, value: bytes) -> None:
        """Record the token of an output of this stage in partition `source`, read back after a restart.

        An output and its input have the same partition number. Raises msgspec.DecodeError.
        """
        output = _output.decode(value)
        # A notification of an accepted payment is made from its shipment, so it proves nothing about payments read.
        if not output.accepted and (token := _token(output.timeline)):
            self._note(source, *token)

    def _note(self, source: int, partition: int, offset: int, generation: int, epoch: int) -> None:
        spans = self._spans.setdefault((source, partition), {})
        if generation in spans:
            spans[generation].add(epoch, offset)
            return
        spans[generation] = _OwnerSpan(generation, epoch, offset)
        if len(spans) > self._max_spans:
            del spans[next(iter(spans))]
        if len(self._spans) > self._max_partitions:
            del self._spans[next(iter(self._spans))]

    def _count_refusal(self, served: Timeline) -> None:
        if self.refused % REFUSALS_PER_LOG_LINE == 0:
            log.warning(
                "Refused output of %s for offset %s of partition %s, generation %s: a later owner has served it",
                served.replica, served.offset, served.partition, served.generation,
            )  # fmt: skip
        self.refused += 1


def _token(served: Timeline) -> tuple[int, int, int, int] | None:
    if served.partition is None or served.offset is None or served.generation is None:
        return None
    return served.partition, served.offset, served.generation, served.epoch or 0


def fenced_decision(fence: Fence, decide: Callable[[PaymentSettled], Iterable[Effect]]) -> Decide:
    """Return a decision that applies `decide` to settled payments admitted by the fence, and refuses other records."""
    return typed_decision(PaymentSettled, decide, lambda record, paid: fence.admits(record.partition, paid.timeline))
