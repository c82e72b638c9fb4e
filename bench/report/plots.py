"""The report's figures as inline SVG. Colours are CSS variables of the page, so one drawing serves light and dark."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from bench.report.result import Result
from bench.report.wording import duration, share

INK: Final = {
    "#010101": "--ink", "#020202": "--muted", "#030303": "--grid", "#040404": "--a", "#050505": "--b",
    "#060606": "--bad", "#070707": "--c",
}  # fmt: skip
"""Colour given to matplotlib → CSS variable it becomes."""
TEXT, MUTED, GRID, FIRST, SECOND, TARGET, THIRD = INK
STYLE: Final = {
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's font
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": TEXT,
    "text.color": TEXT,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "lines.linewidth": 1.4,
    "lines.solid_joinstyle": "round",
}
NARROW_BELOW_IN: Final = 6.0
NINES: Final = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
MARKS: Final = {"up": ("^", SECOND), "down": ("v", FIRST), "reassign": ("D", THIRD)}


def distribution(result: Result, width_in: float) -> str:
    """Return the CDF of the SLA stage: latency on a log axis, the share on one that gives every nine its room."""
    with _drawing(f"distribution-{width_in}", width_in, 3.4) as (figure, svg):
        axes = figure.subplots()
        latency_ms = np.array(result.distribution.latency_s) * 1000
        shares = np.array(result.distribution.share)
        top = max(3.0, float(np.ceil(np.log10(max(result.stages[0].events, 10) if result.stages else 10))))
        height = -np.log10(np.maximum(1 - shares, 10**-top))
        axes.step(np.append(latency_ms[:1], latency_ms), np.append(0, height), where="post", color=FIRST, linewidth=1.8)
        _target_cross(axes, result, top)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g} ms" if value < 1e3 else f"{value / 1e3:g} s")
        )
        _decades(axes.xaxis, axes.get_xlim(), narrow=width_in < NARROW_BELOW_IN)
        ticks = [nine for nine in NINES if -np.log10(1 - nine) <= top]
        axes.yaxis.set_major_locator(FixedLocator([float(-np.log10(1 - nine)) for nine in ticks]))
        axes.set_yticklabels([share(nine) for nine in ticks])
        axes.set_ylim(0, top * 1.03)
        axes.set_title("Share of events done within …")
        figure.tight_layout(pad=0.4)
    return svg[0]


def timeline(result: Result, width_in: float) -> str:
    """Return four panels over the seconds of the run: rates, replicas with decisions, lag, latency."""
    with _drawing(f"timeline-{width_in}", width_in, 8.2) as (figure, svg):
        rates, replicas, lag, latency = figure.subplots(4, 1, sharex=True, height_ratios=(1.1, 1, 0.8, 1.1))
        series = result.series
        seconds = np.arange(len(series.arrivals))
        _area(rates, seconds, _floats(series.arrivals), "arrivals")
        _line(rates, seconds, _floats(series.done), "done")
        rates.set_title("Events per second")
        _area(replicas, seconds, _floats(series.requested_replicas), "requested")
        _line(replicas, seconds, _floats(series.ready_replicas), "ready")
        replicas.set_title("Replicas")
        _decisions(replicas, result)
        replicas.yaxis.set_major_locator(MaxNLocator(integer=True))
        lag.plot(seconds, _floats(series.lag), color=FIRST, label="lag")
        lag.set_title("Lag, events")
        latency.plot(seconds, _floats(series.max_s) * 1000, color=SECOND, linewidth=0.9, label="max")
        latency.plot(seconds, _floats(series.p99_s) * 1000, color=FIRST, label="p99")
        latency.axhline(
            result.latency_target_s * 1000, color=TARGET, linewidth=1.1, linestyle=(0, (5, 3)), label="target"
        )
        latency.set_title("Latency, ms")
        latency.set_yscale("log")
        latency.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        )
        _decades(latency.yaxis, latency.get_ylim(), narrow=width_in < NARROW_BELOW_IN)
        latency.set_xlabel("seconds since the start of the run")
        for axes in (rates, lag):
            axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))
        for axes in (rates, replicas, latency):
            _legend(axes)
        latency.set_xlim(0, max(len(seconds), 1))
        figure.tight_layout(pad=0.4, h_pad=1.2)
        figure.align_ylabels()
    return svg[0]


@contextmanager
def _drawing(salt: str, width_in: float, height_in: float) -> Iterator[tuple[Figure, list[str]]]:
    """Yield a figure and the list that receives its SVG. salt: keeps the ids of two figures on one page apart."""
    svg: list[str] = []
    with mpl.rc_context({**STYLE, "svg.hashsalt": salt}):
        figure = Figure(figsize=(width_in, height_in))
        figure.patch.set_alpha(0)
        yield figure, svg
        for axes in figure.axes:
            axes.patch.set_alpha(0)
            axes.set_axisbelow(True)
            axes.tick_params(length=0, pad=5)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg.append(_inline(text.getvalue()))


def _inline(svg: str) -> str:
    """Return only the <svg> element, sized by the page, coloured by its variables."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r'(<svg [^>]*?)width="[^"]*" ', r"\1", re.sub(r'(<svg [^>]*?)height="[^"]*" ', r"\1", svg, count=1), count=1
    )
    svg = svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
    for colour, variable in INK.items():
        svg = svg.replace(colour, f"var({variable})")
    return re.sub(r"'[^']*', [^;\"]*sans-serif|'?DejaVu Sans'?[^;\"]*", "var(--font)", svg)


def _target_cross(axes: Axes, result: Result, top: float) -> None:
    promised = min(float(-np.log10(max(1 - result.percentile, 10**-top))), top)
    dashes: dict[str, Any] = {"color": TARGET, "linewidth": 1.1, "linestyle": (0, (5, 3))}
    axes.axvline(result.latency_target_s * 1000, **dashes)
    axes.axhline(promised, **dashes)
    axes.plot([result.latency_target_s * 1000], [promised], "o", color=TARGET, markersize=5)
    axes.annotate(
        f"promise: {share(result.percentile)} in {duration(result.latency_target_s)}",
        (result.latency_target_s * 1000, promised),
        xytext=(-7, 6),
        textcoords="offset points",
        ha="right",
        color=TARGET,
    )


def _decisions(axes: Axes, result: Result) -> None:
    top = max([1, *(value for value in result.series.requested_replicas if value is not None)])
    for action, (marker, colour) in MARKS.items():
        at_s = [made.at_s for made in result.decisions if made.action == action and made.at_s >= 0]
        if at_s:
            axes.plot(at_s, [top + 0.55] * len(at_s), marker, color=colour, markersize=5, clip_on=False)
    axes.set_ylim(0, top + 1)


def _area(axes: Axes, seconds: Any, values: Any, label: str) -> None:
    ends, held = _steps(seconds, values)
    axes.fill_between(ends, held, step="post", color=FIRST, alpha=0.16, linewidth=0)
    axes.step(ends, held, where="post", color=FIRST, label=label)


def _line(axes: Axes, seconds: Any, values: Any, label: str) -> None:
    axes.step(*_steps(seconds, values), where="post", color=SECOND, linewidth=1.1, label=label)


def _steps(seconds: Any, values: Any) -> tuple[Any, Any]:
    """Hold the last value to the end of its second."""
    return np.append(seconds, len(seconds)), np.append(values, values[-1:])


def _decades(axis: Axis, limits: tuple[float, float], *, narrow: bool) -> None:
    """Label a logarithmic axis: 1, 2, 5 where it spans few decades, 1 and 3 on a narrow page, else the decades."""
    few = limits[1] / limits[0] < 10**2.5
    axis.set_major_locator(LogLocator(subs=(1,) if not few else (1, 3) if narrow else (1, 2, 5)))
    axis.set_minor_locator(NullLocator())


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=5, frameon=False, fontsize=9, borderaxespad=0.1,
        handlelength=1.2, columnspacing=1.0, handletextpad=0.4, labelcolor=MUTED,
    )  # fmt: skip


def _floats(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=float)
