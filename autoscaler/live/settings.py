"""Settings of the live autoscaler."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from autoscaler.policies.settings import REPLICA_PREFIX, Guards, Scaling
from autoscaler.ports import Policy
from contracts.membership import MIN_SERVICE_TIME, PLAN_PROTOCOL_ONLY, EventCost, LiveSpeeds, Membership
from contracts.rebalance_protocol import RUNTIMES
from contracts.settings import Rule, Settings, Target, Values, setting
from contracts.topics import ScaledGroup
from contracts.validation import InvalidSettingsError


@dataclass(frozen=True, kw_only=True)
class Pages(Settings):
    """Where health, plan and metrics are shown."""

    http_host: str = setting("127.0.0.1")
    """Address of the pages; 0.0.0.0 in a container."""
    http_port: int = setting(0, least=0, most=65535)
    """Port of the pages; 0: none."""


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(Settings):
    """Options of the policy itself."""

    policy_options: str = setting("")
    """Options of the policy: in a file a table, in the environment a JSON object such as {"patience_s": 5}."""

    def options(self) -> dict[str, Any]:
        """Return them. Raises ValueError."""
        try:
            return msgspec.json.decode(self.policy_options or "{}", type=dict[str, Any])
        except msgspec.DecodeError as wrong:
            raise ValueError(f"TAILPACK_POLICY_OPTIONS: must be a JSON object: {wrong}") from wrong

    def made(self, make: Callable[[], Policy]) -> Policy:
        """Return the policy. Raises InvalidSettingsError, naming the settings, where `make` refuses."""
        try:
            return make()
        except ValueError as wrong:
            where = "policy or [policy_options] in a file (TAILPACK_POLICY, TAILPACK_POLICY_OPTIONS)"
            raise InvalidSettingsError([f"{where}: {wrong}"]) from wrong


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings(Settings):
    """Where replicas are pods."""

    kubernetes_deployment: str = setting("payment")
    """Deployment of the replicas; infra/k8s/base/payment.yaml is an example."""
    kubernetes_namespace: str = setting("")
    """Namespace of the Deployment; empty: that of the autoscaler's pod or of the kubeconfig."""
    kubernetes_context: str = setting("")
    """Context of the kubeconfig; empty: the pod's account, or the current context."""
    kubernetes_lease: str = setting("")
    """Lease that selects the leader of several autoscalers; empty: the newest one leads."""


def kubeconfig() -> str:
    """Return the path as the environment has it now; Kubernetes' own client looks only once, when it is imported."""
    return os.environ.get("KUBECONFIG") or "~/.kube/config"


@dataclass(frozen=True, kw_only=True)
class AutoscalerSettings(
    Scaling, Target, Guards, Membership, EventCost, LiveSpeeds, PolicyOptions, Pages, ScaledGroup, KubernetesSettings
):
    """Environment: TAILPACK_POLICY, TAILPACK_HTTP_PORT, … and the sections that a scenario has.

    Or the same names in a TOML file. Replicas inherit the whole environment and these settings, so theirs are set here.
    """

    payment_partitions: int = setting(0, "partitions", least=0)
    """Least number of partitions of the topic, which may grow; 0: any."""
    state_dir: str
    """Folder for pid files and logs of the replicas, for one autoscaler at a time."""
    overhead_s: float = setting(0.012, "s", least=0)
    """Latency of an event apart from waiting and service: twice the 6 ms (p99) of a quiet broker on one machine."""
    commit_age_s: float = setting(0.05, "s", least=0)
    """Mean age of commits when lag is read: half of the commit interval."""
    startup_s: float = setting(2.0, "s", least=0)
    """Start-up time of a replica that is assumed until one was measured."""
    taken_within_s: float = setting(12.0, "s", above=0)
    """Time after which a member with an older plan is reported and the plan is written again. Longer than any
    rebalance."""
    runtime: str = setting("", known=("", *RUNTIMES))
    """Another runtime that does the work and places partitions itself; plans are then counts only."""
    launcher: str = setting("processes", known=("processes", "kubernetes", "keda"))
    """Replicas are processes, pods of a Deployment (`kubernetes`), or pods that KEDA scales by the plan (`keda`)."""
    replica_module: str = setting("services.payment")
    """Module that `python -m` starts for each replica."""
    replica_command: str = setting("")
    """Command line for each replica, instead of a module."""
    replica_client_properties: str = setting("")
    """Client properties of the replicas; empty: those of the autoscaler."""
    replica_prefix: str = setting(REPLICA_PREFIX)
    """Replicas are named prefix-0, prefix-1, … in TAILPACK_REPLICA."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return the sections' rules and: a partition for each of the first replicas, a delivery that is ours."""
        own = (
            ("initial_replicas", _enough_partitions),
            MIN_SERVICE_TIME,
            PLAN_PROTOCOL_ONLY,
            ("speeds", _alike_in_pods),
            ("slow_factor", _told_when),
        )
        return (*super().rules(), *own)


def _alike_in_pods(values: Values) -> str | None:
    pods, differ = values["launcher"] in ("kubernetes", "keda"), len({*values["speeds"]}) > 1
    return "pods of one Deployment are alike; launcher must be processes" if pods and differ else None


def _told_when(values: Values) -> str | None:
    sees = values["slow_factor"] == 1 or values["launcher"] == "processes"
    return None if sees else "is from a second of the load, which only processes of this machine see begin"


def _enough_partitions(values: Values) -> str | None:
    partitions, first = values["payment_partitions"], values["initial_replicas"]
    too_many = partitions and first > partitions
    return f"is more than the {partitions} partitions; the rest would own nothing" if too_many else None
