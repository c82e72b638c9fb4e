"""The runtimes that handovers are measured for: which process, which environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tailpack.errors import TailpackError

SESSION_S: Final = 6.0
OURS: Final = "services.payment"
OTHERS: Final = "services.comparators"


@dataclass(frozen=True, slots=True)
class Runtime:
    """How one of them is started."""

    name: str
    module: str = OTHERS
    takes_plan: bool = False
    owned: bool = True
    """Partitions have owners."""
    announced: bool = True
    """A replica reports itself before it joins the group. Otherwise its start counts from that of the process."""
    environ: Mapping[str, str] = field(default_factory=dict)


def _ours(name: str) -> Runtime:
    return Runtime(name, OURS, takes_plan=True, environ={"TAILPACK_DELIVERY": name})


def _other(name: str, *, owned: bool = True, announced: bool = True) -> Runtime:
    return Runtime(name, owned=owned, announced=announced, environ={"TAILPACK_RUNTIME": name})


RUNTIMES: Final = {
    runtime.name: runtime
    for runtime in (
        _ours("incremental"),
        _ours("eager"),
        _other("cooperative-sticky"),
        _other("kip848"),
        _other("share", owned=False),
        _other("faust", announced=False),
    )
}


def runtime(name: str) -> Runtime:
    """Return the runtime of this name. Raises TailpackError."""
    if name not in RUNTIMES:
        raise TailpackError(f"--runtime {name!r} is unknown; known are {', '.join(RUNTIMES)}")
    return RUNTIMES[name]


def planned(name: str) -> Runtime:
    """Return the runtime of this name that takes a plan. Raises TailpackError."""
    found = runtime(name)
    if not found.takes_plan:
        fitting = ", ".join(one.name for one in RUNTIMES.values() if one.takes_plan)
        raise TailpackError(f"--runtime {name} takes no plan; use {fitting}")
    return found
