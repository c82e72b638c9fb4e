"""Each process of a run gets the values of the scenario, in the names that it reads."""

import os
from dataclasses import fields, replace
from pathlib import Path

import msgspec
import pytest

from autoscaler.live.settings import AutoscalerSettings
from autoscaler.policies.settings import Guards, Scaling
from bench.scenario import Scenario, load_scenario
from bench.sections import Payment, Simulation
from contracts.children import Child
from contracts.connection import Connection
from contracts.settings import Target
from contracts.validation import from_environment
from loadgen.spec import DriverSettings as GeneratorSettings
from services.common.faust_app import ServiceSettings
from services.order.__main__ import OrderSettings
from services.payment.replica import ReplicaSettings
from tailpack.local.stack import Stack

CONNECTION = Connection(bootstrap_servers="kafka:9092", client_properties="tls.properties", namespace="run-1")
READ_BY: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "order": (OrderSettings,),
    "shipment": (ServiceSettings,),
    "notification": (ServiceSettings,),
    "autoscaler": (AutoscalerSettings, ReplicaSettings),  # replicas inherit its environment
    "locust": (GeneratorSettings,),
}
NOT_READ = {"TAILPACK_PARTITIONS"}
"""Variables that are set with their section but not read: PAYMENT_PARTITIONS repeats the value."""


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of ours is set, and no child is really started."""
    monkeypatch.setattr(Child, "start", lambda _: None)
    for name in [name for name in os.environ if name.startswith("TAILPACK_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def unusual() -> Scenario:
    """A scenario in which no value has its default."""
    simulation = {"speeds": (1.0, 0.5), "slow_from_s": 3.0, "slow_until_s": 9.0, "slow_factor": 2.5}
    guards = {"changing_limit_s": 20.0, "stabilisation_down_s": 9.0, "stuck_after_s": 40.0, "safe_replicas": 3}
    return replace(
        load_scenario("w1", {"topology": "pipeline", "pipeline_partitions": 6, "duration_s": 30, "seed": 9}),
        payment=Payment(partitions=7, service_time_s=0.02, heartbeat_s=0.3, session_s=5.0, commit_interval_s=0.2),
        simulation=Simulation(**simulation, slow_replicas=(0, 2)),  # type: ignore[arg-type]
        target=Target(latency_target_s=0.8, percentile=0.9),
        guards=Guards(**guards),  # type: ignore[arg-type]
        autoscaler=Scaling(
            policy="linear", decision_interval_s=2.0, tick_offset_s=0.3, min_replicas=2, max_replicas=6,
            initial_replicas=3, rebalance_time_s=0.07, f_up=0.8, f_down=0.3,
        ),
    )  # fmt: skip


def recorded_start(scenario: Scenario, folder: Path, **how: bool) -> tuple[Stack, dict[str, Child]]:
    """Return the stack and what it would start: name → child."""
    stack = Stack(scenario, CONNECTION, folder)
    stack.start(scenario.load_spec(), **how)  # type: ignore[arg-type]
    return stack, {child.name: child for child in stack.children}


def test_every_variable_is_one_that_the_process_reads(unusual: Scenario, tmp_path: Path) -> None:
    _, started = recorded_start(unusual, tmp_path)
    assert set(started) == set(READ_BY)
    for name, child in started.items():
        kinds = (Connection, *READ_BY[name])
        known = {f"TAILPACK_{one.name.upper()}" for kind in kinds for one in fields(kind)}
        given = {variable for variable in child.environ if variable.startswith("TAILPACK_")}
        assert given - NOT_READ <= known, f"{name} does not read all that it is recorded_start"
        assert from_environment(child.environ, Connection) == CONNECTION


def test_the_autoscaler_and_its_replicas_get_the_values_of_the_scenario(unusual: Scenario, tmp_path: Path) -> None:
    stack, started = recorded_start(unusual, tmp_path)
    environ = started["autoscaler"].environ
    autoscaler = from_environment(environ, AutoscalerSettings)
    own = {"TAILPACK_REPLICA": "payment-0", "TAILPACK_HTTP_PORT": "0"}  # the autoscaler's port is not for them
    replica = from_environment(environ | own, ReplicaSettings)
    for section in (unusual.target, unusual.autoscaler, unusual.guards):
        assert {name: getattr(autoscaler, name) for name in vars(section)} == vars(section)
    for section in (unusual.payment, unusual.speeds(), unusual.target):
        shared = {name: value for name, value in vars(section).items() if hasattr(replica, name)}
        assert {name: getattr(replica, name) for name in shared} == shared
    assert (autoscaler.payment_partitions, replica.payment_partitions) == (7, 7)
    assert (autoscaler.state_dir, autoscaler.http_port) == (str(stack.replica_folder), stack.ports["autoscaler"])
    assert (replica.replica, replica.start_file) == ("payment-0", str(stack.start_file))
