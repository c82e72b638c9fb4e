"""docker-compose.yml: well-formed, pinned, bounded, closed to the network, started in order of health."""

import configparser
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
from compose_file import FILE, OWN_IMAGES, ROOT, TLS, command_of, compose, services

from tailpack.cli.main import app

SCHEMA = Path(__file__).with_name("compose-spec.json")
"""The Compose specification's JSON schema (Apache-2.0), as github.com/compose-spec/compose-go v2.16.2 holds it."""
MERGED = [(FILE,), (FILE, TLS)]
OURS = [name for name, service in services().items() if service["image"] in OWN_IMAGES]


@pytest.mark.parametrize("file", [FILE, TLS], ids=lambda file: file.stem)
def test_it_obeys_the_compose_specification(file):
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    problems = [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(compose(file))]
    assert not problems


@pytest.mark.parametrize("files", MERGED)
def test_docker_compose_accepts_it(files):
    if not _has_docker_compose():
        pytest.skip("`docker compose` is not installed here")
    named = [word for file in files for word in ("--file", str(file))]
    command = ["docker", "compose", *named, "--profile", "observability", "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_can_be_read_in_one_go():
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 170


@pytest.mark.parametrize("files", MERGED)
def test_the_memory_limits_add_up_to_3_gib_at_most(files):
    """Profiles, containers that have ended when others start, and every replica that there may be included."""
    merged = [(name, one) for file in files for name, one in compose(file)["services"].items()]
    limits_mib = {name: _mib(one["mem_limit"]) for name, one in merged if "mem_limit" in one}
    assert limits_mib.keys() == {name for name, _ in merged}
    assert sum(limits_mib.values()) <= 3 * 1024, limits_mib


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
    optional = {name for name, how in services()["load"]["depends_on"].items() if not how.get("required", True)}
    assert optional == {name for name in waits_for["load"] if "profiles" in services()[name]}
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


def test_prometheus_scrapes_what_runs_where_it_listens():
    (jobs,) = (ROOT / source for source, target in _mounts("prometheus") if target == "/etc/prometheus")
    configuration = yaml.safe_load((jobs / "prometheus.yml").read_text(encoding="utf-8"))
    assert all((jobs / file).is_file() for file in configuration["rule_files"])
    fixed = [each for job in configuration["scrape_configs"] for each in job.get("static_configs", [])]
    targets = dict(target.split(":") for each in fixed for target in each["targets"])
    told = {name: services()[name]["environment"].get("TAILPACK_HTTP_PORT") for name in targets}
    assert targets == told


def test_grafana_finds_its_source_and_its_dashboards():
    ((source, target),) = _mounts("grafana")
    provisioning = ROOT / source / "provisioning"
    assert target == "/etc/grafana", "where its image looks for grafana.ini and provisioning/"
    (datasource,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    host, port = datasource["url"].removeprefix("http://").split(":")
    assert f":{port}/" in services()[host]["healthcheck"]["test"][-1]
    (provider,) = yaml.safe_load((provisioning / "dashboards/tailpack.yml").read_text())["providers"]
    assert provider["options"]["path"] == target
    settings = configparser.ConfigParser()
    settings.read(ROOT / source / "grafana.ini")
    home = Path(settings["dashboards"]["default_home_dashboard_path"])
    assert (ROOT / source / home.relative_to(target)).is_file()
    assert settings.getboolean("auth.anonymous", "enabled")
    assert settings["auth.anonymous"]["org_role"] == "Viewer"


def _mounts(service: str) -> list[tuple[str, str]]:
    return [
        tuple(volume.removesuffix(":ro").removeprefix("./").split(":")) for volume in services()[service]["volumes"]
    ]


def _mib(limit: str) -> int:
    return int(re.fullmatch(r"(\d+)m", limit)[1])


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
