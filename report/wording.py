"""Format numbers. Terminal, page, tables and verdict use these functions, so they round in the same way."""

UNKNOWN = "–"


def share(value: float | None) -> str:
    """Return 0.99948 as "99.948 %". It is truncated, not rounded, so that "100 %" means all."""
    if value is None:
        return UNKNOWN
    return f"{int(value * 100_000 + 1e-6) / 1000:.3f}".rstrip("0").rstrip(".") + " %"


def share_difference(value: float) -> str:
    """Return a difference of shares in percentage points: "+0.250 pp"."""
    return _with_sign(value, f"{abs(100 * value):.3f} pp")


def duration(value_s: float | None) -> str:
    """Return a duration in ms or s: "4.21 ms", "500 ms", "1.25 s"."""
    if value_s is None:
        return UNKNOWN
    size_s = abs(value_s)
    if size_s >= 10:
        return f"{value_s:,.1f} s"
    if size_s >= 1:
        return f"{value_s:.2f} s"
    return f"{value_s * 1000:.0f} ms" if size_s >= 0.01 else f"{value_s * 1000:.2f} ms"


def duration_difference(value_s: float) -> str:
    """Return a difference of durations: "+12 ms"."""
    return _with_sign(value_s, duration(abs(value_s)))


def count(value: int | None) -> str:
    """Return 10240 as "10,240"."""
    return UNKNOWN if value is None else f"{value:,}"


def minutes(value: float | None) -> str:
    """Return replica-minutes with two decimals."""
    return UNKNOWN if value is None else f"{value:.2f}"


def cost_difference(value: float) -> str:
    """Return a difference of replica-minutes: "−1.20"."""
    return _with_sign(value, minutes(abs(value)))


def over(value: float | None) -> str:
    """Return a relative difference in percent: 0.041 becomes "+4.1 %"."""
    return UNKNOWN if value is None else _with_sign(value, f"{abs(100 * value):.1f} %")


def moment(at_s: float) -> str:
    """Return a time since the start of the run as text: "12.1 s", "2:05.1", "2.5 s before the start"."""
    if round(at_s, 1) < 0:
        return f"{moment(-at_s)} before the start"
    if at_s < 60:
        return f"{abs(at_s):.1f} s"
    return f"{int(at_s // 60)}:{at_s % 60:04.1f}"


def plural(number: int, noun: str) -> str:
    """Return "1 event", "2 events"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _with_sign(value: float, size: str) -> str:
    return ("−" if value < 0 else "+" if value > 0 else "") + size
