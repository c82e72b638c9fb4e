"""Which series a page draws over time: one definition for the drawing, the script and the table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from report.result import Result

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Trace:
    """One line of a panel."""

    name: str
    label: str
    unit: str
    class_: str
    """How page.css paints it."""
    kind: Literal["area", "step", "line"]


@dataclass(frozen=True, slots=True)
class Panel:
    """Traces over one vertical axis."""

    title: str
    traces: tuple[Trace, ...]
    height: int
    log: bool = False


PANELS: Final = (
    Panel(
        "Events per second",
        (Trace("arrivals", "arrivals", "/s", "a", "area"), Trace("done", "done", "/s", "b", "step")),
        height=110,
    ),
    Panel(
        "Replicas",
        (
            Trace("requested", "requested", "", "a", "area"),
            Trace("ready", "ready", "", "b", "step"),
            Trace("bound", "bound", "", "c dashed", "step"),
        ),
        height=90,
    ),
    Panel("Lag, events", (Trace("lag", "lag", "", "a", "area"),), height=70),
    Panel(
        "Latency, ms",
        (Trace("max", "max", " ms", "c thin", "line"), Trace("p99", "p99", " ms", "a", "line")),
        height=130,
        log=True,
    ),
)
REPLICAS, LATENCY = PANELS[1], PANELS[3]


def series(result: Result) -> dict[str, Values]:
    """Return name of trace → one value for each second, in the unit of its trace; traces of which nothing is known
    are left out.
    """
    of = result.series
    found: dict[str, Values] = {
        "arrivals": of.arrivals,
        "done": of.done,
        "requested": of.requested_replicas,
        "ready": of.ready_replicas,
        "bound": of.bound_replicas,
        "lag": of.lag,
        "max": _ms(of.max_s),
        "p99": _ms(of.p99_s),
    }
    return {name: values for name, values in found.items() if any(value is not None for value in values)}


def late_by_second(result: Result) -> dict[str, Sequence[int]]:
    """Return cause → late events in each second, the most frequent cause first; causes that never came are left out."""
    if result.tail is None:
        return {}
    seconds = len(result.series.arrivals)
    by_second = {
        cause: [*counts[:seconds], *(0,) * (seconds - len(counts))]
        for cause, counts in result.tail.by_second.items()
        if any(counts[:seconds])
    }
    return dict(sorted(by_second.items(), key=lambda entry: (-sum(entry[1]), entry[0])))


def _ms(values_s: Values) -> Values:
    return [None if value is None else round(value * 1000, 1) for value in values_s]
