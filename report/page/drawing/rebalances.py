"""The pause of each round, by how many partitions moved: a dot each, on a logarithmic axis, with the target."""

from typing import Final

from report.page.drawing.frame import Frame
from report.page.drawing.scales import Scale
from report.page.drawing.svg import drawing, element, number, text
from report.result import REBALANCE_KINDS, RebalanceRound, Rebalances
from report.wording import duration

HEIGHT_PX: Final = 220
TOP_PX: Final = 30
BOTTOM_PX: Final = 40
LEAST_MS: Final = 0.1
CLASSES: Final = dict(zip(REBALANCE_KINDS, ("a", "b", "c"), strict=True))
MOST_DOTS: Final = 1_000


def rebalances(found: Rebalances, latency_target_s: float, width: int) -> str:
    """Return the drawing. Needs a round of which the pause is known."""
    measured = [(one, one.pause_s * 1000) for one in found.rounds if one.pause_s is not None][-MOST_DOTS:]
    frame, target_ms = Frame.of(width, 1), latency_target_s * 1000
    values = [target_ms, *(max(pause_ms, LEAST_MS) for _, pause_ms in measured)]
    x = Scale(min(values) * 0.7, max(values) * 1.4, frame.left, frame.right, log=True)
    most = max(one.moved for one, _ in measured)
    y = Scale(0, most + 1, HEIGHT_PX - BOTTOM_PX, TOP_PX)
    parts = [text("Partitions that moved, and how long one of them stood still", frame.left, 14, class_="title")]
    for value in x.ticks((frame.right - frame.left) // 70):
        at = float(x.at([value])[0])
        parts.append(element("path", d=f"M{number(at)} {TOP_PX}V{HEIGHT_PX - BOTTOM_PX}", class_="grid"))
        parts.append(text(duration(value / 1000), at, HEIGHT_PX - BOTTOM_PX + 18, anchor="middle"))
    for value in y.ticks(4):
        if value == round(value):
            at = float(y.at([value])[0])
            parts.append(element("path", d=f"M{frame.left} {number(at)}H{frame.right}", class_="grid"))
            parts.append(text(f"{value:,.0f}", frame.left - 6, at + 4, anchor="end"))
    target = float(x.at([target_ms])[0])
    parts.append(element("path", d=f"M{number(target)} {TOP_PX}V{HEIGHT_PX - BOTTOM_PX}", class_="line target"))
    parts.append(text("target", target - 5, TOP_PX + 10, class_="tick target", anchor="end"))
    parts += [_dot(one, pause_ms, x, y) for one, pause_ms in measured]
    return drawing([*parts, *_key(measured, frame)], width=width, height=HEIGHT_PX)


def _dot(one: RebalanceRound, pause_ms: float, x: Scale, y: Scale) -> str:
    cx, cy = float(x.at([pause_ms])[0]), float(y.at([one.moved])[0])
    return element("circle", cx=cx, cy=cy, r=3.5, class_=f"line {CLASSES[one.kind]}")


def _key(measured: list[tuple[RebalanceRound, float]], frame: Frame) -> list[str]:
    """Return what the colours mean, of the kinds that there are."""
    kinds = [kind for kind in REBALANCE_KINDS if any(one.kind == kind for one, _ in measured)]
    parts, at = [], float(frame.left)
    for kind in kinds:
        parts.append(element("circle", cx=at + 4, cy=HEIGHT_PX - 8.0, r=3.5, class_=f"line {CLASSES[kind]}"))
        parts.append(text(kind, at + 12, HEIGHT_PX - 4))
        at += 30 + 8 * len(kind)
    return parts
