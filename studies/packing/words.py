"""Figures of a comparison in words: for its tables, its claims and the terminal."""

from report.statistics import Interval
from studies.packing.result import Goal, Spread


def plus_minus(found: Interval, times: float = 1.0) -> str:
    """Return the mean and half the width of its interval."""
    mean, half = times * found.mean, times * (found.high - found.low) / 2
    digits = _digits(mean)
    shown = f"{round(mean, digits) + 0.0:,.{digits}f}"  # + 0.0: no -0.00
    return shown if half == 0 else f"{shown} ±{half:,.{digits}f}"


def change(found: Interval) -> str:
    """Return a relative change in per cent and its interval."""
    return f"{percent(found.mean)} ({100 * found.low:+.1f} … {100 * found.high:+.1f})"


def percent(share: float) -> str:
    """Return a relative change in per cent."""
    return f"{100 * share:+.1f} %"


def median(found: Spread | None) -> str:
    """Return the median of single streams and their range; None: nothing was delayed."""
    if found is None:
        return "none delayed"
    middle, least, most = (f"{value:,.{_digits(value)}f}" for value in (found.median, found.least, found.most))
    return middle if least == most else f"{middle} ({least} … {most})"


def share(value: float | None) -> str:
    """Return a share with two digits, – for none."""
    return "–" if value is None else f"{value:.2f}"


def not_dominated(goal: Goal) -> str:
    """Return the names, or that there are none."""
    return ", ".join(goal.undominated) or "none"


def _digits(value: float) -> int:
    """Return how many decimals show three digits of it, at most two."""
    return 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
