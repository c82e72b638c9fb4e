"""Which runtime a comparator replica uses. All else is set as for `services.payment`."""

from collections.abc import Mapping
from typing import Final

from contracts.delivery import RUNTIMES, Delivery
from contracts.validation import InvalidSettingsError

VARIABLE: Final = "TAILPACK_RUNTIME"


def runtime_of(environ: Mapping[str, str]) -> Delivery:
    """Return the runtime that the environment names. Raises InvalidSettingsError when it is missing or unknown."""
    known = ", ".join(RUNTIMES)
    name = environ.get(VARIABLE, "")
    if not name:
        raise InvalidSettingsError([f"{VARIABLE}: missing; known are {known}"])
    if name not in RUNTIMES:
        raise InvalidSettingsError([f"{VARIABLE} = {name!r}: unknown; known are {known}"])
    return Delivery(name)
