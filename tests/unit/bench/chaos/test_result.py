"""What schedules show is added up under the keys that programs read."""

import msgspec

from bench.chaos.suite import Schedule, outcome

KEYS = [
    "schedules",
    "faults",
    "events",
    "lost",
    "duplicated",
    "order_violations",
    "offset_regressions",
    "zombie_events",
    "wrongly_killed",
    "violations",
    "worst_recovery_s",
]


def test_the_keys_and_what_they_add_up() -> None:
    fine = Schedule(seed=1, faults=("a", "b"), events=100, recovery_s=2.5)
    wrong = Schedule(
        seed=2, faults=("c",), events=50, recovery_s=4.0, lost=["x", "y"], zombie_events=["z"], others=["late"]
    )
    found = msgspec.json.decode(msgspec.json.encode(outcome([fine, wrong], ("disk full: no",))))
    assert [found[key] for key in KEYS] == [2, 3, 150, 2, 0, 0, 0, 1, 0, 4, 4.0]
    assert [one["seed"] for one in found["failed"]] == [2]
    assert found["left_out"] == ["disk full: no"]


def test_nothing_done_is_nothing_wrong() -> None:
    found = outcome([], ())
    assert (found.schedules, found.violations, found.worst_recovery_s) == (0, 0, 0.0)
