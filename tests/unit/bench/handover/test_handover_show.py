"""What the experiments print and keep: one flat object, one row for each question, tables on the terminal."""

import json
from pathlib import Path

import msgspec
import pytest
from unit.bench.handover.story import evidence, steady, step

from bench import results
from bench.handover import analyse
from bench.handover.experiment import verdict
from bench.handover.load import Sent
from bench.handover.outcomes import FailoverResult, HandoverResult, Outcome
from bench.handover.setup import Setup
from bench.handover.show import FILES, keep
from bench.results import Kept, Origin
from contracts.delivery import Delivery

ORIGIN = Origin(command="tailpack bench handover", commit="0123abc", machine="2 cores", measured_on="2026-01-05")
ROWS = [*steady(0, "a", begin=0, end=1000), *steady(0, "b", begin=1040, end=4000), *steady(1, "c", begin=10, end=4000)]
STORY = evidence(ROWS, [step(analyse.KNOWN_DEATH, 999, [(0, "a", "b")])], quiet=[(0, 900)])
PROMISED = {
    "moved_p99_s", "moved_max_s", "unmoved_p99_s", "unmoved_extra_s", "stall_max_s", "plan_to_first_event_s", "lost",
    "duplicates", "order_violations", "offset_regressions", "handovers",
}  # fmt: skip


def said(name: str = "incremental", heartbeat_s: float = 3.0, *, problem: str = "", late_us: int = 900) -> Outcome:
    sent = Sent(acknowledged_us=(), lateness_p99_us=late_us, lateness_max_us=late_us)
    setup = Setup(runtime=Delivery(name), heartbeat_s=heartbeat_s)
    return verdict(setup, sent, problem=problem, interrupted=False)


def handover(name: str = "incremental", heartbeat_s: float = 3.0) -> HandoverResult:
    common = msgspec.structs.asdict(said(name, heartbeat_s))
    return HandoverResult(**common, steps="mixed", figures=analyse.handovers(STORY))


def outcomes() -> list[Outcome]:
    common = msgspec.structs.asdict(said())
    return [
        handover(),
        FailoverResult(**common, figures=analyse.failover(STORY)),
    ]


def test_the_json_of_a_handover_run_is_one_flat_object_with_what_is_promised() -> None:
    printed = json.loads(handover().to_json())
    assert set(printed) >= PROMISED | {"runtime", "heartbeat_s", "moved_p999_s", "events", "kinds", "worst", "wall_s"}
    assert printed["valid"] is True
    assert printed["lateness_p99_s"] == 0.0009


@pytest.mark.parametrize("late_us", [25_001, 400_000])
def test_a_run_whose_load_was_late_does_not_count_and_says_so(late_us: int) -> None:
    found = said(late_us=late_us)
    assert not found.valid
    assert "the load was late" in found.problem


@pytest.mark.parametrize("result", outcomes(), ids=lambda one: type(one).__name__)
def test_a_result_is_kept_with_its_origin_and_a_repeat_takes_its_place(result: Outcome, tmp_path: Path) -> None:
    keep(result, ORIGIN, tmp_path)
    keep(result, ORIGIN, tmp_path)
    assert results.load(FILES[type(result)], type(result), tmp_path) == [Kept(result, ORIGIN)]
