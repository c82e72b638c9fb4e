"""Which runtime a comparator replica uses. All else is set as for `services.payment`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from contracts.validation import InvalidSettingsError

VARIABLE: Final = "TAILPACK_RUNTIME"


class Runtime(StrEnum):
    """A way to share a topic's events among replicas, as benchmarks name it."""

    COOPERATIVE_STICKY = "cooperative-sticky"
    """confluent-kafka, classic protocol, incremental cooperative rebalancing (KIP-429)."""
    KIP848 = "kip848"
    """confluent-kafka, consumer protocol: the broker assigns (KIP-848)."""
    SHARE = "share"
    """confluent-kafka, share group: any replica takes events of any partition, in no order (KIP-932)."""
    FAUST = "faust"
    """Faust as it comes: aiokafka, eager rebalancing."""


def runtime_of(environ: Mapping[str, str]) -> Runtime:
    """Return the runtime that the environment names. Raises InvalidSettingsError when it is missing or unknown."""
    known = ", ".join(Runtime)
    name = environ.get(VARIABLE, "")
    if not name:
        raise InvalidSettingsError([f"{VARIABLE}: missing; known are {known}"])
    try:
        return Runtime(name)
    except ValueError:
        raise InvalidSettingsError([f"{VARIABLE} = {name!r}: unknown; known are {known}"]) from None
