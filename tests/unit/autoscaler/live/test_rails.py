"""Rails: what an operator writes in [rails] limits every decision, and each decision says which limit was binding."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from unit.autoscaler.builders import Wants, seen

from autoscaler.live.configuration import policy_config_of, read
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.windows import Window, in_windows
from autoscaler.model import Action
from autoscaler.policies.guards import add_guards
from autoscaler.policies.guards.holds import Steps
from autoscaler.policies.settings import GuardSettings, Limits, PolicySettings
from autoscaler.records import decision_record
from contracts.validation import InvalidSettingsError

FILE = """
bootstrap_servers = "127.0.0.1:9"
policy = "tail-aware"
state_dir = "state"
initial_replicas = 3
goal = "reliability"
[rails]
min = 2
max = 6
cool_down_down_s = "60s"
"""


def configured(folder: Path, text: str) -> AutoscalerSettings:
    (folder / "own.toml").write_text(text)
    return read(folder / "own.toml", {}).settings


def test_rails_replace_the_settings_of_guards_and_a_goal_sets_the_price(tmp_path: Path) -> None:
    settings = configured(tmp_path, FILE)
    assert (settings.min_replicas, settings.max_replicas, settings.cool_down_down_s) == (2, 6, 60)
    assert policy_config_of(settings).options == {"price": 0.25}
    assert configured(tmp_path, FILE.replace("initial_replicas = 3", "")).initial_replicas == 2, "the minimum"
    assert configured(tmp_path, FILE + "[policy_options]\nprice = 0.1").options() == {"price": 0.1}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("max_step = 2", "did you mean max_step"),
        ("min = 4", "must be from 4"),
        ('windows = ["Mon-Fri 8-18"]', "write for example"),
        ('windows = ["Mon 08:00-08:00 all off"]', "never opens"),
        ("max = 6", "max_replicas and [rails] max are the same setting"),
        ('time_zone = "Atlantis"', "unknown; write for example Europe/Berlin"),
    ],
)
def test_wrong_rails_are_refused_in_one_line(tmp_path: Path, line: str, problem: str) -> None:
    limited = FILE.replace("goal", "max_replicas = 99\ngoal").replace("min = 2", "").replace("max = 6", "")
    with pytest.raises(InvalidSettingsError) as wrong:
        configured(tmp_path, limited + line)
    assert [problem in one and "\n" not in one for one in wrong.value.problems] == [True]


def decided(wanted: int, replicas: int, **limits: int) -> Any:
    policy = add_guards(Wants(wanted), PolicySettings(), GuardSettings(max_replicas=6, **limits))
    return policy.decide(seen([10] * 8, replicas=replicas))


def test_steps_are_limited_and_the_record_says_by_what_and_what_was_wanted() -> None:
    decision = decided(8, 2, max_step_up=3)
    record = decision_record(seen([10] * 8, replicas=2), decision, [0.0] * 8, epoch=1, at_us=1, tick=1, policy="wants")
    assert (record.planned_replicas, record.rails, record.uncapped) == (5, ("max", "max_step_up"), 8)
    assert decided(1, 5, max_step_down=1).plan.count == 4
    free = decided(4, 2, max_step_up=3)
    assert (free.plan.count, free.rails, free.uncapped) == (4, (), 0)


def test_a_window_is_open_in_its_time_zone_also_after_midnight() -> None:
    def windowed(at: str) -> Any:
        clock_us = round(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1e6)
        texts = ["Mon-Fri 08:00-18:00 scale-in off"]
        policy = in_windows(Wants(1), texts, "Europe/Berlin", Limits(), "payment", clock_us=lambda: clock_us)
        return policy.decide(seen([10] * 8, replicas=2))

    counts = {"2026-01-05T09:00": 2, "2026-01-05T07:00": 2, "2026-01-05T06:59": 1, "2026-01-04T09:00": 1}
    assert {at: windowed(at).plan.count for at in counts} == counts
    assert windowed("2026-01-05T09:00").rails == ("window",)
    night = Window.of("Fri-Sun 22:00-06:00 all off")
    times = {"2026-01-05T05:59": True, "2026-01-05T06:00": False, "2026-01-05T22:00": False, "2026-01-02T22:00": True}
    assert {at: night.is_open(datetime.fromisoformat(at)) for at in times} == times


def test_moves_wait_for_a_minute_but_the_first_change_and_partitions_without_an_owner_do_not() -> None:
    guard = Steps(Wants(2, action=Action.REASSIGN), limits=Limits(moves_per_minute=5))
    even, other = [0, 1] * 4, [1, 0] * 4

    def actions(*ticks: tuple[float, list[int]]) -> list[Action]:
        return [guard.decide(seen([10] * 8, replicas=2, owned=owned, at_s=at_s)).action for at_s, owned in ticks]

    assert actions((0, even), (1, other), (60, other), (61, other)) == [
        "reassign",
        "no-change",
        "no-change",
        "reassign",
    ]
    died = replace(seen([10] * 8, replicas=2, owned=even, at_s=62), assignment=dict.fromkeys(range(8), "gone"))
    assert guard.decide(died).rails == (), "partitions moved a second ago, and some have lost their owner"
