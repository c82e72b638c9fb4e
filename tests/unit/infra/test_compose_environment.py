"""What docker-compose.yml tells each process is what one machine's stack tells it, addresses and folders apart."""

from dataclasses import asdict, fields
from pathlib import Path

import pytest
from compose_file import command_of, services

from autoscaler.live.settings import AutoscalerSettings
from bench.scenario import load_scenario
from contracts.children import Child
from contracts.connection import Connection
from contracts.validation import from_environment
from loadgen.spec import DriverSettings as GeneratorSettings
from services.common.faust_app import ServiceSettings
from services.order.__main__ import OrderSettings
from services.payment.replica import ReplicaSettings
from tailpack.local.broker import PROPERTIES
from tailpack.local.stack import Stack

PLACES = {"http_host", "http_port", "data_dir", "state_dir", "start_file"}
"""Where a process listens and keeps files: rightly different in a container."""
READ_BY = {
    "order": [Connection, OrderSettings],
    "shipment": [Connection, ServiceSettings],
    "notification": [Connection, ServiceSettings],
    "autoscaler": [Connection, AutoscalerSettings, ReplicaSettings],  # replicas inherit its environment
}
LISTENING = {"listeners", "advertised.listeners", "controller.quorum.voters", "log.dirs"}


@pytest.fixture(scope="module")
def on_one_machine(tmp_path_factory):
    """Process → (module, environment) as `tailpack demo` would start it."""
    scenario = load_scenario("demo")
    connection = Connection(bootstrap_servers="kafka:9092", namespace="demo")
    stack = Stack(scenario, connection, tmp_path_factory.mktemp("stack"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Child, "start", lambda _: None)
        stack.start(scenario.load_spec())
    return {child.name: (child.command[-1], child.environ) for child in stack.children}


def in_a_container(service):
    return {key: str(value) for key, value in services()[service].get("environment", {}).items()}


def read(environ, kind):
    """Return what a process of this kind of settings understands, as name → value."""
    settings = from_environment({"TAILPACK_REPLICA": "payment-0"} | environ, kind)
    return {name: value for name, value in asdict(settings).items() if name not in PLACES}


@pytest.mark.parametrize("service", READ_BY)
def test_a_process_is_told_the_same(service, on_one_machine):
    module, environ = on_one_machine[service]
    assert command_of(service) == ["python", "-m", module]
    for kind in READ_BY[service]:
        assert read(in_a_container(service), kind) == read(environ, kind)


def test_no_process_of_the_demo_is_missing(on_one_machine):
    assert set(on_one_machine) == {*READ_BY, "locust"}


@pytest.mark.parametrize("service", [*READ_BY, "load"])
def test_no_variable_is_misspelt(service):
    kinds = [*READ_BY.get(service, [GeneratorSettings]), ServiceSettings]  # HTTP_HOST and DATA_DIR are set for all
    known = {f"TAILPACK_{field.name.upper()}" for kind in kinds for field in fields(kind)}
    assert {name for name in in_a_container(service) if name.startswith("TAILPACK_")} <= known


@pytest.mark.parametrize("service", READ_BY)
def test_it_listens_where_other_containers_and_its_health_check_reach_it(service):
    environ = in_a_container(service)
    assert environ["TAILPACK_HTTP_HOST"] == "0.0.0.0"  # noqa: S104  of the container; published on loopback
    assert f":{environ['TAILPACK_HTTP_PORT']}/healthz" in services()[service]["healthcheck"]["test"][-1]


@pytest.mark.parametrize("service", READ_BY)
def test_what_it_writes_lies_on_its_temporary_file_system(service):
    environ = in_a_container(service)
    places = [Path(value) for name, value in environ.items() if name in {"TAILPACK_DATA_DIR", "TAILPACK_STATE_DIR"}]
    (temporary,) = services()[service]["tmpfs"]
    assert services()[service]["read_only"] is True
    assert places
    assert all(place.is_relative_to(temporary) for place in places)


def test_load_and_report_meet_in_one_folder_and_one_run():
    load, report = command_of("load"), command_of("report")
    out, namespace = load[load.index("--out") + 1], load[load.index("--namespace") + 1]
    assert f"{out}/{namespace}" in report
    assert namespace == in_a_container("order")["TAILPACK_NAMESPACE"]
    assert {services()[service]["volumes"][0]["target"] for service in ("load", "report")} == {out}


def test_the_broker_is_set_up_as_the_embedded_one():
    places = {"voters": "", "port": 9092, "door": 9092, "controller_port": 9093, "logs": ""}
    one_node = PROPERTIES.format(node=1, replication=1, in_sync=1, **places)
    embedded = dict(line.split("=", 1) for line in one_node.splitlines() if not line.startswith("#"))
    variables = in_a_container("kafka")
    container = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in variables.items()
        if name not in {"CLUSTER_ID", "KAFKA_HEAP_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS"}
    }
    assert {name: value for name, value in container.items() if name not in LISTENING} == {
        name: embedded[name] for name in container if name not in LISTENING
    }
