"""Everything that a run tells over time, panel under panel on one axis.

The script of the page redraws the paths when it zooms; what it must know about a panel stands in data- attributes.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

import numpy as np

from report.causes import title
from report.page.drawing.frame import Frame, clip, grid, time_axis
from report.page.drawing.scales import Scale
from report.page.drawing.svg import curve, drawing, element, number, text, under
from report.page.happenings import Happening
from report.page.reduction import bucket, floats, reduce, worst_entries
from report.page.traces import LATENCY, PANELS, REPLICAS, Panel, Values, late_by_second, series
from report.result import Result
from report.wording import duration

TITLE_PX: Final = 30
LANE_PX: Final = 18
TICK_PX: Final = 24
KEY_PX: Final = 17
LETTER_PX: Final = 7.2
"""A letter's width, generously: nothing here can measure text."""
LATE_PX: Final = 90
LEAST_BAR_PX: Final = 2.0
"""A single late event among thousands is still seen."""
SHAPES: Final = {
    "up": "m-4.5 4 4.5-8 4.5 8z",
    "down": "m-4.5-4 4.5 8 4.5-8z",
    "reassign": "m-4.5 0 4.5-4.5 4.5 4.5-4.5 4.5z",
    "other": "m-3-3h6v6h-6z",
    "handover": "m-.5-6h1v12h-1z",
    "failure": "m-4-4 8 8m0-8-8 8",
}
"""Kind of happening → its mark, around the point where it stands."""
LANES: Final = (("plans", ("up", "down", "reassign", "other")), ("moves", ("handover",)), ("faults", ("failure",)))


def timeline(result: Result, happened: Sequence[Happening], width: int) -> str:
    """Return the drawing."""
    frame = Frame.of(width, len(result.series.arrivals))
    known = series(result)
    late = late_by_second(result)
    content: list[str] = []
    top = 0.0
    keys = _key_rows(frame, late)
    for panel in PANELS:
        if not any(trace.name in known for trace in panel.traces):
            continue
        if panel is LATENCY and late:
            above = TITLE_PX + KEY_PX * len(keys)
            content.append(_late(frame, late, keys, top + above))
            top += above + LATE_PX
        content.append(_panel(frame, panel, known, top + TITLE_PX, result.latency_target_s * 1000))
        top += TITLE_PX + panel.height
        if panel is REPLICAS and happened:
            lanes, height = _lanes(frame, happened, top + TITLE_PX)
            content.append(lanes)
            top += TITLE_PX + height
    name = f"timeline-{width}"
    axis = time_axis(frame, TITLE_PX, top)
    return drawing(
        [clip(frame, name, top), axis, *content], width=width, height=top + 24, data_chart="time",
        data_left=frame.left, data_right=frame.right, data_top=TITLE_PX, data_bottom=top,
        style=f"--clip: url(#{name})",
    )  # fmt: skip


def _panel(frame: Frame, panel: Panel, known: Mapping[str, Values], top: float, target_ms: float) -> str:
    drawn = [trace for trace in panel.traces if trace.name in known]
    low, high = _limits([known[trace.name] for trace in drawn], panel.log, target_ms)
    scale = Scale(low, high, top + panel.height, top, log=panel.log)
    parts = [
        grid(frame, scale, max(2, panel.height // TICK_PX), whole=not panel.log),
        _title(frame, panel, [t.name for t in drawn], top, duration(target_ms / 1000)),
    ]
    for trace in drawn:
        reduced = reduce(known[trace.name], bucket(len(known[trace.name]), int(frame.right - frame.left)))
        x = frame.edges(reduced.step)
        tall, short = scale.at(reduced.high), scale.at(reduced.low)
        if trace.kind == "area":
            fill = under(x, tall, scale.start)
            parts.append(element("path", d=fill, class_=f"fill {trace.class_}", data_series=trace.name))
        stroke = curve(reduced, x, tall, short, steps=trace.kind != "line")
        parts.append(
            element("path", d=stroke, class_=f"line {trace.class_}", data_series=trace.name, data_kind=trace.kind)
        )
    if panel.log:
        at = float(scale.at([target_ms])[0])
        parts.append(element("path", d=f"M{frame.left} {number(at)}H{frame.right}", class_="line target"))
    return _group(parts, scale)


def _key_rows(frame: Frame, late: Mapping[str, Sequence[int]]) -> list[list[str]]:
    """Return the causes in rows that fit into the width."""
    rows: list[list[str]] = []
    room = 0.0
    for cause in late:
        needs = LETTER_PX * (len(title(cause)) + 4)
        if needs > room:
            rows.append([])
            room = frame.right - frame.left
        rows[-1].append(cause)
        room -= needs
    return rows


def _late(frame: Frame, late: Mapping[str, Sequence[int]], keys: Sequence[Sequence[str]], top: float) -> str:
    seconds = len(next(iter(late.values())))
    step = bucket(seconds, int(frame.right - frame.left) // 2)
    bars = worst_entries(late, step)
    highest = max(1.0, float(np.sum([late[cause] for cause in late], axis=0).max()))
    scale = Scale(0, highest, top + LATE_PX, top)
    x = frame.edges(step)
    floor = np.full(len(x) - 1, scale.start)
    above = top - 9 - KEY_PX * len(keys)
    parts = [
        grid(frame, scale, 3, whole=True),
        text("Late events per second, by cause", frame.left, above, class_="title"),
    ]
    for row, causes in enumerate(keys, start=1):
        spans = [
            element("tspan", "■ ", class_=f"key cause-{cause}") + element("tspan", escape(title(cause)) + "\u2003")
            for cause in causes
        ]
        parts.append(element("text", *spans, x=float(frame.left), y=above + row * KEY_PX))
    for cause, counts in bars.items():
        tall = np.where(counts > 0, np.maximum(scale.start - scale.at(counts), LEAST_BAR_PX), 0.0)
        data = "".join(
            f"M{number(float(x[k]))} {number(float(floor[k]))}h{number(max(1.0, float(x[k + 1] - x[k])))}"
            f"v-{number(float(tall[k]))}H{number(float(x[k]))}z"
            for k in np.flatnonzero(counts)
        )
        parts.append(element("path", d=data, class_=f"bar cause-{cause}", data_cause=cause))
        floor -= tall
    return _group(parts, scale)


def _lanes(frame: Frame, happened: Sequence[Happening], top: float) -> tuple[str, float]:
    parts = [text("What happened", frame.left, top - 9, class_="title")]
    lane = 0
    for name, kinds in LANES:
        some = [one for one in happened if one.kind in kinds]
        if not some:
            continue
        y = top + (lane + 0.5) * LANE_PX
        parts.append(element("path", d=f"M{frame.left} {number(y)}H{frame.right}", class_="grid"))
        parts.append(text(name, frame.left - 6, y + 4, anchor="end"))
        for kind in kinds:
            at = [one.at_s for one in some if one.kind == kind and 0 <= one.at_s <= frame.seconds]
            places = dict.fromkeys(number(round(float(x))) for x in frame.x.at(at))
            data = "".join(f"M{x} {number(y)}{SHAPES[kind]}" for x in places)
            parts.append(
                element(
                    "path", d=data, class_=f"mark mark-{kind}", data_marks=kind, data_y=float(y),
                    data_shape=SHAPES[kind],
                )
            )  # fmt: skip
        lane += 1
    return element("g", *parts), lane * LANE_PX


def _title(frame: Frame, panel: Panel, drawn: Sequence[str], top: float, target: str) -> str:
    """Return the panel's name and, behind it, the key to its lines."""
    keys = [(trace.label, trace.class_) for trace in panel.traces if trace.name in drawn]
    keys += [(f"target {target}", "target")] if panel.log else []
    spans = [element("tspan", panel.title, class_="title")]
    if len(keys) > 1:
        for label, class_ in keys:
            sign = "╍" if class_ == "target" or "dashed" in class_ else "━"
            spans.append(element("tspan", f" {sign} ", class_=f"key {class_}", dx=8))
            spans.append(element("tspan", label))
    return element("text", *spans, x=float(frame.left), y=float(top - 9), class_="tick")


def _group(parts: Sequence[str], scale: Scale) -> str:
    """Return a panel with what the script must know of its vertical axis."""
    return element(
        "g", *parts, data_panel="log" if scale.log else "linear", data_low=f"{scale.low:.6g}",
        data_high=f"{scale.high:.6g}", data_from=float(scale.start), data_to=float(scale.end),
    )  # fmt: skip


def _limits(values: Sequence[Values], log: bool, target_ms: float) -> tuple[float, float]:
    known = np.concatenate([floats(some) for some in values])
    known = known[~np.isnan(known)]
    if not log:
        return 0.0, max(1.0, float(known.max()) * 1.05)
    known = np.append(known[known > 0], target_ms)
    return float(known.min()) * 0.8, float(known.max()) * 1.25
