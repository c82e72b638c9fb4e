"""Numbers as a reader wants them; one place, so that terminal, page and verdict agree."""


def share(value: float) -> str:
    """Return 0.99948 as "99.948 %"; cut, not rounded, so that "100 %" means all."""
    text = f"{int(value * 100_000 + 1e-6) / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{text} %"


def duration(value_s: float | None) -> str:
    """Return seconds in the unit that reads best: "4.21 ms", "500 ms", "1.25 s", "–" for unknown."""
    if value_s is None:
        return "–"
    size_s = abs(value_s)
    if size_s >= 10:
        return f"{value_s:,.1f} s"
    if size_s >= 1:
        return f"{value_s:.2f} s"
    return f"{value_s * 1000:.0f} ms" if size_s >= 0.01 else f"{value_s * 1000:.2f} ms"


def count(value: int) -> str:
    """Return 10240 as "10,240"."""
    return f"{value:,}"


def minutes(value: float | None) -> str:
    """Return replica-minutes with two decimals, "–" for unknown."""
    return "–" if value is None else f"{value:.2f}"


def moment(at_s: float) -> str:
    """Return a time since the start of the run: "12.1 s", "2:05.1", "−2.5 s"."""
    if round(at_s, 1) < 0:
        return f"−{moment(-at_s)}"
    if at_s < 60:
        return f"{abs(at_s):.1f} s"
    return f"{int(at_s // 60)}:{at_s % 60:04.1f}"


def several(number: int, noun: str) -> str:
    """Return "1 event", "2 events"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
