"""The SLA share of each window of a run that goes on: stopped, started again, and equal to the report."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from kafka_helpers import create_topics
from published_runs import PARTITIONS, MadeUpRun, made_up_run, publish, run_info
from spark_helpers import SPARK, spark
from tailpack_command import tailpack

from contracts.connection import Connection
from contracts.topics import Topic, qualified
from report.spark.events import event_rows, typed_records
from report.spark.kafka import kafka_options, read_topics
from report.spark.streaming import Question, SlaWindow, Told, count, follow

pytestmark = [pytest.mark.kafka, *SPARK, pytest.mark.long, pytest.mark.timeout(420)]
STARTED_US: Final = 1_700_000_000_000_000
RATE: Final = 100
TARGET_S: Final = 0.012
WINDOW_S: Final = 2
LOST, SETTLED_TWICE = 11, 22


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


class Story:
    """A run of twelve seconds that reaches the broker piece by piece."""

    def __init__(self, session: Any, kafka: str, namespace: str, folder: Path) -> None:
        self.connection = Connection(bootstrap_servers=kafka, namespace=namespace)
        self.run: MadeUpRun = made_up_run(12 * RATE, rate=RATE, started_us=STARTED_US, seed=5)
        info = run_info(self.connection, self.run, pipeline=False)
        msgspec.structs.replace(info, latency_target_s=TARGET_S).save(folder)
        self.session, self.options = session, kafka_options(self.connection)
        topics = {qualified(namespace, one): one for one in (Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED)}
        self.question = Question(topics, TARGET_S, WINDOW_S, 1.0)
        create_topics(kafka, namespace, PARTITIONS)

    def publish(self, from_s: int, until_s: int) -> None:
        def copies(topic: Topic, k: int) -> int:
            if not from_s * RATE <= k < until_s * RATE or (topic, k) == (Topic.PAYMENTS_SETTLED, LOST):
                return 0
            return 2 if (topic, k) == (Topic.PAYMENTS_SETTLED, SETTLED_TWICE) else 1

        publish(self.connection, self.run, pipeline=False, copies=copies)

    def by_the_report(self) -> list[SlaWindow]:
        """What the report's own event rows say of each window, counted in Python."""
        topics = self.question.topics
        records = typed_records(read_topics(self.session, self.options, list(topics)), topics)
        rows = event_rows(records, None).select("intended_us", "done_us").collect()
        return windows_of([(row.intended_us, row.done_us) for row in rows])


def windows_of(events: Sequence[tuple[int, int | None]]) -> list[SlaWindow]:
    slots: dict[int, list[int | None]] = {}
    for intended_us, done_us in events:
        start_us = intended_us - intended_us % (WINDOW_S * 1_000_000)
        slots.setdefault(start_us, []).append(None if done_us is None else done_us - intended_us)
    return [
        SlaWindow(
            start_us=start_us,
            length_s=WINDOW_S,
            events=len(found),
            done=sum(latency is not None for latency in found),
            in_sla=sum(latency is not None and latency <= TARGET_S * 1e6 for latency in found),
            slowest_us=max((latency for latency in found if latency is not None), default=None),
        )
        for start_us, found in sorted(slots.items())
    ]


def test_stopped_and_started_again_each_window_is_told_once_and_is_that_of_the_report(
    session: Any, kafka: str, namespace: str, tmp_path: Path
) -> None:
    story, heard = Story(session, kafka, namespace, tmp_path), list[SlaWindow]()
    story.publish(0, 6)
    first = Told(tmp_path / "sla", story.question, heard.append)
    follow(session, story.options, story.question, first, lambda: len(heard) >= 2)
    assert heard == story.by_the_report()[:2]

    story.publish(6, 10)  # while nothing runs
    heard.clear()
    again = Told(tmp_path / "sla", story.question, heard.append)
    assert len(heard) == 2, "what was told before is told first"
    follow(session, story.options, story.question, again, lambda: len(heard) >= 4)
    story.publish(10, 12)
    count(session, story.options, story.question, again, ended=True)

    assert heard == story.by_the_report()
    assert list(again.windows.values()) == heard
    assert sum(window.events - window.done for window in heard) == 1, "the lost one"
    assert 0 < sum(window.in_sla for window in heard) < sum(window.done for window in heard)


def test_the_command_tells_every_window_of_a_run_that_is_over(
    session: Any, kafka: str, namespace: str, tmp_path: Path
) -> None:
    story = Story(session, kafka, namespace, tmp_path)
    story.publish(0, 12)
    said = tailpack("sla", str(tmp_path), "--json", "--window", str(WINDOW_S), deadline_s=300)
    assert said.returncode == 0, said.stderr
    told = [msgspec.convert(json.loads(text), SlaWindow) for text in said.stdout.splitlines()]
    assert told == story.by_the_report()
    assert "6 windows: 1,200 events, " in said.stderr
    refused = tailpack("sla", str(tmp_path), "--delay", "0.001", deadline_s=300)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "delay must exceed the latency target, 0.012 s" in refused.stderr
