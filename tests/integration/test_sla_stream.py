"""The SLA share of each window of a run that goes on: stopped, crashed, started again, and equal to the batch."""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from kafka_helpers import create_topics, produce, wait_for
from published_runs import PARTITIONS, MadeUpRun, made_up_run, publish, records_of, run_info
from spark_helpers import SPARK, spark
from tailpack_command import tailpack

from contracts.connection import Connection
from contracts.events import PaymentSettled
from contracts.topics import Topic
from report.spark.errors import ReportError
from report.spark.events import event_rows
from report.spark.records import typed_records
from report.spark.security import kafka_options
from report.spark.source import read_topics
from report.spark.streaming.follow import finish, follow
from report.spark.streaming.query import WindowStream, own_session
from report.spark.streaming.question import Question, topics_of_run
from report.spark.streaming.transforms import AHEAD_US, COUNTED, NOBODY, believable, sla_windows
from report.spark.streaming.windows import SlaWindow

pytestmark = [pytest.mark.kafka, *SPARK, pytest.mark.long, pytest.mark.timeout(420)]
STARTED_US: Final = 1_700_000_000_000_000
RATE: Final = 100
TARGET_S: Final = 0.012
WINDOW_S: Final = 2
LOST, SETTLED_TWICE, TOOK_LONGER_FIRST = 11, 22, 33


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark(tmp_path_factory.mktemp("spark"))


class Story:
    """A run of twelve seconds that reaches the broker piece by piece, and what counts it."""

    def __init__(self, session: Any, kafka: str, namespace: str, folder: Path) -> None:
        self.connection = Connection(bootstrap_servers=kafka, namespace=namespace)
        self.run: MadeUpRun = made_up_run(12 * RATE, rate=RATE, started_us=STARTED_US, seed=5)
        self.info = msgspec.structs.replace(
            run_info(self.connection, self.run, pipeline=False), latency_target_s=TARGET_S
        )
        self.folder, self.session = folder, session
        self.question = Question(
            topics=topics_of_run(self.info), latency_target_s=TARGET_S, window_s=WINDOW_S, delay_s=1.0
        )
        self.info.save(folder)
        create_topics(kafka, namespace, PARTITIONS)

    def publish(self, from_s: int, until_s: int) -> None:
        def copies(topic: Topic, k: int) -> int:
            if not from_s * RATE <= k < until_s * RATE or (topic, k) == (Topic.PAYMENTS_SETTLED, LOST):
                return 0
            return 2 if (topic, k) == (Topic.PAYMENTS_SETTLED, SETTLED_TWICE) else 1

        publish(self.connection, self.run, pipeline=False, copies=copies)

    def settle_again(self, k: int, later_us: int) -> None:
        """Event k is also settled by a replica that took longer over it."""
        settled = records_of(self.run, k)[Topic.PAYMENTS_SETTLED]
        assert isinstance(settled, PaymentSettled)
        done_us = (settled.timeline.done_us or 0) + later_us
        again = msgspec.structs.replace(
            settled, timeline=msgspec.structs.replace(settled.timeline, done_us=done_us, replica="payment-9")
        )
        kafka, namespace = self.connection.bootstrap_servers, self.connection.namespace
        produce(kafka, namespace, Topic.PAYMENTS_SETTLED, [msgspec.json.encode(again)], key=f"o-{k:08d}".encode())

    def stream(self, announce: Callable[[Sequence[SlaWindow]], None] = lambda _: None) -> WindowStream:
        options = kafka_options(self.connection)
        return WindowStream(own_session(self.session), options, self.question, self.folder / "sla", announce)

    def by_the_report(self) -> list[SlaWindow]:
        """What the report's own event rows say of each window, counted in Python."""
        rows = event_rows(self._records(), None).select("intended_us", "done_us").collect()
        return windows_of([(row.intended_us, row.done_us) for row in rows])

    def by_the_same_transform(self) -> list[SlaWindow]:
        """What the stream's own function says of the topics when they are read as a batch."""
        rows = sla_windows(self._records().select(*COUNTED), self.question).collect()
        windows = [SlaWindow(length_s=WINDOW_S, **row.asDict()) for row in rows]
        return sorted(windows, key=lambda window: window.start_us)

    def _records(self) -> Any:
        topics = self.question.topics
        return typed_records(read_topics(self.session, kafka_options(self.connection), list(topics)), topics)


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


def test_stopped_crashed_and_started_again_the_windows_are_those_of_the_batch(
    session: Any, kafka: str, namespace: str, tmp_path: Path
) -> None:
    story = Story(session, kafka, namespace, tmp_path)
    told: list[SlaWindow] = []

    def crash(windows: Sequence[SlaWindow]) -> None:
        told.extend(windows)
        raise RuntimeError("the power went off between writing the windows and noting that it was done")

    story.publish(0, 5)
    story.settle_again(TOOK_LONGER_FIRST + 5 * RATE, 500_000)  # its slower completion is read before the first one
    with pytest.raises(ReportError, match="the power went off"):
        finish(story.stream(crash), ended=False)
    written = story.stream().windows()
    assert told
    assert written == told, "what was told is in a file, though Spark does not know it yet"

    story.publish(5, 8)  # while nothing runs
    again: list[SlaWindow] = []
    stream = story.stream(again.extend)
    follow(stream, lambda: len(again) > len(told), every_s=0.1)
    assert again[: len(told)] == told, "the batch that was cut off comes again, the same"

    story.publish(8, 12)
    query = stream.start(every_s=0.0)
    wait_for(lambda: query.status["isTriggerActive"], "a micro-batch at work", deadline_s=60)
    query.stop()  # in the middle of it

    story.settle_again(0, 500_000)  # long after its window was closed
    left_out = finish(stream, ended=True)

    found = stream.windows()
    starts = [window.start_us for window in found]
    assert len(starts) == len(set(starts)) == 6
    assert left_out.late == 1
    assert sum(window.events - window.done for window in found) == 1, "the lost one"
    assert 0 < sum(window.in_sla for window in found) < sum(window.done for window in found)
    assert found == story.by_the_report()
    assert found == story.by_the_same_transform()


def test_what_says_nothing_is_counted_and_another_schema_version_ends_it(
    session: Any, kafka: str, namespace: str, tmp_path: Path
) -> None:
    story = Story(session, kafka, namespace, tmp_path)
    story.publish(0, 4)
    produce(kafka, namespace, Topic.PAYMENTS_REQUESTED, [b"not JSON", b'{"order_id": "mine"}'])
    produce(kafka, namespace, Topic.PAYMENTS_SETTLED, [b"not JSON"], key=b"o-00000000")

    left_out = finish(story.stream(), ended=True)

    counted = story.stream().windows()
    assert left_out.unreadable == 3
    assert counted == story.by_the_report()
    lost_here = 1
    assert sum(window.events - window.done for window in counted) == 2 + lost_here, "order 0 was settled readably too"

    newer = msgspec.structs.replace(records_of(story.run, 500)[Topic.PAYMENTS_SETTLED], v=2)  # type: ignore[type-var]
    produce(kafka, namespace, Topic.PAYMENTS_SETTLED, [msgspec.json.encode(newer)])
    for _ in range(2):  # the record is not noted as read
        with pytest.raises(
            ReportError, match="records of schema version 2 beside 1; this release reads 1 only"
        ) as ended:
            finish(story.stream(), ended=True)
        assert "\n" not in str(ended.value)
    assert story.stream().windows() == counted


def test_time_moves_on_without_an_event_and_not_by_an_event_of_the_future(session: Any) -> None:
    now_us = STARTED_US
    question = Question(topics={}, latency_target_s=TARGET_S, window_s=WINDOW_S)
    rows = [
        ("in time", now_us, now_us + 12_000),
        ("too late", now_us, now_us + 12_001),
        (NOBODY, now_us, None),
        (NOBODY, now_us + 60_000_000, None),
        ("in a thousand years", now_us + AHEAD_US + 1_000 * 31_557_600 * 1_000_000, now_us),
    ]
    records = session.createDataFrame(rows, "event_id string, intended_us long, done_us long")

    found = sla_windows(believable(records), question).collect()

    assert [tuple(row) for row in found] == [(now_us, 2, 2, 1, 12_001)]


def test_the_command_closes_every_window_of_a_run_that_is_over(
    session: Any, kafka: str, namespace: str, tmp_path: Path
) -> None:
    story = Story(session, kafka, namespace, tmp_path)
    story.publish(0, 12)

    def sla(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return tailpack("sla", str(tmp_path), "--json", *arguments, deadline_s=300)

    said = sla("--window", str(WINDOW_S))

    assert said.returncode == 0, said.stderr
    told = [msgspec.convert(json.loads(text), SlaWindow) for text in said.stdout.splitlines()]
    assert told == story.by_the_report()
    assert "6 windows: 1,200 events, " in said.stderr

    refused = sla("--window", "60")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.strip() == f"sla: {tmp_path / 'sla'} was begun with another window_s; name another --out"
