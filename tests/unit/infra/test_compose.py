"""docker-compose.yml: well-formed, pinned, bounded, closed to the network, started in order of health."""

import importlib.util
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jsonschema
import pytest
import typer
import yaml
from compose_file import FILE, OWN_IMAGES, ROOT, command_of, compose, services

from tailpack.cli.main import app

SCHEMA = Path(__file__).with_name("compose-spec.json")
"""The Compose specification's JSON schema (Apache-2.0), as github.com/compose-spec/compose-go v2.16.2 holds it."""
OURS = [name for name, service in services().items() if service["image"] in OWN_IMAGES]


def test_it_obeys_the_compose_specification():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    problems = [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(compose())]
    assert not problems


def test_docker_compose_accepts_it():
    if not _has_docker_compose():
        pytest.skip("`docker compose` is not installed here")
    done = subprocess.run(
        ["docker", "compose", "--file", str(FILE), "config", "--quiet"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_it_can_be_read_in_one_go():
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 160


def test_the_memory_limits_add_up_to_3_gib_at_most():
    limits_mib = {name: int(re.fullmatch(r"(\d+)m", service["mem_limit"])[1]) for name, service in services().items()}
    assert sum(limits_mib.values()) <= 3 * 1024


def test_the_proxy_before_the_engine_is_reached_by_the_autoscaler_alone():
    """It asks for no token."""
    beside = yaml.safe_load((ROOT / "infra" / "docker" / "replicas.yml").read_text(encoding="utf-8"))
    assert beside["services"]["engine"]["networks"] == ["engine"]
    assert beside["networks"]["engine"]["internal"] is True
    others = services() | beside["services"]
    on_it = {name for name, service in others.items() if "engine" in service.get("networks", [])}
    assert on_it == {"engine", "autoscaler"}


@pytest.mark.parametrize("service", services())
def test_every_image_is_pinned_to_a_version(service):
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", services()[service]["image"])


@pytest.mark.parametrize("service", services())
def test_no_container_has_more_rights_than_it_needs_or_is_seen_from_outside(service):
    settings = services()[service]
    assert all(port.startswith("127.0.0.1:") for port in settings.get("ports", []))
    assert settings["cap_drop"] == ["ALL"]
    assert settings["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "ulimits", "oom_score_adj", "cap_add", "pid", "network_mode"} & set(settings)


def test_everybody_waits_for_the_health_of_what_it_needs():
    everyone = services()
    for name, service in everyone.items():
        for needed, how in service.get("depends_on", {}).items():
            expected = "service_healthy" if "healthcheck" in everyone[needed] else "service_completed_successfully"
            assert how["condition"] == expected, f"{name} → {needed}"


def test_the_load_starts_last_and_the_report_after_it():
    waits_for = {name: set(service.get("depends_on", {})) for name, service in services().items()}
    assert waits_for["load"] == {"order", "shipment", "notification", "autoscaler", "prometheus"}
    assert waits_for["report"] == {"load"}


def test_each_of_our_images_is_built_once_never_pulled_and_hears_signals():
    built = [services()[name]["image"] for name in OURS if "build" in services()[name]]
    assert sorted(built) == sorted(OWN_IMAGES)
    assert all(services()[name]["pull_policy"] == "never" for name in OURS)
    assert all(services()[name]["init"] is True for name in OURS), "signals reach our processes"


@pytest.mark.parametrize("service", OURS)
def test_every_command_exists(service):
    program, *arguments = command_of(service)
    if program == "python":
        assert arguments[0] == "-m"
        assert importlib.util.find_spec(f"{arguments[1]}.__main__")
    else:
        assert program == "tailpack"
        _parse(arguments)


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_the_health_check_believes_the_status(status, healthy):
    kind, program, *arguments = services()["order"]["healthcheck"]["test"]
    with _answering(status) as port:
        arguments[-1] = arguments[-1].replace(":8080/", f":{port}/")
        done = subprocess.run([sys.executable, *arguments], capture_output=True, timeout=20, check=False)
    assert (kind, program) == ("CMD", "python")
    assert (done.returncode == 0) is healthy


def test_prometheus_reads_the_configuration_that_scrapes_the_autoscaler():
    mounted = services()["prometheus"]["volumes"][0].split(":")[0]
    configuration = (ROOT / mounted).read_text(encoding="utf-8")
    assert f"autoscaler:{services()['autoscaler']['environment']['TAILPACK_HTTP_PORT']}" in configuration


def _parse(arguments: list[str]) -> None:
    """Let the command line read its words, without doing anything. Raises click's errors for wrong ones."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        context = command.make_context(command.name, list(arguments))
        _, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
    command.make_context(command.name, arguments)


def _has_docker_compose() -> bool:
    try:
        return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def _answering(status: int) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
