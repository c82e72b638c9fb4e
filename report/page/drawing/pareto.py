"""What each policy kept late for what it cost, and who of them is beaten by nobody."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from report.page.comparison_view import Compared, Group
from report.page.drawing.frame import Frame, grid
from report.page.drawing.scales import Scale
from report.page.drawing.svg import WIDE_PX, drawing, element, number, text
from report.wording import minutes, share

HEIGHT_PX: Final = 380
TOP_PX: Final = 30
BOTTOM_PX: Final = 46
NONE_LATE: Final = 1e-6
"""Where "none late" stands on a logarithmic axis."""
LETTER_PX: Final = 7.0
Place = tuple[float, float]
PLACES: Final = (
    ("start", 9, 4),
    ("end", -9, 4),
    ("middle", 0, -11),
    ("middle", 0, 20),
    ("start", 9, -11),
    ("end", -9, 20),
    ("start", 9, 20),
    ("end", -9, -11),
)
"""Where a name may stand at its point: anchor and distance. The first that is free is taken."""


@dataclass(frozen=True, slots=True)
class Box:
    """A place on the drawing that is taken."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Tell whether both cover some place."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def pareto(group: Group, width: int) -> str:
    """Return the drawing: replica-minutes against the share of late events. Bars are intervals."""
    frame = Frame.of(width, 1)
    left = frame.left + (20 if width >= WIDE_PX else 8)
    x = Scale(*_costs(group), left, frame.right)
    y = Scale(*_lateness(group), HEIGHT_PX - BOTTOM_PX, TOP_PX, log=True)
    parts = [
        text("Share of late events", left, 14, class_="title"),
        text("replica-minutes" + ("; dotted: the bound" if group.bound_replica_minutes else ""),
             (left + frame.right) / 2, HEIGHT_PX - 6, anchor="middle"),
        grid(Frame(width, left, frame.right, 1), y, 8, word=_percent),
    ]  # fmt: skip
    for value in x.ticks((frame.right - left) // 90):
        at = float(x.at([value])[0])
        parts.append(element("path", d=f"M{number(at)} {TOP_PX}V{HEIGHT_PX - BOTTOM_PX}", class_="grid"))
        parts.append(text(f"{value:,.10g}", at, HEIGHT_PX - BOTTOM_PX + 18, anchor="middle"))
    promised = float(y.at([_late(group.percentile)])[0])
    parts.append(element("path", d=f"M{left} {number(promised)}H{frame.right}", class_="line target"))
    parts.append(
        text(f"promised: {share(group.percentile)}", frame.right, promised - 6, class_="tick target", anchor="end")
    )
    if group.bound_replica_minutes:
        at = float(x.at([group.bound_replica_minutes])[0])
        parts.append(
            element(
                "path", d=f"M{number(at)} {TOP_PX}V{HEIGHT_PX - BOTTOM_PX}", class_="stairs", stroke_dasharray="2 3"
            )
        )
    points = {one.label: _place(one, x, y) for one in group.compared}
    stairs = _stairs(group, points, frame.right, TOP_PX)
    whiskers = [_whiskers(one, x, y) for one in group.compared]
    parts += [_path(stairs, "stairs"), *(_path(line, "whisker") for pair in whiskers for line in pair)]
    lines = [_around(line) for line in (stairs, *(line for pair in whiskers for line in pair))]
    crossed = [box for boxes in lines for box in boxes] + [Box(left, promised - 18, frame.right, promised + 1)]
    taken = [Box(at - 7, to - 7, at + 7, to + 7) for at, to in points.values()]
    within = Box(left, 0, frame.right, HEIGHT_PX - BOTTOM_PX)
    for position, one in enumerate(group.compared, start=1):
        parts += [
            _point(one, *points[one.label]),
            _name(one.label, position, points[one.label], taken=taken, crossed=crossed, within=within),
        ]
    return drawing(parts, width=width, height=HEIGHT_PX)


def _late(in_sla: float) -> float:
    return max(1 - in_sla, NONE_LATE)


def _place(one: Compared, x: Scale, y: Scale) -> Place:
    return float(x.at([one.replica_minutes.mean])[0]), float(y.at([_late(one.in_sla.mean)])[0])


def _costs(group: Group) -> tuple[float, float]:
    all_costs = [value for one in group.compared for value in (one.replica_minutes.low, one.replica_minutes.high)]
    all_costs += [group.bound_replica_minutes] if group.bound_replica_minutes else []
    margin = max(0.08 * (max(all_costs) - min(all_costs)), 0.02 * max(all_costs), 0.01)
    return max(0.0, min(all_costs) - margin), max(all_costs) + margin


def _lateness(group: Group) -> tuple[float, float]:
    shares = [group.percentile, *(share for one in group.compared for share in (one.in_sla.low, one.in_sla.high))]
    late = list(map(_late, shares))
    return min(late) / 2, min(2.0, 3 * max(late))


def _stairs(group: Group, points: dict[str, Place], right: float, top: float) -> list[Place]:
    """Return the corners of the front as stairs: whoever lies above and to the right of them is beaten."""
    front = sorted(points[one.label] for one in group.compared if one.on_front)
    if not front:
        return []
    corners = [(front[0][0], float(top)), front[0]]
    for at, to in front[1:]:
        corners += [(at, corners[-1][1]), (at, to)]
    return [*corners, (float(right), corners[-1][1])]


def _whiskers(one: Compared, x: Scale, y: Scale) -> tuple[list[Place], list[Place]]:
    """Return the ends of the lines that show the intervals: of cost, of lateness."""
    at, to = _place(one, x, y)
    left, right = map(float, x.at([one.replica_minutes.low, one.replica_minutes.high]))
    worst, best = map(float, y.at([_late(one.in_sla.low), _late(one.in_sla.high)]))
    return [(left, to), (right, to)], [(at, worst), (at, best)]


def _path(corners: Sequence[Place], class_: str) -> str:
    data = "L".join(f"{number(at)} {number(to)}" for at, to in corners)
    return element("path", d=f"M{data}", class_=class_) if corners else ""


def _around(corners: Sequence[Place]) -> list[Box]:
    """Return what lines from corner to corner cover; they run along the axes."""
    return [
        Box(min(a[0], b[0]) - 1, min(a[1], b[1]) - 1, max(a[0], b[0]) + 1, max(a[1], b[1]) + 1)
        for a, b in pairwise(corners)
        if a != b
    ]


def _point(one: Compared, at: float, to: float) -> str:
    words = f"{one.label}: {share(one.in_sla.mean)} in time for {minutes(one.replica_minutes.mean)} replica-minutes"
    return element(
        "circle",
        element("title", escape(words)),
        cx=at,
        cy=to,
        r=5.5,
        class_="point front" if one.on_front else "point",
    )


def _name(label: str, position: int, point: Place, *, taken: list[Box], crossed: Sequence[Box], within: Box) -> str:
    """Return the label where it covers nothing, or else nothing but lines; or else its number in the table."""
    for words, spared in ((label, [*taken, *crossed]), (label, taken), (str(position), taken)):
        wide = LETTER_PX * len(words)
        for anchor, right, down in PLACES:
            x, y = point[0] + right, point[1] + down
            start = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            box = Box(start, y - 11, start + wide, y + 3)
            inside = box.left >= within.left and box.right <= within.right + 4 and box.bottom <= within.bottom
            if inside and not any(map(box.meets, spared)):
                taken.append(box)
                return text(words, x, y, class_="strong", anchor=anchor)
    return text(str(position), point[0] + 9, point[1] + 4, class_="strong")


def _percent(late: float) -> str:
    return "none" if late <= NONE_LATE else f"{late * 100:.10g} %"
