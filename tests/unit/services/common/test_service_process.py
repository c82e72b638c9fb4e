"""A service process that cannot start says why in one line."""

import os
import socket
import subprocess
import sys

import pytest


def run(service: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    own = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
    command = [sys.executable, "-m", f"services.{service}"]
    return subprocess.run(command, env=own | environ, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("service", ["order", "shipment", "notification"])
def test_bad_settings_are_all_named(service: str) -> None:
    ended = run(service, TAILPACK_HTTP_PORT="seventy")
    assert ended.returncode == 2
    lines = ended.stderr.splitlines()
    assert f"{service}: TAILPACK_BOOTSTRAP_SERVERS: missing" in lines
    assert any(line.startswith(f"{service}: TAILPACK_HTTP_PORT = 'seventy'") for line in lines)


def test_a_taken_port_is_named_before_anything_else_is_tried() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = run("shipment", TAILPACK_BOOTSTRAP_SERVERS="127.0.0.1:1", TAILPACK_HTTP_PORT=port)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert f"cannot listen on 127.0.0.1:{port}" in line
    assert "TAILPACK_HTTP_PORT" in line
