"""What a run is, written down before it starts."""

import msgspec

from bench.run_info import RunInfo
from bench.scenario import Scenario
from contracts.connection import Connection
from tailpack import provenance


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
