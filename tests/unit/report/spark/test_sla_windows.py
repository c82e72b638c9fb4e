"""Windows on disk, in words, and the question that a folder was begun with."""

from pathlib import Path

import msgspec
import pytest

from contracts.topics import Topic
from report.spark.errors import ReportError
from report.spark.streaming.question import Question
from report.spark.streaming.windows import SlaWindow, load_windows, save_windows
from report.spark.streaming.words import line, summary

TARGET_S = 0.5
QUESTION = Question(topics={"r.payments.settled": Topic.PAYMENTS_SETTLED}, latency_target_s=TARGET_S)


def window(minute: int, *, events: int = 1_000, in_sla: int = 999) -> SlaWindow:
    return SlaWindow(
        start_us=minute * 60_000_000, length_s=60, events=events, done=events, in_sla=in_sla, slowest_us=812_000
    )


def test_a_batch_that_is_repeated_replaces_its_file(tmp_path: Path) -> None:
    save_windows(tmp_path, 3, [window(1), window(2)])
    save_windows(tmp_path, 10, [window(3)])
    save_windows(tmp_path, 3, [window(1), window(2)])

    assert load_windows(tmp_path) == [window(1), window(2), window(3)]
    assert sorted(place.name for place in tmp_path.iterdir()) == ["batch-00000003.jsonl", "batch-00000010.jsonl"]


def test_a_file_that_is_cut_off_is_not_taken_for_windows(tmp_path: Path) -> None:
    save_windows(tmp_path, 0, [window(1)])
    place = tmp_path / "batch-00000000.jsonl"
    place.write_bytes(place.read_bytes()[:-9])
    with pytest.raises(msgspec.DecodeError):
        load_windows(tmp_path)


def test_a_window_in_words() -> None:
    assert line(window(1), TARGET_S) == ("1970-01-01 00:01:00    1,000 events    99.9 % within 500 ms, slowest 812 ms")
    nothing = SlaWindow(start_us=0, length_s=60, events=2, done=0, in_sla=0, slowest_us=None)
    assert line(nothing, TARGET_S).endswith("0 % within 500 ms, slowest –, 2 not done")


def test_the_sums_of_all_windows_are_one_share_and_not_a_mean_of_shares() -> None:
    windows = [window(1, events=100, in_sla=0), window(2, events=900, in_sla=900)]
    assert summary(windows, TARGET_S, late=0, ahead=0, unreadable=0) == ["2 windows: 1,000 events, 90 % within 500 ms"]
    assert summary([], TARGET_S, late=1, ahead=2, unreadable=3) == [
        "no window is closed yet",
        "1 event had a record that came after its window was closed; see --delay",
        "2 records not counted: intended in the future; are the clocks right?",
        "3 records could not be read: what they speak of is counted as not done",
    ]


def test_a_folder_answers_one_question(tmp_path: Path) -> None:
    folder = tmp_path / "sla"
    QUESTION.keep(folder)
    QUESTION.keep(folder)
    other = msgspec.structs.replace(QUESTION, window_s=10, delay_s=3.0)
    with pytest.raises(ReportError, match="begun with another window_s, delay_s; name another --out"):
        other.keep(folder)
    (folder / "question.json").write_text("{")
    with pytest.raises(ReportError, match="not what this command wrote"):
        QUESTION.keep(folder)


def test_a_window_waits_longer_than_an_event_may_take() -> None:
    assert QUESTION.problems() == []
    wrong = msgspec.structs.replace(QUESTION, window_s=0, delay_s=TARGET_S)
    assert [problem.partition(":")[0] for problem in wrong.problems()] == ["--window 0", "--delay 0.5"]
