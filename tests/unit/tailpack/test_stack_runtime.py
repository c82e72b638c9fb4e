"""Which process does the work of Payment, and what it is told about deliveries."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from autoscaler.live import settings as live
from bench.scenario import load_scenario
from contracts.connection import Connection
from contracts.delivery import RUNTIMES, Delivery
from contracts.validation import from_environment
from services.payment.settings import ReplicaSettings
from tailpack.local.children import Child, Children
from tailpack.local.stack import Stack


@dataclass
class Nothing(Children):
    """Starts nothing, and remembers what it was asked for."""

    asked: list[Child] = field(default_factory=list)

    def start(self, child: Child) -> Child:
        self.asked.append(child)
        return child


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TAILPACK_")]:
        monkeypatch.delenv(name)


def told(folder: Path, overrides: dict[str, object]) -> dict[str, str]:
    """Return the environment of the autoscaler, which its replicas inherit."""
    scenario, children = load_scenario("w1", overrides), Nothing()
    Stack(scenario, Connection(bootstrap_servers="kafka:9092"), folder, children=children).start(scenario.load_spec())
    return dict(next(child.environ for child in children.asked if child.name == "autoscaler"))


def test_our_own_replicas_are_told_how_to_deliver(tmp_path: Path) -> None:
    environ = told(tmp_path, {"delivery": "eager", "heartbeat_s": 3, "drain_s": 2, "absence_grace_s": 5})
    autoscaler = from_environment(environ, live.AutoscalerSettings)
    replica = from_environment(environ | {"TAILPACK_REPLICA": "payment-0"}, ReplicaSettings)
    assert (autoscaler.replica_module, autoscaler.runtime) == ("services.payment", "")
    assert (autoscaler.delivery, autoscaler.drain_s, autoscaler.absence_grace_s) == (Delivery.EAGER, 2.0, 5.0)
    assert not autoscaler.learn_rebalance_time
    assert (replica.delivery, replica.heartbeat_s, replica.drain_s) == (Delivery.EAGER, 3.0, 2.0)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_comparator_takes_their_place(runtime: str, tmp_path: Path) -> None:
    environ = told(tmp_path, {"runtime": runtime, "policy": "linear"})
    autoscaler = from_environment(environ, live.AutoscalerSettings)
    assert (autoscaler.replica_module, autoscaler.runtime) == ("services.comparators", runtime)
    assert environ["TAILPACK_RUNTIME"] == runtime
