"""The demo in containers as in docs/howto/docker.md, from the build to a report without problems."""

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compose_file import ROOT
from dashboard_queries import asked, without_series

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

PROJECT = "tailpack-test"
ANY_PORTS = dict.fromkeys(("ORDER_PORT", "AUTOSCALER_PORT", "LOCUST_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT"), "0")
RUN_S = 600


def docker(*words: str, **named: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["docker", *words], text=True, check=False, **named)


@pytest.fixture
def project(images: None, tmp_path: Path) -> Iterator[Path]:
    """The compose file as a separate project, in a folder with a world-writable out/."""
    for name in ("docker-compose.yml", "infra"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "out").mkdir()
    (tmp_path / "out").chmod(0o777)
    try:
        yield tmp_path
    finally:
        compose(tmp_path, "down", "--volumes", "--timeout", "5", timeout=120)


TLS = ("--file", "docker-compose.yml", "--file", "infra/docker/tls.yml")


def compose(folder: Path, *words: str, **named: Any) -> "subprocess.CompletedProcess[str]":
    environ = os.environ | ANY_PORTS | {"COMPOSE_PROFILES": "observability"}  # Grafana is in a profile
    return docker("compose", "--project-name", PROJECT, *words, cwd=folder, env=environ, **named)


def test_two_commands_end_in_a_report_with_every_order_processed_once_and_in_time(project: Path) -> None:
    began_s = time.time()
    try:
        done = compose(project, "run", "--rm", "report", capture_output=True, timeout=RUN_S)
        logs = compose(project, "logs", "--no-color", capture_output=True, timeout=60).stdout
        api = f"http://{published(project, 'prometheus', '9090')}/api/v1"
        scraped = Counter(
            one["labels"]["job"] for one in asked(api, "targets")["activeTargets"] if one["health"] == "up"
        )
        empty = without_series(api, began_s)
    finally:
        compose(project, "down", "--timeout", "20", timeout=120)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{logs[-20_000:]}"
    result = json.loads((project / "out" / "demo" / "result.json").read_text(encoding="utf-8"))
    assert result["scale_ups"] > 0
    print(f"in SLA {result['in_sla']:.2%}, late by {result['tail']['causes']}")  # noqa: T201  a measurement without a limit
    assert "Traceback" not in logs
    assert (scraped["autoscaler"], scraped["services"]) == (1, 3)
    assert scraped["payment"] >= 1
    assert not empty


def published(folder: Path, service: str, port: str) -> str:
    """Return the address of a service's port."""
    return compose(folder, "port", service, port, capture_output=True, timeout=60).stdout.strip()


def test_with_tls_and_a_login_only_configured_clients_connect(project: Path) -> None:
    """After 20 s of load, a client without the CA and a client without the password are rejected."""
    load = "tailpack dev load demo --duration 20s --bootstrap-servers kafka:9092 --namespace demo --out /out"
    login = ("--client-properties", "/tls/client.properties")
    stranger = ["tailpack", "topics", "create", "demo", "--bootstrap-servers", "kafka:9092", "--namespace", "other"]
    wrong = 'sed "s|^sasl.password.file=.*|sasl.password=wrong|" /tls/client.properties >/tmp/p && exec "$@"'
    try:
        done = compose(project, *TLS, "run", "--rm", "load", *load.split(), *login, capture_output=True, timeout=RUN_S)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        in_run = ("run", "--rm", "--no-deps")
        report = compose(project, *TLS, *in_run, "report", capture_output=True, timeout=RUN_S)
        refused = [
            compose(project, *TLS, *in_run, "topics", *words, capture_output=True, timeout=120)
            for words in (stranger, ["sh", "-c", wrong, "sh", *stranger, "--client-properties", "/tmp/p"])  # noqa: S108  in a container
        ]
        logs = compose(project, *TLS, "logs", "--no-color", capture_output=True, timeout=60).stdout
        secret = compose(project, *TLS, *in_run, "topics", "cat", "/tls/password", capture_output=True).stdout.strip()
    finally:
        compose(project, *TLS, "down", "--volumes", "--timeout", "20", timeout=120)
    assert report.returncode == 0, f"{report.stdout}\n{report.stderr}\n{logs[-20_000:]}"
    result = json.loads((project / "out" / "demo" / "result.json").read_text(encoding="utf-8"))
    assert 0 < result["effects"]["orders"] == result["effects"]["exactly_once"]
    assert "Traceback" not in logs
    assert len(secret) == 32
    assert secret not in logs
    for one in refused:
        assert one.returncode == 2
        assert "Kafka at kafka:9092 " in one.stderr
