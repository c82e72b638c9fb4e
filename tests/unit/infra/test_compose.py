"""docker-compose.yml: valid, with limits, without public ports, and with the settings of the local stack."""

import re
from dataclasses import asdict

import pytest
from compose_file import FILE, TLS, command_of, compose, services

from autoscaler.live.settings import AutoscalerSettings
from bench.scenario import load_scenario
from contracts.children import Child
from contracts.connection import Connection
from contracts.validation import from_environment
from services.common.faust_app import ServiceSettings
from services.order.__main__ import OrderSettings
from services.payment.replica import ReplicaSettings
from tailpack.local.broker import PROPERTIES
from tailpack.local.stack import Stack

MERGED = [(FILE,), (FILE, TLS)]


@pytest.mark.parametrize("files", MERGED)
def test_the_memory_limits_add_up_to_3_gib_at_most(files):
    """The sum includes profiles, exited containers and the maximum number of replicas."""
    merged = [(name, one) for file in files for name, one in compose(file)["services"].items()]
    limits_mib = {name: _mib(one["mem_limit"]) for name, one in merged if "mem_limit" in one}
    assert limits_mib.keys() == {name for name, _ in merged}
    assert sum(limits_mib.values()) <= 3 * 1024, limits_mib


@pytest.mark.parametrize("service", services())
def test_containers_have_minimal_rights_and_no_public_ports(service):
    settings = services()[service]
    assert all(port.startswith("127.0.0.1:") for port in settings.get("ports", []))
    assert settings["cap_drop"] == ["ALL"]
    assert settings["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "ulimits", "oom_score_adj", "cap_add", "pid", "network_mode"} & set(settings)


def _mib(limit: str) -> int:
    return int(re.fullmatch(r"(\d+)m", limit)[1])


PLACES = {"http_host", "http_port", "data_dir", "state_dir", "start_file"}
"""Settings of addresses and folders, which must differ in a container."""
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
    """Return name → value of the settings that the process reads."""
    settings = from_environment({"TAILPACK_REPLICA": "payment-0"} | environ, kind)
    return {name: value for name, value in asdict(settings).items() if name not in PLACES}


@pytest.mark.parametrize("service", READ_BY)
def test_a_container_gets_the_same_settings_as_a_local_process(service, on_one_machine):
    module, environ = on_one_machine[service]
    assert command_of(service) == ["python", "-m", module]
    for kind in READ_BY[service]:
        assert read(in_a_container(service), kind) == read(environ, kind)


def test_no_process_of_the_demo_is_missing(on_one_machine):
    assert set(on_one_machine) == {*READ_BY, "locust"}


def test_the_broker_is_configured_like_the_embedded_one():
    places = {"voters": "", "port": 9092, "advertised_port": 9092, "controller_port": 9093, "logs": ""}
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
