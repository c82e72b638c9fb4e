"""The configuration of an autoscaler, or of a chain of them, from files and the environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from autoscaler.live.settings import AutoscalerSettings
from autoscaler.policies.chain import chained_policies
from autoscaler.policies.registry import PolicyConfig
from autoscaler.policies.tail_aware.policy import TailAware
from autoscaler.ports import Policy
from contracts.connection import Connection, read_settings
from contracts.validation import InvalidSettingsError, as_environment

CHAIN_POLICY: Final = TailAware.name
STAGE_OFFSET_S: Final = 0.05
"""Delay of a stage's tick after the tick of the stage before it, whose decision it reads."""


@dataclass(frozen=True, slots=True)
class StartupConfig:
    """The whole configuration of an autoscaler."""

    settings: AutoscalerSettings
    connection: Connection
    policy: Policy
    environ: Mapping[str, str]
    """Environment of the replicas: this process's own, plus the settings of the file."""
    keeps_owners: bool = False
    """Whether it only observes by order, and stays the leader of its group of other consumers."""


def policy_config_of(settings: AutoscalerSettings) -> PolicyConfig:
    """Return the configuration of the policy. Raises ValueError."""
    return PolicyConfig(settings, settings, settings, settings.options(), bool(settings.runtime), settings.fallback)


def read(config: Path | None, environ: Mapping[str, str]) -> StartupConfig:
    """Read and check all settings. Raises InvalidSettingsError with all problems."""
    policies: list[Policy] = []

    def make(settings: AutoscalerSettings) -> None:
        try:
            policies.append(policy_config_of(settings).policy())
        except ValueError as error:
            where = "policy, goal or [policy_options] in a file (TAILPACK_POLICY, TAILPACK_POLICY_OPTIONS)"
            raise InvalidSettingsError([f"{where}: {error}"]) from error

    connection, settings = read_settings(environ, AutoscalerSettings, config, make)
    properties = settings.replica_client_properties or connection.client_properties
    of_replicas = as_environment(replace(connection, client_properties=properties)) | as_environment(settings)
    return StartupConfig(settings, connection, policies[0], {**environ, **of_replicas})


def read_chain(configs: Sequence[Path], environ: Mapping[str, str]) -> list[StartupConfig]:
    """Read the stages of a chain. Their latency targets add up to one SLO. Raises InvalidSettingsError, see `read`."""
    stages: list[StartupConfig] = []
    problems: list[str] = []
    for config in configs:
        try:
            stages.append(read(config, environ))
        except InvalidSettingsError as error:
            problems += error.problems
    unique = {key: [getattr(stage.settings, key) for stage in stages] for key in ("state_dir", "replica_prefix")}
    for key, values in (unique | {"namespace": [stage.connection.namespace for stage in stages]}).items():
        problems += [f"{key} = {value!r}: each group needs its own" for value in {*values} if values.count(value) > 1]
    problems += [
        f"policy = {stage.settings.policy!r}: a chain needs {CHAIN_POLICY}; start one autoscaler for each other group"
        for stage in stages
        if stage.settings.policy != CHAIN_POLICY
    ]
    acts = "must be on in a chain; observe each group by its own autoscaler"
    problems += [f"act = {stage.settings.act!r}: {acts}" for stage in stages if not stage.settings.acts]
    if problems:
        raise InvalidSettingsError(problems)
    chain: list[StartupConfig] = []
    policies = chained_policies([policy_config_of(stage.settings) for stage in stages])
    for number, (stage, policy) in enumerate(zip(stages, policies, strict=True)):
        offset_s = (stages[0].settings.tick_offset_s + number * STAGE_OFFSET_S) % stage.settings.decision_interval_s
        chain.append(replace(stage, policy=policy, settings=replace(stage.settings, tick_offset_s=offset_s)))
    return chain
