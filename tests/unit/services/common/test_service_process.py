"""A service process that cannot start logs one line for each problem."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.connection import Connection
from contracts.preflight import PreflightError, TopicNeed, check_topics

NOWHERE = Connection(bootstrap_servers="127.0.0.1:1")


def run(service: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    own = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
    command = [sys.executable, "-m", f"services.{service}"]
    return subprocess.run(command, env=own | environ, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("service", ["order", "shipment", "notification"])
def test_bad_settings_are_all_named(service: str) -> None:
    result = run(service, TAILPACK_HTTP_PORT="seventy")
    assert result.returncode == 2
    lines = result.stderr.splitlines()
    assert f"{service}: TAILPACK_BOOTSTRAP_SERVERS: missing" in lines
    assert any(line.startswith(f"{service}: TAILPACK_HTTP_PORT = 'seventy'") for line in lines)


def test_order_does_not_start_without_a_secret_for_card_tokens() -> None:
    settings = {"TAILPACK_BOOTSTRAP_SERVERS": "127.0.0.1:1", "TAILPACK_PAYMENT_PARTITIONS": "3"}
    result = run("order", **settings)
    (line,) = result.stderr.splitlines()
    assert result.returncode == 2
    assert all(name in line for name in ("TAILPACK_CARD_TOKEN_KEY_FILE", "16", "TAILPACK_DEMO=true"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "is empty"),
        (b"short", "16 char"),
        (b"\xff" * 20, "it is not UTF-8 text"),
    ],
)
@pytest.mark.parametrize("name", ["CARD_TOKEN_KEY_FILE", "API_TOKEN_FILE"])
def test_a_bad_secret_file_is_named(name: str, content: bytes | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    settings = {
        "TAILPACK_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "TAILPACK_PAYMENT_PARTITIONS": "3",
        "TAILPACK_DEMO": "true",
    }
    result = run("order", **settings, **{f"TAILPACK_{name}": str(file)})
    (line,) = result.stderr.splitlines()
    assert result.returncode == 2
    assert line.startswith(f"order: TAILPACK_{name} = '{file}': ")
    assert problem in line
    assert "short" not in line


def test_missing_kafka_is_reported_at_the_deadline_with_its_address() -> None:
    with pytest.raises(PreflightError, match=r"^Kafka at 127.0.0.1:1 cannot be reached .*bootstrap_servers"):
        check_topics(NOWHERE, {"t": TopicNeed(1)}, 0.0)


def test_a_stopped_process_does_not_wait_for_kafka() -> None:
    check_topics(NOWHERE, {"t": TopicNeed(1)}, 3600.0, lambda: True)
