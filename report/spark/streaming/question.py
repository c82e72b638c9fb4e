"""What is asked of a stream. Kept beside the checkpoint, which holds half-counted windows of just this question."""

from pathlib import Path
from typing import Final

import msgspec

from contracts.topics import Topic, qualified
from report.run_info import RunInfo
from report.spark.errors import ReportError

QUESTION_FILE: Final = "question.json"
DELAY_S: Final = 10.0


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Topics, window and promise. Lengths in seconds."""

    topics: dict[str, Topic]
    """Name on the broker → topic. The input topic counts what was asked for, the settled payments what was done."""
    latency_target_s: float
    window_s: int = 60
    delay_s: float = DELAY_S
    """A window is closed when an event intended so long after its end was seen. In-SLA counts are exact when it covers
    the latency target, the time in which a completion becomes readable, and how late the generator sends."""

    def problems(self) -> list[str]:
        """Return what is wrong with it, one line each."""
        found = []
        if self.window_s < 1:
            found.append(f"--window {self.window_s}: at least one second")
        if self.delay_s <= self.latency_target_s:
            found.append(
                f"--delay {self.delay_s:g}: must exceed the latency target, {self.latency_target_s:g} s; "
                "an event could otherwise be in time and yet come after its window was closed"
            )
        return found

    def keep(self, folder: Path) -> None:
        """Write it into `folder`, or check that the folder was begun with it. Raises ReportError when it was not."""
        place = folder / QUESTION_FILE
        if not place.exists():
            folder.mkdir(parents=True, exist_ok=True)
            temporary = place.with_suffix(".tmp")
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2))
            temporary.replace(place)
            return
        try:
            before = msgspec.json.decode(place.read_bytes(), type=Question)
        except msgspec.DecodeError as broken:
            raise ReportError(f"{place}: not what this command wrote ({broken}); name another --out") from broken
        if changed := [name for name in self.__struct_fields__ if getattr(before, name) != getattr(self, name)]:
            raise ReportError(f"{folder} was begun with another {', '.join(changed)}; name another --out")


def topics_of_run(run: RunInfo) -> dict[str, Topic]:
    """Return what tells of every event that it was wanted, and that it was done."""
    first = Topic.ORDERS_PLACED if run.topology == "pipeline" else Topic.PAYMENTS_REQUESTED
    return {qualified(run.run, topic): topic for topic in (first, Topic.PAYMENTS_SETTLED)}
