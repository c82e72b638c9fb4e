"""The live page: records become a state, its differences become a stream, and the server limits its streams."""

import json
import socket
import urllib.request
from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from live_story import SECOND, changed, plan, tick
from small_report import small_run

from autoscaler.live.web import PAGES, Source, respond
from autoscaler.page.feed import KEPT_DIFFERENCES, MAX_ENTRIES, EntryFeed, Feed, html_answer
from autoscaler.page.snapshot import difference, snapshot
from autoscaler.page.state import LiveState
from contracts import pages
from contracts.journal import (
    ExpectedArrivals,
    JournalEntry,
    PartitionState,
    PlanAlternative,
    ReplicaChange,
    TickRecord,
)
from contracts.pages import Answer, WebServer
from tailpack.view import Recording, Simulations


def report(at_s: float, latencies: tuple[int, ...], incarnation: str) -> Any:
    more = {"replica": "payment-0", "incarnation": incarnation, "at_us": round(at_s * SECOND)}
    return SimpleNamespace(latencies=latencies, recent_rebalances=(), **more)


def folded(entries: list[JournalEntry], now_s: float) -> dict[str, Any]:
    state = LiveState(latency_target_s=0.5)
    for entry in entries:
        state.record_entry(entry)
    return json.loads(msgspec.json.encode(snapshot(state, round(now_s * SECOND))))  # type: ignore[no-any-return]


SCALE_OUT: list[JournalEntry] = [
    changed(0, "payment-0", ReplicaChange.READY),
    plan(0, 1, {0: "payment-0", 1: "payment-0"}, action="start", reason="initial", moved=0),
    *(tick(second) for second in (1, 2, 3)),
    changed(4, "payment-1", ReplicaChange.REQUESTED),
    plan(4, 2, {0: "payment-0", 1: "payment-1"}),
    tick(
        4, action="up", reason="60 > 50", epoch=2, planned_replicas=2,
        alternatives=(PlanAlternative(replicas=2, moved=1, in_sla=1.0, cost_s=3.0),),
        expected=ExpectedArrivals(seconds=2.0, events=120.0, low=100.0, high=150.0),
    ),
]  # fmt: skip


def test_a_plan_moves_its_partitions_at_once_and_a_tick_that_precedes_it_does_not_move_them_back() -> None:
    state = folded(SCALE_OUT, 4)
    assert {number: row[0] for number, row in state["partitions"].items()} == {"0": "payment-0", "1": "payment-1"}
    assert state["replicas"]["payment-1"] == ["starting", 4 * SECOND]


def test_equal_decisions_are_one_row_and_a_change_has_moves_alternatives_and_later_its_effect() -> None:
    state = folded([*SCALE_OUT, tick(14, ("payment-0", "payment-1"), ready_replicas=2, epoch=2)], 14)
    same, change, _ = state["decisions"].values()
    assert (same["action"], same["times"], same["why"]) == ("no-change", 3, "nothing is at risk")
    assert (change["replicas"], change["moves"], change["effect"]) == ([1, 2], [[1, "payment-1"]], [18, 2])
    assert change["compared"] == [{"replicas": 2, "moved": 1, "in_sla": 1.0, "cost_s": 3.0}]


def test_a_tick_has_arrivals_needed_replicas_and_the_forecast_as_rates() -> None:
    assert folded(SCALE_OUT, 4)["ticks"]["4000"] == [60.0, 18, 1, 1, 2, 60.0, 50.0, 75.0, 2.0]


def test_a_partition_has_the_age_of_its_oldest_event_and_costs_are_counted_while_the_load_lasts() -> None:
    state = LiveState(latency_target_s=0.5, counted_us=(2 * SECOND, 4 * SECOND))
    loads = (PartitionState(partition=0, arrival_rate=30.0, lag=9, owner="payment-0", oldest_s=0.3),)
    for second in range(7):
        state.record_entry(tick(second, partitions=loads, requested_replicas=2))
    found = snapshot(state, 6 * SECOND)
    assert (found["partitions"], found["cost_s"]) == ({"0": ["payment-0", 30.0, 9, 300]}, 4.0)
    older = (msgspec.structs.replace(loads[0], oldest_s=None),)  # a journal without ages
    state.record_entry(tick(7, partitions=older))
    assert snapshot(state, 7 * SECOND)["partitions"]["0"][3] is None


def test_a_dead_replica_is_shown_for_some_seconds_and_one_that_no_plan_names_is_draining() -> None:
    ready = changed(5, "payment-1", ReplicaChange.READY)
    merged = plan(6, 3, dict.fromkeys((0, 1), "payment-0"))
    assert folded([*SCALE_OUT, ready, merged], 6)["replicas"]["payment-1"][0] == "draining"
    died = [*SCALE_OUT, changed(5, "payment-2", ReplicaChange.DIED), changed(5, "payment-3", ReplicaChange.LEFT)]
    assert folded(died, 6)["replicas"]["payment-2"][0] == "dead"
    assert folded(died, 60)["replicas"].keys() == {"payment-0", "payment-1"}


def test_events_are_counted_from_reports_and_a_new_incarnation_starts_again() -> None:
    state = LiveState(latency_target_s=0.5)
    for at_s, counts, incarnation in ((1, (5, 0, 0), "a"), (2, (7, 0, 0, 0), "a"), (3, (4, 0, 0, 0, 0, 2), "b")):
        state.record_progress(report(at_s, counts, incarnation), count_events=True)
    assert (state.done, state.in_sla) == (18, 16)


def merged(state: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in {**state, **patch}.items() if value is not None}
    nested = [key for key, value in patch.items() if isinstance(value, dict)]
    return found | {key: merged(state.get(key) or {}, patch[key]) for key in nested}


def test_every_difference_is_the_merge_patch_to_the_next_state() -> None:
    before: dict[str, Any] = {}
    for number in range(1, len(SCALE_OUT) + 1):
        after = folded(SCALE_OUT[:number], number)
        assert merged(before, difference(before, after)) == after
        before = after


def events_of(feed: Feed, last_id: str, count: int) -> list[tuple[str, str, Any]]:
    text = b"".join(islice(feed.events(last_id, sleep=lambda _: None), count)).decode()
    parts = [dict(line.split(": ", 1) for line in part.split("\n")) for part in text.split("\n\n")[1:] if part]
    return [(part["id"], part["event"], json.loads(part["data"])) for part in parts if "data" in part]


def test_a_stream_begins_with_the_state_and_a_reconnected_client_gets_what_it_missed() -> None:
    states = iter(range(1000))
    feed = Feed(lambda: {"n": next(states)}, partial(next, count()))
    (first, kind, state), (second, *patch) = events_of(feed, "", 3)
    assert (kind, state, patch) == ("state", {"n": 0}, ["patch", {"n": 1}])
    assert [event[1:] for event in events_of(feed, first, 2)] == [("patch", {"n": 1}), ("patch", {"n": 2})]
    assert events_of(feed, "other-1", 2)[0][1] == "state", "a number of another process means nothing"
    for _ in range(KEPT_DIFFERENCES + 1):
        feed.state()
    assert events_of(feed, second, 2)[0][1] == "state", "too old"


def test_nothing_is_folded_until_a_page_is_open() -> None:
    feed = EntryFeed(0.5)
    for entry in SCALE_OUT:
        feed.record(entry)
    assert not feed._state.plans
    assert feed.feed.state()[1]["epoch"] == 2


def test_what_happened_long_before_a_page_is_opened_is_known() -> None:
    feed = EntryFeed(0.5)
    for entry in SCALE_OUT:
        feed.record(entry)
    tick = next(entry for entry in SCALE_OUT if isinstance(entry, TickRecord))
    for _ in range(2 * MAX_ENTRIES):
        feed.record(tick)
    assert len(feed._waiting) <= MAX_ENTRIES
    assert len(feed.feed.state()[1]["replicas"]) == 2
    assert feed._state.plans


def test_the_cost_of_the_time_before_a_page_is_opened_is_counted() -> None:
    feed = EntryFeed(0.5)
    for second in range(1001):
        feed.record(tick(second, requested_replicas=4))
    feed.feed.state()
    assert feed._state.cost_s == 4000


def test_the_page_is_one_file_and_its_texts_cannot_be_html() -> None:
    text = html_answer('{"live":false,"runs":[{"name":"</script><script>"}]}').body.decode()
    assert "\\u003c/script>\\u003cscript>" in text
    assert "/* js */" not in text
    script = text.rpartition("<script>")[2]
    assert not [word for word in ("innerHTML", "insertAdjacent", "document.write", "http:", "https:") if word in script]


@pytest.mark.parametrize("live", [None, EntryFeed(0.5).feed])
def test_the_root_is_the_live_page_or_the_list_of_pages(live: Feed | None) -> None:
    source = Source(last_tick=lambda: (1, 0.0), plan=dict, registry=None, tick_limit_s=1, live=live)  # type: ignore[arg-type]
    assert respond(source, "/", "").content_type.startswith("text/html" if live else "application/json")
    assert json.loads(respond(source, "/pages", "").body).keys() == PAGES.keys()
    assert respond(source, "/live/state", "").status[:3] == ("200" if live else "404")


@pytest.fixture
def server() -> Iterator[WebServer]:
    def endless(last_id: str) -> Iterator[bytes]:
        yield f"after {last_id}\n".encode()
        while True:
            yield b"x" * 10_000

    server = WebServer(lambda path, _: Answer(b"", stream=endless) if path == "/stream" else Answer(b"{}"), 0)
    server.start()
    yield server
    server.close()


def test_streams_are_limited_and_a_client_that_does_not_read_is_dropped(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_STREAMS", 1)
    address = f"http://127.0.0.1:{server.port}/stream"
    request = urllib.request.Request(address, headers={"Last-Event-ID": "a-7"})
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        assert answer.readline() == b"after a-7\n"
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(request, timeout=30)  # noqa: S310
        while server.streams:  # the client reads nothing, and the server gives up
            server.service_actions()
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        assert answer.readline() == b"after a-7\n", "its place is free again"


def test_a_stream_outlives_the_deadline_of_other_requests(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"GET /stream HTTP/1.0\r\n\r\n")
        assert client.recv(1)
        now_s = pages.monotonic_s() + pages.REQUEST_DEADLINE_S + 1
        monkeypatch.setattr(pages, "monotonic_s", lambda: now_s)
        server.service_actions()
        assert client.recv(100_000)


@pytest.mark.parametrize("query", ["replicas=x", "replicas=-1", "policy", "speed=2"])
def test_a_query_that_names_no_setting_of_the_page_is_refused(tmp_path: Path, query: str) -> None:
    assert Simulations(small_run(tmp_path / "run"), Recording("", [])).answer(query).status.startswith("400")


def test_code_that_a_run_names_is_not_executed_and_the_answer_says_why(tmp_path: Path) -> None:
    folder = small_run(tmp_path / "run", policy="./mine.py")
    assert b"mine.py is code" in Simulations(folder, Recording("", [])).answer("latency_ms=100").body


def test_an_unexpected_error_of_a_simulation_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.replay.Replay", lambda _: {}["key"])
    answer = Simulations(small_run(tmp_path / "run"), Recording("", [])).answer("policy=0")
    assert json.loads(answer.body) == {"error": "KeyError: 'key'"}
