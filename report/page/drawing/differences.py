"""Differences to the reference with their intervals: what covers the line at zero is not distinguishable."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from report.page.comparison_view import Gap
from report.page.drawing.scales import Scale
from report.page.drawing.svg import WIDE_PX, drawing, element, number, text

ROW_PX: Final = 30
TOP_PX: Final = 12
AXIS_PX: Final = 26
LETTER_PX: Final = 7.0


def differences(rows: Sequence[tuple[str, Gap]], width: int, *, word: Callable[[float], str]) -> str:
    """Return the drawing, a row for each label. rows: at least one. word: says a difference with its unit."""
    wide = width >= WIDE_PX
    left = 16.0 + (min(260.0, LETTER_PX * max(len(label) for label, _ in rows)) if wide else 0.0)
    scale = Scale(*_limits([gap for _, gap in rows]), left, width - 16.0)
    row = ROW_PX if wide else ROW_PX + 16
    bottom = TOP_PX + row * len(rows)
    zero = float(scale.at([0.0])[0])
    parts = []
    for value in scale.ticks(8 if wide else 4):
        at = float(scale.at([value])[0])
        parts.append(element("path", d=f"M{number(at)} {TOP_PX}V{bottom}", class_="grid"))
        parts.append(text(word(value), min(at, width - 26.0), bottom + 18, anchor="middle"))
    parts.append(element("path", d=f"M{number(zero)} {TOP_PX}V{bottom}", class_="zero"))
    for position, (label, gap) in enumerate(rows):
        y = TOP_PX + row * position + (ROW_PX / 2 if wide else ROW_PX / 2 + 16)
        parts.append(
            text(label, left - 10, y + 4, class_="strong", anchor="end")
            if wide
            else text(label, 4, y - 14, class_="strong")
        )
        parts.append(_interval(label, gap, scale, y, word))
    return drawing(parts, width=width, height=bottom + AXIS_PX)


def _interval(label: str, gap: Gap, scale: Scale, y: float, word: Callable[[float], str]) -> str:
    low, mean, high = map(float, scale.at([gap.low, gap.mean, gap.high]))
    sure = "surely" if gap.distinguishable else "same"
    words = f"{label}: {word(gap.mean)}, {word(gap.low)} to {word(gap.high)}"
    data = f"M{number(low)} {number(y)}H{number(high)}M{number(low)} {number(y - 4)}v8M{number(high)} {number(y - 4)}v8"
    return element("path", d=data, class_=f"whisker {sure}") + element(
        "circle", element("title", escape(words)), cx=mean, cy=float(y), r=5.0, class_=f"point {sure}"
    )


def _limits(gaps: Sequence[Gap]) -> tuple[float, float]:
    values = [0.0, *(value for gap in gaps for value in (gap.low, gap.mean, gap.high))]
    margin = 0.06 * (max(values) - min(values)) or 1.0
    return min(values) - margin, max(values) + margin
