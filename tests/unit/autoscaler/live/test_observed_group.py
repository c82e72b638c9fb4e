"""A group that is only observed: measurements of the real group, and the model of the group that would be."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest
from confluent_kafka import TopicPartition
from kafka_helpers import DEADLINE_S, wait_for

from autoscaler.live.loads import LoadReader
from autoscaler.live.measurements import CommittedRates, readers_of
from autoscaler.live.observed_group import ObservedGroup
from autoscaler.live.problems import Problems
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Action, Decision, PartitionLoad, Plan, RecentArrivals
from autoscaler.ports import NotReadyError
from autoscaler.records import EventAges
from tailpack.local.ports import free_port

BOTH = {"a": frozenset({0}), "b": frozenset({1})}


def test_lag_in_seconds_is_the_age_of_the_oldest_waiting_event() -> None:
    ages, loads = EventAges(), [PartitionLoad(0, 100.0, 0), PartitionLoad(1, 50.0, 0)]
    for second in range(11):
        ages.add(float(second), loads, None)
    assert ages.of(np.array([0.0, 0.0])).tolist() == [0, 0]
    assert ages.of(np.array([250.0, 500.0])) == pytest.approx([2.5, 10])
    burst = np.zeros((10, 2), np.int64)
    burst[7] = 20
    ages.add(11.0, loads, RecentArrivals(0.1, burst))
    assert ages.of(np.array([20.0, 10.0])) == pytest.approx([0.3, 0.25]), "by the slot of the burst"
    ages.add(12.0, loads[:1], None)
    assert ages.of(np.array([1000.0])) == pytest.approx([1]), "the topic has another number of partitions"


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


def test_a_group_that_has_left_the_topic_has_no_readers_but_one_that_rebalances_has() -> None:
    assert readers_of("orders", {"a": [TopicPartition("mails", 0)], "idle": []}) == {}
    assert readers_of("orders", {"a": [], "b": []}) == {"a": frozenset(), "b": frozenset()}


class Loads(LoadReader):
    """A steady load that the real group commits at once or never."""

    def __init__(self, rate: float, commits: bool) -> None:
        self.at_s, self._rate, self._commits, self._lag = 0.0, rate, commits, 0.0
        self.missing_data, self.without_commit, self.recent = "", frozenset[int](), None

    def read(self) -> tuple[float, tuple[PartitionLoad, ...]]:
        self.at_s += 1
        self._lag += 0 if self._commits or self.at_s == 1 else self._rate
        return self.at_s, tuple(PartitionLoad(one, self._rate, int(self._lag)) for one in range(2))


def group(loads: Loads, members: dict[str, frozenset[int]] | None = None, rate: float = 100.0) -> ObservedGroup:
    settings = AutoscalerSettings(policy="static", act="off", startup_s=3.0, member_rate=rate)
    readers: Any = SimpleNamespace(read=lambda: BOTH if members is None else members, problem="", name="g on t")
    return ObservedGroup(loads, readers, settings, Problems(print))


def test_the_shadow_starts_with_the_real_count_and_accounts_for_both_groups() -> None:
    shadow = group(Loads(40.0, commits=True))
    assert shadow.observe().replica_names == ("payment-0", "payment-1")
    shadow.apply(Decision(Action.DOWN, Plan(("payment-0",), {0: "payment-0", 1: "payment-0"}), ""))
    for _ in range(60):
        seen = shadow.observe()
    assert [load.lag for load in seen.partitions] == [0, 0], "80 events/s are within the 100 of one"
    assert (shadow.actual.replica_s, shadow.would_be.replica_s, shadow.compared_s) == (120, 60, 60)
    assert shadow.actual.late_s == shadow.would_be.late_s == 0


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
    assert shadow.would_be.lag_s < 0.5


def test_a_partition_without_a_commit_is_unknown_and_makes_no_group_late() -> None:
    loads = Loads(40.0, commits=True)
    loads.without_commit = frozenset({1})
    shadow = group(loads)
    for _ in range(20):
        shadow.observe()
    assert shadow.unknown == "partition 1 (without a commit)"
    assert (shadow.actual.late_s, shadow.would_be.late_s) == (0, 0)


def test_a_signal_ends_the_warm_up_at_once_and_the_pages_are_there_before_it(tmp_path: Path) -> None:
    lines = "import time", "class Endless:", " def decide(self, observation):", "  while True: time.sleep(0.01)"
    (tmp_path / "endless.py").write_text("\n".join(lines))
    port = free_port()
    own = {"POLICY": "./endless.py", "TOPIC": "orders", "GROUP": "shipping", "HTTP_PORT": str(port)}
    own |= {"MEMBER_RATE": "9", "BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    environ = os.environ | {f"TAILPACK_{name}": value for name, value in own.items()}
    command = [sys.executable, "-m", "tailpack", "shadow"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        health = wait_for(lambda: _health(port), "the shadow's pages")
        assert "no tick yet" in health
    finally:
        process.send_signal(signal.SIGTERM)
        said, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert errors.splitlines()[1:] == [], "one line says that there is no journal"
    assert said == "shipping on orders: no comparison: the run was too short\n"


def _health(port: int) -> str:
    try:
        urlopen(f"http://127.0.0.1:{port}/healthz", timeout=DEADLINE_S)
    except HTTPError as answered:
        return answered.read().decode()
    except OSError:
        pass
    return ""


def test_there_is_no_comparison_without_members_or_a_service_rate() -> None:
    with pytest.raises(NotReadyError, match="members of the group"):
        group(Loads(40.0, commits=True), {}).observe()
    idle = group(Loads(40.0, commits=True), rate=0.0)
    for _ in range(20):
        with pytest.raises(NotReadyError, match="service rate of a member"):
            idle.observe()
    assert idle.compared_s == 0
