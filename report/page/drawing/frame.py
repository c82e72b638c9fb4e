"""The place in which series over time are drawn: margins, time axis, grid."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from report.page.drawing.scales import Scale, clock, time_ticks
from report.page.drawing.svg import WIDE_PX, element, number, text

PX_PER_TICK: Final = 85
HALF_LETTER_PX: Final = 3.8


@dataclass(frozen=True, slots=True)
class Frame:
    """From pixel `left` to `right` lie the seconds of the run."""

    width: int
    left: int
    right: int
    seconds: int

    @classmethod
    def of(cls, width: int, seconds: int) -> "Frame":
        """Return the frame of a drawing of that width."""
        left, right = (52, 10) if width >= WIDE_PX else (46, 6)
        return cls(width, left, width - right, max(seconds, 1))

    @property
    def x(self) -> Scale:
        """Seconds to pixels."""
        return Scale(0, self.seconds, self.left, self.right)

    def edges(self, step: int) -> NDArray[np.float64]:
        """Return where the buckets of `step` seconds begin, and where the last one ends."""
        return self.x.at(np.append(np.arange(0, self.seconds, step), self.seconds))


def time_axis(frame: Frame, top: float, bottom: float) -> str:
    """Return the vertical lines of round moments and their labels; the script replaces them when it zooms."""
    parts = []
    for at_s in time_ticks(frame.seconds, (frame.right - frame.left) // PX_PER_TICK):
        x = float(frame.x.at([at_s])[0])
        parts.append(element("path", d=f"M{number(x)} {number(top)}V{number(bottom)}", class_="grid"))
        words = clock(at_s)
        parts.append(text(words, min(x, frame.width - HALF_LETTER_PX * len(words)), bottom + 18, anchor="middle"))
    return element("g", *parts, data_axis="")


def grid(
    frame: Frame, scale: Scale, count: int, *, whole: bool = False, word: Callable[[float], str] | None = None
) -> str:
    """Return horizontal lines at about `count` values with their labels. whole: only whole numbers."""
    say = word or (lambda value: f"{value:,.10g}")
    parts = []
    for value in scale.ticks(count):
        if whole and value != round(value):
            continue
        y = float(scale.at([value])[0])
        parts.append(element("path", d=f"M{frame.left} {number(y)}H{frame.right}", class_="grid"))
        parts.append(text(say(value), frame.left - 6, y + 4, anchor="end"))
    return element("g", *parts)


def clip(frame: Frame, name: str, bottom: float) -> str:
    """Return the definition that keeps zoomed lines within the axes."""
    return element(
        "clipPath", element("path", d=f"M{frame.left} 0H{frame.right}V{number(bottom)}H{frame.left}z"), id=name
    )
