"""A backtest has the known costs of a known load, and reads the words of a user's manifest and Prometheus."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import command_line
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bench.backtest.backtest import backtest
from bench.backtest.contenders import Question, Runs
from bench.backtest.current import read_current
from bench.backtest.parts import BOUND, PART_S, WARM_UP_S, Part, parts_of, run_part
from bench.jobs import Job, sorted_changes
from bench.matrix import Contender
from contracts.validation import InvalidSettingsError
from loadgen.event_writer import NO_KEY, EventWriter
from loadgen.schedule import Spacing
from loadgen.trace import EventTrace, Trace, read_trace
from tailpack.backtest.prometheus import Range, import_rates, service_rate
from tailpack.cli.backtest import FAILED_UNDER
from tailpack.errors import TailpackError


def constant(path: Path, seconds: int, rate: int, partitions: int = 4) -> Path:
    head = "second," + ",".join(f"p{number}" for number in range(partitions))
    rows = [",".join(map(str, [second, *[rate // partitions] * partitions])) for second in range(seconds)]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def question(path: Path) -> Question:
    return Question(
        trace=path, current=read_current("static 4"), policies=[Contender(policy="static-3")],
        set={"payment.service_time_s": 0.005}, service_time_s=0.005,
        latency_target_s=0.5, percentile=0.999, partitions=4, most=4,
    )  # fmt: skip


def test_a_constant_load_has_exact_costs_and_differences(tmp_path: Path) -> None:
    path = constant(tmp_path / "constant.csv", seconds=240, rate=300)
    found = backtest(question(path), read_trace(path), tmp_path, processes=1, announce=lambda *_: None)
    assert not found.failed
    lines = {line.name: line for line in found.lines}
    assert [*lines] == ["today (static 4)", "fixed 2", "static-3"], "two replicas of 200 events/s serve 300"
    costs = {name: line.replica_hours[0] * 3600 / 240 for name, line in lines.items()}
    assert costs == pytest.approx({"today (static 4)": 4, "fixed 2": 2, "static-3": 3})
    change = lines["fixed 2"].cost_change
    assert change
    assert (change.mean, change.low, change.high) == pytest.approx((-0.5, -0.5, -0.5)), "every block costs half"
    assert all(line.in_time == (1, 1) for line in lines.values())
    assert found.packed_replica_hours * 3600 == 2 * 240
    assert found.bound
    assert 0.99 * 1.5 * 240 <= found.bound.replica_hours * 3600 <= 2 * 240, "1.5 replicas are busy"
    assert [block.replicas for block in found.blocks] == [(4, 2, 3)] * len(found.blocks)
    assert found.worst is None


def test_the_command_prints_the_figures_and_fails_under_a_threshold(tmp_path: Path) -> None:
    path = constant(tmp_path / "constant.csv", seconds=60, rate=300)
    words = ["backtest", "--trace", path, "--service-time", "5ms", "--out", tmp_path / "out", "--processes", 1]
    words += ["--current", "static 1", "--policy", "static-4", "--price", "2/h"]
    shown = command_line.run(*words, "--fail-under", "99.9")
    assert shown.exit_code == 0
    rows = {line.split("  ")[0].strip(): line.split() for line in shown.stdout.splitlines()}
    assert rows["static-4"][1:3] == ["100", "%"]
    assert rows["static-4"][4:6] == ["0.0667", "0.133"], "replica-hours and cost of four replicas for a minute"
    assert {"replica-hours", "late", "cost"} <= {*shown.stdout.split()}, "no word of the header is cut"
    page = (tmp_path / "out" / "backtest.html").read_text()
    assert {"today (static 1)", "static-4", "lower bound"} <= {*re.findall(r">([^<>]+)</th>", page)}
    assert page.count("<svg") == 3
    assert {*re.findall(r'(?:stroke|fill|background)[=:]"?var\((--[\w-]+)\)', page)} <= {
        *re.findall(r"(--[\w-]+): ", page)
    }
    assert not re.search(r"src=|<link[^>]+https?:|@import", page), "it loads nothing"
    goals = json.loads(command_line.run(*words, "--goals", "--json").stdout)["lines"]
    prices = {line["name"]: line["settings"].get("policy.price") for line in goals}
    assert prices["tail-aware, savings"] * 25 == pytest.approx(prices["tail-aware, reliability"])
    words[words.index("static-4")] = "static-1"
    late = command_line.run(*words, "--fail-under", "99.9", "--json")
    assert late.exit_code == FAILED_UNDER
    assert json.loads(late.stdout)["worst"]["peak_events_per_s"] == 300
    with pytest.raises(TailpackError, match="--set duration_s"):
        command_line.run(*words, "--set", "duration_s=30")
    assert "Worst time of static-1: " in command_line.run(*words, "--policy", "static-4").stdout
    (tmp_path / "totals.csv").write_text("second,events\n0,5\n")
    words[2] = tmp_path / "totals.csv"
    with pytest.raises(TailpackError, match="--set partitions=12"):
        command_line.run(*words)


@pytest.mark.parametrize(
    ("current", "replicas"), [("keda lagThreshold=1 max=12", 3), ("keda min=4 max=12", 3), ("static 5", 5)]
)
def test_today_may_have_more_replicas_than_partitions(current: str, replicas: int, tmp_path: Path) -> None:
    path = constant(tmp_path / "constant.csv", seconds=20, rate=300, partitions=3)
    words = ["--current", current, "--policy", "static-6", "--max", 12, "--service-time", "0.005", "--out", tmp_path]
    words += ["--latency", 2, "--startup", 0.1, "--processes", 1, "--json"]
    shown = command_line.run("backtest", "--trace", path, *words)
    found = json.loads(shown.stdout)
    assert (shown.exit_code, found["failed"], found["service_time_s"]) == (0, [], 0.005)
    lines = {line["name"]: line for line in found["lines"]}
    today = lines[f"today ({current})"]
    assert today["replica_hours"][1] * 3600 / 20 <= replicas
    if "lagThreshold" not in current:
        assert today["replica_hours"][0] * 3600 / 20 == pytest.approx(replicas)
    assert lines["static-6"]["replica_hours"][0] * 3600 / 20 == pytest.approx(6), "an idle replica costs too"
    assert lines["static-6"]["cost_change"]
    assert sum("one for each partition" in note for note in found["notes"]) == 1


@pytest.mark.parametrize(
    ("current", "options", "reason"),
    [
        ("keda lagThreshold=-5", (), "--current: .*lag_threshold = -5: must be at least 0"),
        ("keda tolerance=nan", (), "--current: .*tolerance = nan"),
        ("keda min=5 max=2", (), "--current: .*min_replicas = 5: must not exceed max_replicas = 2"),
        ("keda policy.nope=1", (), "--current: .*nope: unknown"),
        ("static 2", ("--service-time", 0), "^--set payment.service_time_s = 0.0: must be at least"),
    ],
)
def test_a_scaler_that_cannot_run_is_refused_before_the_traffic_is_read(
    current: str, options: tuple[object, ...], reason: str, tmp_path: Path
) -> None:
    words = ["--trace", tmp_path / "absent.csv", "--service-time", "5ms", "--out", tmp_path]
    with pytest.raises((TailpackError, InvalidSettingsError), match=reason) as refused:
        command_line.run("backtest", "--current", current, *words, *options)
    assert "\n" not in str(refused.value)


def test_the_command_takes_a_trace_of_more_than_a_day(tmp_path: Path) -> None:
    seconds = 2 * 86_400
    table = pa.table(
        {"second": np.arange(seconds), "p0": np.ones(seconds, np.int64), "p1": np.zeros(seconds, np.int64)}
    )
    parquet.write_table(table, path := tmp_path / "two-days.parquet")
    words = ["--current", "static 2", "--policy", "static-1", "--service-time", "5ms", "--out", tmp_path, "--json"]
    found = json.loads(command_line.run("backtest", "--trace", path, *words, "--processes", 1).stdout)
    assert (found["duration_s"], found["simulated_s"], found["partitions"]) == (seconds, 24 * PART_S, 2)
    assert found["lines"][-1]["cost_change"]["mean"] == pytest.approx(-0.5)


@pytest.mark.parametrize("single", [False, True])
def test_a_long_trace_is_sampled_evenly_and_each_part_has_its_own_events(single: bool, tmp_path: Path) -> None:
    seconds = 86_400
    counts = np.zeros((seconds, 2), np.int64)
    counts[::10, 0], counts[5::10, 1] = 1, 2
    trace: Trace | EventTrace = Trace("day.csv", counts)
    if single:
        path = tmp_path / "day.csv"
        rows = [f"{second},{second // 5 % 2}\n" * int(counts[second].sum()) for second in range(0, seconds, 5)]
        path.write_text("at_s,partition\n" + "".join(rows))
        trace = read_trace(path)  # type: ignore[assignment]
    parts = parts_of(trace, tmp_path / "day.csv", tmp_path / "parts")
    gaps = np.diff([part.begin_s for part in parts])
    assert sum(part.end_s - part.begin_s for part in parts) == len(parts) * PART_S
    assert gaps.max() - gaps.min() <= 1
    assert {part.warm_up_s for part in parts} == {WARM_UP_S}
    for part in (parts[0], parts[-1]):
        assert part.trace
        own = read_trace(part.trace, 2).counts
        wanted = counts[part.begin_s - WARM_UP_S : part.end_s]
        assert (own == wanted[: len(own)]).all()
        assert own.sum() == wanted.sum()


def test_a_part_costs_until_its_end_and_one_without_events_the_minimum(tmp_path: Path) -> None:
    part = Part(path := tmp_path / "events.csv", 1000, 1000 + PART_S, WARM_UP_S, 1)
    cases = (("static-2", 30, 1, 2), ("static-2", 300, 1, 2), ("static-2", 0, 1, 2), ("keda-hpa", 0, 3, 3))
    for policy, last_s, least, cost in cases:
        path.write_text(f"at_s,partition\n1.5,0\n{last_s},1\n")
        changes = (("autoscaler.min_replicas", least), ("load.trace", str(path) if last_s else ""))
        row = run_part(Job(scenario="w1", policy=policy, changes=changes, how=part.how))
        assert (row["events"], row["late"], row["replica_s"]) == ([int(last_s > WARM_UP_S)], [0], [cost * PART_S])


def test_parts_without_events_are_kept_and_files_of_an_earlier_trace_deleted(tmp_path: Path) -> None:
    counts = np.ones((86_400, 2), np.int64)
    parts_of(Trace("full.csv", counts.copy()), tmp_path / "full.csv", tmp_path / "parts")
    counts[43_200:] = 0
    parts = parts_of(Trace("half.csv", counts), tmp_path / "half.csv", tmp_path / "parts")
    assert [part.trace is None for part in parts] == [False] * 12 + [True] * 12
    assert {part.trace for part in parts} - {None} == {*(tmp_path / "parts").iterdir()}


def test_a_scaler_of_today_starts_within_its_own_limits(tmp_path: Path) -> None:
    part = Part(path := constant(tmp_path / "constant.csv", seconds=20, rate=600), 0, 20, 0, 2)
    runs = Runs(question(path), [part], read_trace(path).counts, lambda _: {})
    for text, count in {"keda min=4": 4, "keda max=2": 2, "keda": 3, "static 1": 1}.items():
        job = runs._job(read_current(text).contender, part, Spacing.SMOOTH)
        assert job.read_scenario().autoscaler.initial_replicas == count


@pytest.mark.parametrize("text", ["keda lagThreshold=20", "keda lagThreshold=20 max=3", "static 2"])
def test_decisions_that_are_left_out_would_change_nothing(text: str, tmp_path: Path) -> None:
    rates = 60 + 150 * (np.arange(180) % 90 < 30)
    rows = [f"{second},{rate},{rate},{rate},{rate // 2}" for second, rate in enumerate(rates)]
    (path := tmp_path / "trace.csv").write_text("\n".join(["second,p0,p1,p2,p3", *rows]) + "\n")
    runs = Runs(question(path), [part := Part(path, 0, 180, 0, 3)], read_trace(path).counts, lambda _: {})
    jobs = [runs._job(read_current(text + more).contender, part, Spacing.SMOOTH) for more in ("", " interval=1s")]
    seldom, often = ({**run_part(job), "every_s": job.read_scenario().autoscaler.decision_interval_s} for job in jobs)
    assert seldom.pop("every_s") >= 15 * often.pop("every_s")
    assert seldom == often
    assert sum(seldom["late"])


@pytest.mark.parametrize(
    ("text", "policy", "settings"),
    [
        ("static 12", "static-12", {}),
        ("fixed-3", "static-3", {}),
        (
            "keda lagThreshold=500 pollingInterval=30 max=12 protocol=kip848 heartbeat=3s",
            "keda-hpa",
            {"policy.lag_threshold": 500, "autoscaler.max_replicas": 12, "payment.heartbeat_s": 3.0},
        ),
        ("hpa averageValue=100 scaleDownStabilization=1m", "keda-hpa",
         {"policy.lag_threshold": 100, "policy.scale_down_stabilisation_s": 60.0}),
        ("algorithm-2 policy.f_up=0.7", "algorithm-2", {"policy.f_up": 0.7}),
    ],
)  # fmt: skip
def test_what_runs_today_is_read_in_the_words_of_its_manifest(text: str, policy: str, settings: dict[str, Any]) -> None:
    found = read_current(text)
    assert found.contender.policy == policy
    own = dict(found.contender.set)
    protocol = own.pop("payment.runtime", None) or own.pop("payment.rebalance_protocol")
    assert protocol == ("kip848" if "kip848" in text else "eager")
    assert own == settings
    assert bool(found.notes) == ("pollingInterval" in text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "use keda, hpa, flink, static N"),
        ("static", "static 12"),
        ("static 0", "static 12"),
        ("keda lagTreshold=5", "did you mean lagThreshold?"),
        ("keda lagThreshold=many", "'many' is not a valid value"),
        ("keda protocol=udp", "protocol 'udp' is unknown; known are"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        read_current(text)
    assert len(refused.value.problems) == 1
    assert reason in refused.value.problems[0]


def test_the_bound_of_a_sampled_trace_is_below_what_meets_the_slo(tmp_path: Path) -> None:
    path = constant(tmp_path / "part.csv", seconds=WARM_UP_S + PART_S, rate=300)
    changes = {"autoscaler.initial_replicas": 2, "load.spacing": "smooth", "load.trace": str(path)}
    jobs = [
        Job(
            scenario="w1",
            policy=policy,
            changes=sorted_changes(changes),
            how=f"backtest {WARM_UP_S} 1 {WARM_UP_S + PART_S}",
        )
        for policy in (BOUND, "static-2")
    ]
    bound, run = map(run_part, jobs)
    assert bound["method"] == "the work that must be done in time"
    assert 0.99 * 1.5 * PART_S <= bound["replica_s"][0] < run["replica_s"][0] == 2 * PART_S
    assert not run["late"][0]


def test_a_recording_says_how_fast_a_replica_serves_and_one_without_it_asks_for_a_number(tmp_path: Path) -> None:
    words = ["backtest", "--current", "static 2", "--policy", "static-2", "--service-time", "auto", "--out", tmp_path]
    for rate, name in ((250.0, "behind"), (None, "idle")):
        folder = tmp_path / name
        folder.mkdir()
        into = EventWriter(folder)
        into.add([(number * 10, NO_KEY, number % 2, 1) for number in range(2000)])
        into.write(tmp_path / f"{name}.parquet", 2, rate)
    shown = json.loads(command_line.run(*words, "--trace", tmp_path / "behind.parquet", "--json").stdout)
    assert shown["service_time_s"] == pytest.approx(0.004)
    for options, reason in {
        ("--trace", tmp_path / "idle.parquet"): "idle.parquet does not show it; record it with --group and --seconds",
        ("--topic", "orders"): "needs --group NAME",
        ("--topic", "orders", "--group", "shipping"): "needs --bootstrap-servers",
        ("--prometheus", "http://127.0.0.1:1", "--query", "rate", "--group", "shipping"): "needs --topic NAME",
        ("--trace", tmp_path / "idle.parquet", "--prometheus", "http://127.0.0.1:1"): "as --trace FILE, --topic",
    }.items():
        with pytest.raises(TailpackError, match=reason):
            command_line.run(*words, *options)


MEMBERS = {"one": 1, "two": 2, "idle-two": 2, "idle-one": 1, "away": 0}
"""Group → number of its members."""


class Prometheus(BaseHTTPRequestHandler):
    """Answers query_range like Prometheus: partition 0 has 2.5 events/s, with a gap and a value that is no number."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        query, start, end, step = (form[name][0] for name in ("query", "start", "end", "step"))
        times = np.arange(float(start), float(end) + 1, float(step))
        values = [[at, "2.5"] for at in times]
        data: dict[str, Any] = {"status": "success", "data": {"resultType": "matrix", "result": []}}
        series = {"metric": {"partition": "1"}, "values": values}
        if query == "refused":
            data = {"status": "error", "errorType": "bad_data", "error": "invalid parameter\n parse error"}
        elif query == "topics":
            data["data"]["result"] = [{"metric": {"topic": name}, "values": values} for name in ("a", "b")]
        elif query == "large":
            data["data"]["result"] = [series | {"values": [[at, "1e15"] for at in times]}]
        elif query == "nan":
            data["data"]["result"] = [series | {"values": [[at, "NaN"] for at in times]}]
        elif query == "rate":
            first = {"metric": {"partition": "0"}, "values": [values[0], *values[2:-1], [times[-1], "NaN"]]}
            data["data"]["result"] = [first, series]
        elif "consumergroup" in query:  # partition 1 is always behind, partition 0 only if `idle` is not asked for
            figure = {"members": [MEMBERS[query.split('"')[1]]], "lag": [0 if "idle" in query else 900, 900]}
            kind = next((name for name in figure if f"_{name}{{" in query), "rate")
            data["data"]["result"] = [
                {"metric": {"partition": str(number)}, "values": [[at, str(value)] for at in times]}
                for number, value in enumerate(figure.get(kind, [30, 60]))
            ]
        body = b"<html>" if query in ("html", "expired") else json.dumps(data).encode()
        self.send_response({"refused": 400, "expired": 401}.get(query, 200))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def prometheus() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def imported(url: str, query: str, path: Path) -> Any:
    return import_rates(Range(url=url, end_s=1e9, duration_s=200, step_s=20), query, path)


def test_rates_of_prometheus_become_events_and_gaps_are_counted(prometheus: str, tmp_path: Path) -> None:
    (note,) = imported(prometheus, "rate", path := tmp_path / "rates.parquet")
    assert note.startswith("2 of 20 samples are missing, first partition 0 at 999999840 s")
    counts = read_trace(path).counts
    assert counts.shape == (200, 2)
    assert list(counts.sum(axis=0)) == [400, 500], "partition 0 lacks two samples of 20 s"
    assert set(counts[:, 1]) == {2, 3}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("refused", "refuses the query: invalid parameter parse error"),
        ("topics", "sum by (partition)"),
        ("nan", "has no sample"),
        ("nothing", "has no sample"),
        ("large", "must be a rate"),
        ("html", "did not answer as Prometheus does"),
        ("expired", "refuses access (401 Unauthorized): the token in TAILPACK_PROMETHEUS_TOKEN is missing"),
    ],
)
def test_a_wrong_query_is_one_sentence(query: str, reason: str, prometheus: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        imported(prometheus, query, tmp_path / "rates.parquet")
    assert reason in str(refused.value.problems)
    assert not (tmp_path / "rates.parquet").exists()


def test_an_absent_prometheus_and_a_wrong_address_are_one_sentence(tmp_path: Path) -> None:
    for url, reason in {"http://127.0.0.1:1": "does not answer", "file:///etc/passwd": "must begin with http"}.items():
        with pytest.raises(InvalidSettingsError, match=reason):
            imported(url, "rate", tmp_path / "rates.parquet")


@pytest.mark.parametrize(
    ("group", "rate"),
    [
        ("one", 90),  # one replica serves both partitions
        ("idle-one", 90),  # it is behind with one of them, so it is busy
        ("two", 45),  # one partition each: the median of 30 and 60
        ("idle-two", 60),  # only the replica that is behind shows its rate
    ],
)
def test_the_offsets_of_a_group_that_is_behind_show_the_service_rate(group: str, rate: float, prometheus: str) -> None:
    assert service_rate(Range(url=prometheus, end_s=1e9, duration_s=200, step_s=20), "orders", group) == rate


def test_a_group_without_members_shows_no_service_rate(prometheus: str) -> None:
    with pytest.raises(
        InvalidSettingsError, match="never behind for long enough to show how fast a replica serves; give a number"
    ):
        service_rate(Range(url=prometheus, end_s=1e9, duration_s=200, step_s=20), "orders", "away")
