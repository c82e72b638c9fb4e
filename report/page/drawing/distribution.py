"""How many events were done within which latency, drawn so that every nine of the tail has the same room."""

import numpy as np

from report.page.drawing.frame import Frame
from report.page.drawing.scales import Scale
from report.page.drawing.svg import WIDE_PX, drawing, element, line, number, text
from report.result import Result
from report.wording import duration, share

NINES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999)
HEIGHT_PX = 330
TOP_PX = 30
BOTTOM_PX = 28
LINE_PX = 24
LETTER_PX, NARROW_LETTER_PX = 6.6, 5.8
Stretch = tuple[float, float]


def distribution(result: Result, width: int) -> str:
    """Return the drawing: latency on a logarithmic axis, the share that is still not done on another."""
    frame = Frame.of(width, 1)
    left = frame.left + (34 if width >= WIDE_PX else 30)
    latency_ms = np.maximum(np.array(result.distribution.latency_s) * 1000, 1e-3)
    target_ms = result.latency_target_s * 1000
    nines = max(3.0, float(np.ceil(np.log10(max(result.events, 10)))))
    low, high = min(float(latency_ms.min()), target_ms) * 0.8, max(float(latency_ms.max()), target_ms) * 1.25
    x = Scale(low, high, left, frame.right, log=True)
    y = Scale(0, nines * 1.03, HEIGHT_PX - BOTTOM_PX, TOP_PX)
    height = y.at(_nines(np.array(result.distribution.share), nines))
    promised = float(y.at(_nines(np.array([result.percentile]), nines))[0])
    target = float(x.at([target_ms])[0])
    parts = [text("Share of events done within …", left, 14, class_="title")]
    for value in x.ticks((frame.right - left) // 70):
        at = float(x.at([value])[0])
        parts.append(element("path", d=f"M{number(at)} {TOP_PX}V{HEIGHT_PX - BOTTOM_PX}", class_="grid"))
        parts.append(text(_tick(value), at, HEIGHT_PX - 8, anchor="middle"))
    for nine in NINES:
        at = float(y.at(_nines(np.array([nine]), nines))[0])
        if at >= TOP_PX and -np.log10(1 - nine) <= nines + 1e-9:
            parts.append(element("path", d=f"M{left} {number(at)}H{frame.right}", class_="grid"))
            parts.append(text(_nine(nine), left - 6, at + 4, anchor="end"))
    at_ms = x.at(latency_ms)
    parts += [
        element(
            "path", d=line(np.repeat(at_ms, 2), np.append(y.start, np.repeat(height, 2)[:-1])), class_="line a thick"
        ),
        element("path", d=f"M{left} {number(promised)}H{frame.right}", class_="line target"),
        element("path", d=f"M{number(target)} {TOP_PX}V{HEIGHT_PX - BOTTOM_PX}", class_="line target"),
        element("circle", cx=target, cy=promised, r=4.5, class_="dot target"),
        _promise(
            result,
            target,
            promised,
            within=(left, frame.right),
            curve=_crossed(at_ms, height, promised),
            letter_px=LETTER_PX if width >= WIDE_PX else NARROW_LETTER_PX,
        ),
    ]
    return drawing(parts, width=width, height=HEIGHT_PX)


def _promise(result: Result, x: float, y: float, *, within: Stretch, curve: Stretch, letter_px: float) -> str:
    """Return the words at the promise: left of it, right of it or at the axis, where the curve does not pass."""
    words = f"promised: {share(result.percentile)} within {duration(result.latency_target_s)}"
    wide = letter_px * len(words)
    places = (("end", x - 8, x - 8 - wide), ("start", x + 8, x + 8), ("start", within[0] + 8, within[0] + 8))
    inside = [place for place in places if within[0] <= place[2] and place[2] + wide <= within[1]] or [places[2]]
    free = [place for place in inside if curve[1] < place[2] or place[2] + wide < curve[0]]
    anchor, at, _ = (free or inside)[0]
    return text(words, at, y - 8, class_="tick target", anchor=anchor)


def _crossed(x: np.ndarray, y: np.ndarray, promised: float) -> Stretch:
    """Return from where to where the curve passes through a line of text that stands on the promised share."""
    through = x[(y <= promised) & (y >= promised - LINE_PX)]
    later = x[y <= promised]
    first = float(later[0]) if len(later) else np.inf
    return first - 4, float(through[-1]) + 4 if len(through) else first + 4


def _nines(shares: np.ndarray, most: float) -> np.ndarray:
    return np.asarray(-np.log10(np.maximum(1 - shares, 10**-most)))


def _nine(value: float) -> str:
    """Return the share with all its nines, which `share` would cut."""
    return f"{value * 100:.6f}".rstrip("0").rstrip(".") + " %"


def _tick(value_ms: float) -> str:
    return f"{value_ms:.10g} ms" if value_ms < 1000 else f"{value_ms / 1000:.10g} s"
