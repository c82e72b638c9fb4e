"""Windows as a person wants to read them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from report.spark.streaming.windows import SlaWindow
from report.wording import duration, several, share


def line(window: SlaWindow, latency_target_s: float) -> str:
    """Return what is known of a window; its time is UTC."""
    begin = datetime.fromtimestamp(window.start_us // 1_000_000, tz=UTC)
    slowest = None if window.slowest_us is None else window.slowest_us / 1e6
    missing = f", {window.events - window.done:,} not done" if window.done < window.events else ""
    return (
        f"{begin:%Y-%m-%d %H:%M:%S}  {several(window.events, 'event'):>14}  "
        f"{share(window.share):>8} within {duration(latency_target_s)}, slowest {duration(slowest)}{missing}"
    )


def summary(
    windows: Sequence[SlaWindow], latency_target_s: float, *, late: int, ahead: int, unreadable: int
) -> list[str]:
    """Return the sums over all windows, and what they leave out.

    late: events of which a record came after their window was closed. ahead: records intended in the future.
    unreadable: records that say nothing.
    """
    events, in_sla = sum(one.events for one in windows), sum(one.in_sla for one in windows)
    said = ["no window is closed yet"]
    if windows:
        kept = f"{share(in_sla / events)} within {duration(latency_target_s)}"
        said = [f"{several(len(windows), 'window')}: {several(events, 'event')}, {kept}"]
    if late:
        said.append(f"{several(late, 'event')} had a record that came after its window was closed; see --delay")
    if ahead:
        said.append(f"{several(ahead, 'record')} not counted: intended in the future; are the clocks right?")
    if unreadable:
        said.append(f"{several(unreadable, 'record')} could not be read: what they speak of is counted as not done")
    return said
