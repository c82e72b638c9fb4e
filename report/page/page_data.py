"""What the page's script zooms into: the series of the run as JSON, reduced where they are very long."""

from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from report.causes import title
from report.page.drawing.heat import BOUNDS, worst
from report.page.happenings import Happening, Tenures, spells_shown
from report.page.reduction import ENTRIES, bucket, reduce, worst_entries
from report.page.traces import PANELS, late_by_second, series
from report.result import HeatMap, LateEpisode, Result

CELLS: Final = 40_000
"""Of the heat map, all partitions together."""


def page_data(result: Result, happened: list[Happening], held: Tenures) -> str:
    """Return JSON that is safe inside a script element."""
    seconds = len(result.series.arrivals)
    step = bucket(seconds, ENTRIES)
    late = late_by_second(result)
    known = series(result)
    data = {
        "seconds": seconds,
        "step": step,
        "series": {
            trace.name: _entries(known[trace.name], step) | {"label": trace.label, "unit": trace.unit}
            for panel in PANELS
            for trace in panel.traces
            if trace.name in known
        },
        "late": [
            {"cause": cause, "label": title(cause), "high": counts.tolist()}
            for cause, counts in worst_entries(late, step).items()
        ],
        "events": [[round(one.at_s, 3), one.kind, one.words] for one in happened],
        "spells": list(map(_spell, spells_shown(result))),
        "heat": _heat(result.heat, held, result.latency_target_s) if result.heat and result.heat.partitions else None,
    }
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")


def _entries(values: Any, step: int) -> dict[str, Any]:
    reduced = reduce(values, step)
    return {"high": _numbers(reduced.high)} | ({} if step == 1 else {"low": _numbers(reduced.low)})


def _spell(spell: LateEpisode) -> dict[str, Any]:
    """Return what the script tells of a spell. Its place in the list is that of its row in the table."""
    return {
        "from": round(spell.from_s, 3),
        "until": round(spell.until_s, 3),
        "cause": spell.cause,
        "label": title(spell.cause),
        "partition": spell.partition,
        "replica": spell.replica,
        "epoch": spell.epoch,
        "events": spell.events,
        "why": spell.why,
    }


def _heat(heat: HeatMap, held: Tenures, target_s: float) -> dict[str, Any]:
    cells, cell_s = worst(heat, max(1, CELLS // len(heat.partitions)))
    names = sorted({owner for some in held.values() for _, owner in some})
    return {
        "cell": cell_s,
        "bounds": [round(bound * target_s * 1000, 3) for bound in BOUNDS],
        "partitions": heat.partitions,
        "worst": [_numbers(np.round(row * 1000, 1)) for row in cells],
        "owners": names,
        "held": [
            [[at_s, names.index(owner)] for at_s, owner in held.get(partition, [])] for partition in heat.partitions
        ],
    }


def _numbers(values: NDArray[np.float64]) -> list[float | int | None]:
    """Return the values as short as JSON allows: whole ones without a point, null for NaN."""
    return [
        None if value != value else int(value) if value == int(value) else value  # noqa: PLR0124
        for value in values.tolist()
    ]
