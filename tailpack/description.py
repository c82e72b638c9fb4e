"""What a run is, written down before it starts; of a simulated one, when it is over."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.scenario import Scenario
from contracts.connection import Connection
from report.run_info import RunInfo
from tailpack import provenance

if TYPE_CHECKING:
    from bench.simulation.sent import Sent


def describe(scenario: Scenario, connection: Connection, command: str) -> RunInfo:
    """Return the beginning of run.json. The run is named as its topics' namespace."""
    return RunInfo(
        run=connection.namespace,
        scenario=msgspec.to_builtins(scenario),
        policy=scenario.autoscaler.policy,
        seed=scenario.seed,
        topology=scenario.topology.value,
        bootstrap_servers=connection.bootstrap_servers,
        client_properties=connection.client_properties,
        payment_partitions=scenario.payment.partitions,
        latency_target_s=scenario.target.latency_target_s,
        percentile=scenario.target.percentile,
        duration_s=scenario.duration_s,
        commit=provenance.commit(),
        command=command,
        versions=provenance.versions(),
        machine=provenance.machine(),
    )


def describe_simulated(scenario: Scenario, sent: "Sent", drained_us: int, folder: Path) -> RunInfo:
    """Return run.json of a simulated run, named as its folder, with what was really sent; its second 0 is 0.

    sent: by the scenario, or by the trace in its place. drained_us: when the last event was done.
    """
    asked = describe(scenario, Connection(bootstrap_servers="simulated"), shlex.join(["tailpack", *sys.argv[1:]]))
    load, payment = asked.scenario["load"], asked.scenario["payment"]
    return msgspec.structs.replace(
        asked,
        run=folder.resolve().name,
        scenario=asked.scenario
        | {
            "topology": "payment-only",
            "duration_s": sent.duration_s,
            "load": load | {"split": sent.split.value},
            "payment": payment | {"partitions": sent.partitions},
        },
        topology="payment-only",
        world="simulated",
        payment_partitions=sent.partitions,
        duration_s=float(sent.duration_s),
        started_us=0,
        drained_us=drained_us,
        events_scheduled=sent.events,
    )
