"""The shadow: measurements of the real group, and the simulated copy."""

import numpy as np
import pytest
from confluent_kafka import TopicPartition

from autoscaler.live.loads import LoadReader
from autoscaler.model import Action, Decision, PartitionLoad, Plan, RecentArrivals
from autoscaler.ports import NotReadyError
from autoscaler.shadow.measurements import CommittedRates, LagClock, readers_of
from autoscaler.shadow.settings import ShadowSettings
from autoscaler.shadow.shadow_group import ShadowGroup

BOTH = {"a": frozenset({0}), "b": frozenset({1})}


def test_lag_in_seconds_is_the_age_of_the_oldest_waiting_event() -> None:
    clock = LagClock()
    for second in range(11):
        clock.observe(float(second), np.array([100.0 * second, 50.0 * second]))
    assert clock.oldest_age_s(np.array([1000.0, 500.0])) == 0
    assert clock.oldest_age_s(np.array([750.0, 500.0])) == pytest.approx(2.5)
    assert clock.oldest_age_s(np.array([900.0, 0.0])) == pytest.approx(10)


def test_only_a_member_with_lag_shows_its_service_rate() -> None:
    rates, lag = CommittedRates(), np.zeros(2)
    done = np.zeros(2)
    for second in range(40):  # a serves 200/s without a pause and b what arrives, 30/s; both commit every 5 s
        if second % 5 == 0:
            done = np.array([200.0 * second, 30.0 * second])
        lag = np.array([20_000.0 - done[0], 30.0 * second - done[1]])
        rates.observe(float(second), BOTH, done, lag)
    assert rates.service_rate == pytest.approx(200, rel=0.05)
    assert {*rates.commit_intervals_s} == {np.inf, 5}


def test_members_of_the_group_that_read_other_topics_are_not_counted() -> None:
    places = {
        "a": [TopicPartition("orders", 0), TopicPartition("mails", 3)],
        "idle": [],
        "other": [TopicPartition("mails", 0)],
    }
    assert readers_of("orders", places) == {"a": frozenset({0}), "idle": frozenset()}


class Loads(LoadReader):
    """A steady load that the real group commits at once or never."""

    def __init__(self, rate: float, commits: bool) -> None:
        self.at_s, self._rate, self._commits, self._lag = 0.0, rate, commits, 0.0
        self.missing_data, self.without_commit = "", frozenset[int]()

    def read(self) -> tuple[float, tuple[PartitionLoad, ...]]:
        self.at_s += 1
        self._lag += 0 if self._commits or self.at_s == 1 else self._rate
        return self.at_s, tuple(PartitionLoad(one, self._rate, int(self._lag)) for one in range(2))

    def recent(self) -> RecentArrivals | None:
        return None


def group(loads: Loads, members: dict[str, frozenset[int]] | None = None, rate: float = 100.0) -> ShadowGroup:
    settings = ShadowSettings(policy="static", member_startup_s=3.0, member_rate=rate)
    return ShadowGroup(loads, lambda: BOTH if members is None else members, settings)


def test_the_shadow_starts_with_the_real_count_and_accounts_for_both_groups() -> None:
    shadow = group(Loads(40.0, commits=True))
    assert shadow.observe().replica_names == ("payment-0", "payment-1")
    shadow.apply(Decision(Action.DOWN, Plan(("payment-0",), {0: "payment-0", 1: "payment-0"}), ""))
    for _ in range(60):
        seen = shadow.observe()
    assert [load.lag for load in seen.partitions] == [0, 0], "80 events/s are within the 100 of one"
    assert (shadow.actual.replica_s, shadow.shadow.replica_s, shadow.compared_s) == (120, 60, 60)
    assert shadow.actual.late_s == shadow.shadow.late_s == 0


def test_a_shadow_plan_takes_effect_after_the_start_up_time() -> None:
    shadow = group(Loads(90.0, commits=False), {"a": frozenset({0, 1})})
    shadow.observe()
    shadow.apply(Decision(Action.UP, Plan(("payment-0", "payment-1"), {0: "payment-0", 1: "payment-1"}), ""))
    lags = [[load.lag for load in shadow.observe().partitions] for _ in range(40)]
    assert lags[1] == [80, 80], "one serves 100 of 180 each second"
    assert lags[-1] == [0, 0]
    assert [one.ready for one in shadow.observe().replicas] == [True, True]
    assert shadow.actual.lag_s > 30
    assert shadow.actual.late_s == 0, "the interval of its commits is unknown"
    assert shadow.shadow.lag_s < 0.5


def test_there_is_no_comparison_without_members_or_a_service_rate() -> None:
    with pytest.raises(NotReadyError, match="members of the group"):
        group(Loads(40.0, commits=True), {}).observe()
    idle = group(Loads(40.0, commits=True), rate=0.0)
    for _ in range(20):
        with pytest.raises(NotReadyError, match="service rate of a member"):
            idle.observe()
    assert idle.compared_s == 0
