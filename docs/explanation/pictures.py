"""The pictures of why-tails-break.md, drawn from simulated runs: `python docs/explanation/pictures.py`."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

HERE: Final = Path(__file__).parent
TARGET_S: Final = 0.5
WIDTH: Final = 780
PANEL: Final = 335
LEFT: Final = (45, 420)
STYLE: Final = """<style>
text { font: 12px sans-serif; fill: #24292f } .title { font-size: 14px; font-weight: bold } .small { font-size: 11px }
.paper { fill: #ffffff } .axis { stroke: #8c959f; fill: none } .target { stroke: #57606a; stroke-dasharray: 5 3 }
.good { stroke: #0969da; fill: none } .late { stroke: #d1242f; fill: none } .lateword { fill: #d1242f }
.r0 { fill: #0969da } .r1 { fill: #bf8700 } .r2 { fill: #1a7f37 } .r3 { fill: #8250df } .r4 { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .paper { fill: #0d1117 } .target { stroke: #9198a1 } .good { stroke: #58a6ff }
  .late { stroke: #ff7b72 } .lateword { fill: #ff7b72 }
  .r0 { fill: #388bfd } .r1 { fill: #d29922 } .r2 { fill: #3fb950 } .r3 { fill: #a371f7 } .r4 { fill: #6e7681 }
}
</style>"""


@dataclass(frozen=True)
class Simulated:
    """A finished run: its figures, its events as (intended s, latency s), and (second, owners) of each tick.

    rates: events/s of each partition, by tick.
    """

    figures: dict[str, Any]
    events: list[tuple[float, float]]
    owners: list[tuple[float, list[str]]]
    rates: list[list[float]]


def simulate(*arguments: str) -> Simulated:
    """Run `tailpack simulate` and read what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("tailpack")), "simulate", *arguments, "--json", "--out", folder]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        events = pq.read_table(f"{folder}/events.parquet", columns=["intended_us", "done_us"]).to_pydict()
        entries = [json.loads(one) for one in pq.read_table(f"{folder}/journal.parquet")["entry"].to_pylist()]
    times = zip(events["intended_us"], events["done_us"], strict=True)
    ticks = [entry for entry in entries if entry["kind"] == "tick" and entry["partitions"]]
    return Simulated(
        json.loads(printed),
        [(intended / 1e6, (done - intended) / 1e6) for intended, done in times],
        [(tick["at_us"] / 1e6, [load["owner"] for load in tick["partitions"]]) for tick in ticks],
        [[load["arrival_rate"] for load in tick["partitions"]] for tick in ticks],
    )


def text(x: float, y: float, words: str, *, style: str = "", anchor: str = "start") -> str:
    """Return words at a place."""
    return f'<text x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}">{words}</text>'


def frame(x: float, top: float, bottom: float) -> str:
    """Return the two axes of a panel."""
    return f'<path class="axis" d="M{x:g} {top:g}V{bottom:g}H{x + PANEL:g}"/>'


def latency_axis(x: float, top: float, bottom: float, most_s: float) -> str:
    """Draw the frame of a panel of latencies, from 0 to `most_s`, and the line of the target."""
    target = bottom - (bottom - top) * TARGET_S / most_s
    line = f'<path class="target" d="M{x:g} {target:.1f}H{x + PANEL:g}"/>'
    words = text(x + PANEL, target - 4, f"W = {TARGET_S} s", style="small", anchor="end")
    return frame(x, top, bottom) + line + words


def dots(points: Iterable[tuple[float, float]], style: str) -> str:
    """Draw small dots: path segments of no length with round ends."""
    path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
    return f'<path class="{style}" stroke-width="3" stroke-linecap="round" d="{path}"/>'


def picture(name: str, height: int, label: str, parts: Sequence[str]) -> None:
    """Write an SVG file of the drawn parts."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
    paper = f'<rect class="paper" width="{WIDTH}" height="{height}"/>'
    (HERE / name).write_text("\n".join([head, STYLE, paper, *parts, "</svg>"]) + "\n", encoding="utf-8")


def average() -> None:
    """Draw one replica under 150 events/s, evenly and in bursts."""
    top, bottom, most_s, seconds = 60.0, 230.0, 0.8, 3.0
    parts = []
    for x, spacing, title in zip(
        LEFT, ("smooth", "burst"), ("one every 6.7 ms", "150 at once, each second"), strict=True
    ):
        options = ("--duration", "10s", "--set", f"spacing={spacing}", "--set", "burst_phase_s=0")
        run = simulate("steady-150", "--policy", "static-1", *options)
        start = run.events[0][0]
        places = [
            (x + PANEL * (at - start) / seconds, bottom - (bottom - top) * latency / most_s, latency > TARGET_S)
            for at, latency in ((at + latency, latency) for at, latency in run.events)
            if at < start + seconds
        ]
        parts += [latency_axis(x, top, bottom, most_s), text(x, 25, title, style="title")]
        parts.append(text(x, 43, f"{100 * run.figures['in_sla']:.1f} % in time, longest {run.figures['max_s']:.3f} s"))
        parts += [
            dots([(a, b) for a, b, late in places if late is kind], "late" if kind else "good")
            for kind in (False, True)
        ]
        parts += [text(x + PANEL * one / seconds, 247, f"{one} s", style="small", anchor="middle") for one in range(4)]
    parts.append(
        text(
            LEFT[0],
            270,
            "latency of each event, by the time it was done; 150 events/s on one replica that serves 200/s",
            style="small",
        )
    )
    picture("average.svg", 280, "The same average rate, evenly and in bursts: only the bursts are late", parts)


def blocks() -> None:
    """Draw the owner of each partition and the p99 of each burst, under two policies."""
    begin, end = 225, 345
    parts = []
    for x, policy in zip(LEFT, ("linear", "tail-aware"), strict=True):
        run = simulate("w1", "--policy", policy)
        step = PANEL / (end - begin)
        figures = f"{100 * run.figures['in_sla']:.2f} % in time, {run.figures['replica_minutes']:.1f} replica-minutes"
        parts += [text(x, 25, policy, style="title"), text(x, 43, figures)]
        number: dict[str, int] = {}
        seen = [(int(at_s), owners) for at_s, owners in run.owners if begin <= at_s < end]
        for partition in range(len(seen[0][1])):
            for owner, group in groupby(seen, key=lambda tick: tick[1][partition]):
                seconds = [second for second, _ in group]
                shade = number.setdefault(owner, len(number)) % 5
                box = f'x="{x + step * (seconds[0] - begin):.1f}" y="{60 + 18 * partition}"'
                width = step * (seconds[-1] + 1 - seconds[0])
                parts.append(f'<rect class="r{shade}" {box} width="{width:.1f}" height="15"/>')
        bursts: dict[int, list[float]] = {}
        for at, latency in run.events:
            bursts.setdefault(int(at), []).append(latency)
        top, bottom, most_s = 165.0, 260.0, 0.8
        parts.append(latency_axis(x, top, bottom, most_s))
        bars = {"good": "", "late": ""}
        for second in range(begin, end):
            value = sorted(bursts[second])[ceil(0.99 * len(bursts[second])) - 1]
            bar = f"M{x + step * (second - begin + 0.5):.1f} {bottom:g}V{bottom - (bottom - top) * value / most_s:.1f}"
            bars["late" if value > TARGET_S else "good"] += bar
        parts += [f'<path class="{style}" stroke-width="2" d="{path}"/>' for style, path in bars.items()]
        for second in range(begin, end + 1, 30):
            parts.append(text(x + step * (second - begin), 277, f"{second} s", style="small", anchor="middle"))
    parts += [text(LEFT[0] - 5, 72 + 18 * one, f"p{one}", style="small", anchor="end") for one in range(5)]
    parts.append(
        text(
            LEFT[0],
            300,
            "above: the owner of each partition, one colour a replica; below: the p99 latency of each burst",
            style="small",
        )
    )
    picture("blocks.svg", 310, "Partitions change their owner, and latency stays below the target", parts)


if __name__ == "__main__":
    average()
    blocks()
