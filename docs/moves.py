"""The animated picture of the README: partitions that change their replica, and the latency, in two simulated runs."""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Final

from explanation.pictures import LEFT, PANEL, STYLE, TARGET_S, WIDTH, Simulated, latency_axis, simulate, text

BEGIN, END = 268, 312
"""Seconds of workload W1 at its highest load."""
PLAYED_S: Final = 24.0
HELD: Final = 0.12
"""Share of the animation in which the last second stays."""
TOP, BOTTOM, CURVE_TOP, CURVE_BOTTOM, MOST_S = 72.0, 200.0, 226.0, 296.0, 1.0
IN_TIME: Final = 100.0
"""Events that one replica serves in 500 ms."""
TALLEST: Final = 1.4 * IN_TIME
SIDES: Final = {
    "tailpack": ("--policy", "tail-aware"),
    "KEDA with HPA, cooperative-sticky": (
        "--policy", "keda-hpa", "--set", "payment.rebalance_protocol=cooperative-sticky",
    ),
}  # fmt: skip
ANIMATED: Final = f"""<style>
.move, .size, .lane, .seen {{ animation: {PLAYED_S:g}s linear infinite }}
.size {{ transform-box: fill-box; transform-origin: bottom }}
.word {{ fill: #ffffff; font-weight: bold; font-size: 11px }} .limit {{ stroke: #57606a; stroke-dasharray: 5 3 }}
@keyframes seen {{ from {{ transform: scaleX(0) }} {100 * (1 - HELD):g}%, to {{ transform: scaleX(1) }} }}
.seen {{ animation-name: seen; transform-box: fill-box; transform-origin: left }}
@media (prefers-color-scheme: dark) {{ .limit {{ stroke: #9198a1 }} }}
@media (prefers-reduced-motion: reduce) {{ * {{ animation: none !important }} }}
</style>"""


def keyframes(name: str, values: Sequence[str]) -> str:
    """Return keyframes with a value for each second; values that stay the same are left out."""
    share = 100 * (1 - HELD) / (len(values) - 1)
    around = [None, *values, None]
    steps = [
        f"{share * second:.2f}%{{{value}}}"
        for second, (before, value, after) in enumerate(zip(around, values, around[2:], strict=False))
        if not before == value == after or second in (0, len(values) - 1)
    ]
    return f"@keyframes {name}{{{''.join(steps)}to{{{values[-1]}}}}}.{name}{{animation-name:{name}}}"


def p99_s(run: Simulated, second: int) -> float:
    """Return the p99 latency of the events of one second, s."""
    found = sorted(latency for at, latency in run.events if int(at) == second)
    return found[ceil(0.99 * len(found)) - 1] if found else 0.0


def side(x: float, title: str, run: Simulated, mark: str) -> list[str]:
    """Draw one run. mark: begin of its CSS names."""
    ticks = [
        (owners, rates) for (at, owners), rates in zip(run.owners, run.rates, strict=True) if BEGIN <= int(at) < END
    ]
    names = sorted({owner for owners, _ in ticks for owner in owners})
    wide, scale = PANEL / len(names), (BOTTOM - TOP) / TALLEST
    styles, drawn = list[str](), list[str]()
    for column, name in enumerate(names):
        left = x + wide * column
        values = ["opacity:1" if name in owners else "opacity:.3" for owners, _ in ticks]
        styles.append(keyframes(f"{mark}l{column}", values))
        frame = f'<path class="axis" d="M{left + 2:g} {TOP:g}V{BOTTOM:g}H{left + wide - 2:g}V{TOP:g}"/>'
        label = text(left + wide / 2, BOTTOM + 14, name, style="small", anchor="middle")
        drawn.append(f'<g class="lane {mark}l{column}" style="{values[-1]}">{frame}{label}</g>')
    limit = BOTTOM - IN_TIME * scale
    drawn.append(f'<path class="limit" d="M{x:g} {limit:.1f}H{x + PANEL:g}"/>')
    drawn.append(text(x + PANEL, limit - 4, "served in 500 ms", style="small", anchor="end"))
    for partition in range(len(ticks[0][0])):
        moves, sizes = list[str](), list[str]()
        for owners, rates in ticks:
            owner = owners[partition]
            below = sum(rates[other] for other in range(partition) if owners[other] == owner)
            place = x + wide * names.index(owner) + 5, BOTTOM - scale * below
            moves.append(f"transform:translate({place[0]:.1f}px,{place[1]:.1f}px)")
            sizes.append(f"transform:scaleY({max(0.02, rates[partition] / IN_TIME):.2f})")
        styles += [keyframes(f"{mark}m{partition}", moves), keyframes(f"{mark}s{partition}", sizes)]
        tall = IN_TIME * scale
        box = f'<rect class="size r{partition % 5} {mark}s{partition}" style="{sizes[-1]}" '
        box += f'y="{-tall:.1f}" width="{wide - 10:.1f}" height="{tall:.1f}" rx="3"/>'
        label = f'<text class="word" x="4" y="-4">p{partition}</text>'
        drawn.append(f'<g class="move {mark}m{partition}" style="{moves[-1]}">{box}{label}</g>')
    share = 100 * run.figures["in_sla"]
    words = f"{int(100 * share) / 100:.2f} % in time, {run.figures['replica_minutes']:.1f} replica-minutes (whole run)"
    drawn += [text(x, 25, title, style="title"), text(x, 43, words), curve(x, run, mark)]
    return [f"<style>{''.join(styles)}</style>", *drawn]


def curve(x: float, run: Simulated, mark: str) -> str:
    """Draw the p99 of each burst as a line; it is red above the target."""
    step = PANEL / (END - BEGIN)
    values = [(x + step * (second - BEGIN + 0.5), p99_s(run, second)) for second in range(BEGIN, END)]
    points = [
        (at, CURVE_BOTTOM - (CURVE_BOTTOM - CURVE_TOP) * min(value, MOST_S) / MOST_S, value) for at, value in values
    ]
    lines = {"good": "", "late": ""}
    for (at, y, before), (end, below, after) in pairwise(points):
        lines["late" if max(before, after) > TARGET_S else "good"] += f"M{at:.1f} {y:.1f}L{end:.1f} {below:.1f}"
    drawn = "".join(f'<path class="{style}" stroke-width="2" d="{path}"/>' for style, path in lines.items())
    box = f'<rect class="seen" x="{x:g}" y="{CURVE_TOP - 5:g}" width="{PANEL}" height="90"/>'
    clip = f'<clipPath id="{mark}c">{box}</clipPath>'
    return latency_axis(x, CURVE_TOP, CURVE_BOTTOM, MOST_S) + clip + f'<g clip-path="url(#{mark}c)">{drawn}</g>'


def draw(folder: Path) -> None:
    """Simulate both runs, and write moves.svg."""
    label = "Partitions move from replica to replica. With tailpack, the latency stays below the target; with KEDA and "
    label += "cooperative-sticky, it does not."
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 330" role="img" aria-label="{label}">'
    parts = [head, STYLE, ANIMATED, f'<rect class="paper" width="{WIDTH}" height="330"/>']
    for x, mark, (title, options) in zip(LEFT, "ab", SIDES.items(), strict=True):
        parts += side(x, title, simulate("w1", *options), mark)
    words = "above: replicas with their partitions, as high as their events/s; below: the p99 latency of each burst"
    parts += [text(LEFT[0], 318, words, style="small"), "</svg>"]
    (folder / "moves.svg").write_text("\n".join(parts) + "\n", encoding="utf-8")
