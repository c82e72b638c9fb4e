"""SVG as text: elements, labels, and paths that are as short as they can be."""

from collections.abc import Iterable
from html import escape
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from report.page.reduction import Reduced

Floats = NDArray[np.float64]
WIDE_PX: Final = 960
NARROW_PX: Final = 344
"""Widths that are drawn: one for screens and print, one for phones, so that text keeps its size."""


def element(name: str, *content: str, **attributes: object) -> str:
    """Return an element. Attributes: `_` stands for `-`, a trailing one is dropped (class_); None leaves it out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(content)}</{name}>" if content else f"<{name}{given}/>"


def number(value: object) -> str:
    """Return a coordinate to a tenth of a pixel, without a needless zero; other values as they are."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def text(words: str, x: float, y: float, *, class_: str = "tick", anchor: str | None = None) -> str:
    """Return a label. anchor: start (default), middle or end."""
    return element("text", escape(words), x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def drawing(content: Iterable[str], *, width: int, height: float, **attributes: object) -> str:
    """Return a whole drawing that the page scales to its column."""
    return element(
        "svg",
        *content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {number(float(height))}",
        aria_hidden="true",
        focusable="false",
        **attributes,
    )


def line(x: ArrayLike, y: ArrayLike) -> str:
    """Return path data through the points; NaN interrupts it."""
    parts, pen = [], "M"
    for at, value in zip(np.asarray(x, float).tolist(), np.asarray(y, float).tolist(), strict=True):
        if value != value:  # noqa: PLR0124  NaN differs from itself
            pen = "M"
            continue
        parts.append(f"{pen}{number(at)} {number(value)}")
        pen = "L"
    return "".join(parts)


def curve(reduced: Reduced, x: Floats, high: Floats, low: Floats, *, steps: bool) -> str:
    """Return path data of a series: each entry as a step, or, of reduced ones, from its least to its largest value.

    x: left edges of the entries and the right edge of the last; high, low: heights in pixels.
    """
    if reduced.step == 1 and steps:
        return line(np.repeat(x, 2)[1:-1], np.repeat(high, 2))
    middle = (x[:-1] + x[1:]) / 2
    if reduced.step == 1:
        return line(middle, high)
    return line(np.repeat(middle, 2), np.stack([high, low], axis=1).ravel())


def under(x: Floats, high: Floats, bottom: float) -> str:
    """Return path data of the area between the entries and the bottom."""
    known = np.where(np.isnan(high), bottom, high)
    inside = line(np.repeat(x, 2)[1:-1], np.repeat(known, 2))
    return f"M{number(float(x[0]))} {number(bottom)}L{inside[1:]}V{number(bottom)}Z" if inside else ""
