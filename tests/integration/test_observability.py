"""A real Prometheus scrapes a live demo: each declared metric exists, and each dashboard query has series."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml
from compose_file import ROOT
from dashboard_queries import asked, dashboards, declared_metrics, metrics_in, without_series
from kafka_helpers import wait_for
from prometheus_client.parser import text_string_to_metric_families

from bench.scenario import load_scenario
from contracts.clock import now_us
from contracts.connection import Connection
from loadgen.result import READY_FILE
from tailpack.local.ports import free_port
from tailpack.local.stack import Stack
from tailpack.local.topics import create_topics

LOAD_S = 90


@pytest.fixture(scope="module")
def demo(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, dict[str, str]]]:
    """The demo while its load runs, and job → address of its metrics."""
    folder = tmp_path_factory.mktemp("demo")
    scenario = load_scenario("demo", {"duration_s": LOAD_S}).for_live()
    connection = Connection(bootstrap_servers=kafka, namespace="observed")
    create_topics(connection, scenario.payment.partitions)
    load_port = free_port()
    stack = Stack(scenario, connection, folder, {**os.environ, "TAILPACK_HTTP_PORT": str(load_port)})
    try:
        stack.start(scenario.load_spec())
        wait_for(lambda: not stack.unhealthy() and (folder / READY_FILE).exists(), "the demo is ready", deadline_s=120)
        yield stack, {name: f"127.0.0.1:{port}" for name, port in (stack.ports | {"load": load_port}).items()}
    finally:
        stack.stop()


def begin(stack: Stack) -> None:
    stack.start_file.write_text(str(now_us() + 1_000_000))


def scraped(address: str) -> dict[str, str]:
    """Return name → type of all that has samples there."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {f"{one.name}_total" if one.type == "counter" else one.name: one.type for one in families}


@contextmanager
def prometheus(addresses: dict[str, str], folder: Path) -> Iterator[str]:
    """Run one by our configuration, with the addresses of this machine in place of the containers' names."""
    text = (ROOT / "infra/prometheus/prometheus.yml").read_text()
    for name, address in addresses.items():
        text = text.replace(f"{name}:8080", address)
    configuration = yaml.safe_load(text)
    configuration["rule_files"] = [str(ROOT / "infra/prometheus/alerts.yml")]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield f"http://{address}/api/v1"
    finally:
        process.terminate()
        process.wait(20)


def test_every_declared_metric_is_scraped_and_every_dashboard_query_has_series(
    demo: tuple[Stack, dict[str, str]], tmp_path: Path
) -> None:
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus here: apt-get install prometheus")
    stack, addresses = demo
    with prometheus(addresses, tmp_path) as api:

        def up() -> int:
            try:
                return sum(one["health"] == "up" for one in asked(api, "targets")["activeTargets"])
            except OSError:
                return 0

        wait_for(lambda: up() >= 6, "all are scraped: autoscaler, three services, generator and a replica")
        began = time.time()
        begin(stack)
        of_others = re.compile("tailpack_(shadow|keda)_")  # processes that a demo has not
        declared = {name: one.kind for name, one in declared_metrics().items() if not of_others.match(name)}
        found: dict[str, str] = {}

        def missing() -> object:
            """Return queries without series, else metrics that no page had yet: replicas come and go meanwhile."""
            for address in (*addresses.values(), *replicas(addresses["autoscaler"])):
                with suppress(OSError):
                    found.update(scraped(address))
            return without_series(api, began) or declared.items() - found.items()

        wait_for(lambda: time.time() > began + LOAD_S or not missing(), "all is there", deadline_s=120, every_s=1)
        assert not missing()
        assert {name for name in found if re.match(r"tailpack_(?!.*_created$)", name)} == set(declared)
        assert set().union(*map(metrics_in, dashboards().queries().values())) <= set(declared)
        assert all(group["rules"] for group in asked(api, "rules")["groups"])
        failing = [rule for group in asked(api, "rules")["groups"] for rule in group["rules"] if rule.get("lastError")]
        assert not failing


def replicas(autoscaler: str) -> list[str]:
    """Return where the replicas that run now, or start, have their metrics."""
    with urllib.request.urlopen(f"http://{autoscaler}/targets", timeout=20) as answer:
        return [address for group in json.load(answer) for address in group["targets"]]
