"""A backtest imports its traffic and the service time from a real Prometheus, and records a topic of a real Kafka."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from threading import Thread
from typing import Any
from urllib.request import urlopen

import command_line
import pytest
from foreign_group import ForeignGroup
from kafka_helpers import DEADLINE_S, wait_for

from contracts.validation import InvalidSettingsError
from loadgen.trace import read_trace
from tailpack.backtest import traffic
from tailpack.backtest.prometheus import Range, import_rates, service_rate
from tailpack.errors import TailpackError
from tailpack.local.ports import free_port

pytestmark = pytest.mark.long

RATES = (40, 80)
"""Events/s of each partition."""
SERVED = 100
"""Events/s that the group commits: it is behind from the start, and one member serves both partitions."""
RESET_S, GAP_S, END_S = 40, (55, 70), 90
"""Time after the start at which the offsets begin again at 0, at which the exporter does not answer, and the end."""


class Exporter(BaseHTTPRequestHandler):
    """A page like that of kafka-exporter. Its figures depend only on the time since `began_s`."""

    began_s = 0.0

    def do_GET(self) -> None:
        at_s = time.time() - self.began_s
        is_gap = GAP_S[0] <= at_s < GAP_S[1]
        self.send_response(503 if is_gap else 200)
        self.end_headers()
        for number, rate in enumerate([] if is_gap else RATES):
            labels = f'topic="orders",partition="{number}"'
            end = rate * (at_s + 100 if at_s < RESET_S else at_s - RESET_S)
            own = f'consumergroup="shipping",{labels}'
            lines = (
                f"kafka_topic_partition_current_offset{{{labels}}} {end:.0f}",
                f"kafka_consumergroup_current_offset{{{own}}} {SERVED / 2 * (at_s + 100):.0f}",
                f"kafka_consumergroup_lag{{{own}}} {rate * 100}",
            )
            self.wfile.write(("\n".join(lines) + "\n").encode())
        self.wfile.write(b"" if is_gap else b'kafka_consumergroup_members{consumergroup="shipping"} 1\n')

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module", autouse=True)
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a Prometheus, which scrapes the exporter each second while the first test runs. "": there is none."""
    if not which("prometheus"):
        yield ""
        return
    folder = tmp_path_factory.mktemp("prometheus")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    Thread(target=server.serve_forever, daemon=True).start()
    target = f"127.0.0.1:{server.server_port}"
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: exporter, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    port = free_port()
    words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(["prometheus", *words], cwd=folder, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        with urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=DEADLINE_S) as answer:
            return bool(answer.status == 200)

    Exporter.began_s = time.time()
    try:
        wait_for(lambda: _quietly(ready), "Prometheus")
        yield url
    finally:
        process.terminate()
        process.wait(DEADLINE_S)
        server.shutdown()
        server.server_close()


def _quietly(check: Any) -> bool:
    try:
        return bool(check())
    except OSError:
        return False


@pytest.mark.kafka
def test_a_topic_is_recorded_and_its_group_shows_the_service_time(
    kafka: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "OBSERVED_S", 20.0)
    words = ["backtest", "--topic", f"{namespace}.events", "--group", namespace, "--bootstrap-servers", kafka, "--json"]
    words += ["--current", "static 1", "--policy", "static-2", "--service-time", "auto", "--out", str(tmp_path / "out")]
    with ForeignGroup(kafka, namespace, tmp_path, partitions=4, rate=300, work_s=0.01) as group:
        group.load()
        group.start("shop-0")
        wait_for(lambda: group.logs() and len(group.handled()) > 100, "a group that serves")
        shown = json.loads(command_line.run(*words).stdout)
        assert shown["partitions"] == 4
        assert 0.01 <= shown["service_time_s"] < 0.03, "10 ms of work for each event, and the client's own time"
    with pytest.raises(TailpackError, match=r"no members .*; give a number"):
        command_line.run(*words)


@pytest.mark.skipif(not which("prometheus"), reason="Prometheus is not installed")
def test_a_real_prometheus_gives_traffic_service_time_resets_and_gaps(scraped: str, tmp_path: Path) -> None:
    wait_for(lambda: time.time() >= Exporter.began_s + END_S, "a minute of scrapes", deadline_s=2 * END_S)
    asked = Range(url=scraped, end_s=Exporter.began_s + END_S, duration_s=END_S, step_s=5)
    path = tmp_path / "orders.parquet"
    query = 'sum by (partition) (rate(kafka_topic_partition_current_offset{topic="orders"}[5s]))'
    (missing,) = import_rates(asked, query, path)
    counts = read_trace(path).counts
    before, gap = counts[20 : RESET_S - 5], counts[GAP_S[0] + 5 : GAP_S[1] - 5]
    assert before.mean(axis=0) == pytest.approx(RATES, rel=0.1)
    assert not gap.any(), "a gap is not filled"
    assert re.fullmatch(r"\d+ of 36 samples are missing, first partition .* they count as no events", missing)
    notes = import_rates(asked, "", path, topic="orders")
    assert "the offsets went back 2 times, in partitions 0, 1" in notes[-1]
    assert service_rate(asked, "orders", "shipping") == pytest.approx(SERVED, rel=0.1)
    for wrong, reason in {
        f"{query} * NaN": "has no sample",
        "sum by (partition) (rate(kafka_topic[5s]))": "has no sample",
        "sum by (partition) (rate(": "refuses the query",
    }.items():
        with pytest.raises(InvalidSettingsError, match=reason):
            import_rates(asked, wrong, path)
