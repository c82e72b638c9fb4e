"""Settings of the live autoscaler."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from autoscaler.policies.settings import REPLICA_PREFIX, Guards, Scaling
from autoscaler.ports import Policy
from contracts.delivery import RUNTIMES
from contracts.membership import OBEYS_PLANS, TAKES_TIME, LiveSpeeds, Membership, Work
from contracts.settings import Rule, Settings, Target, Values, setting
from contracts.topics import ScaledGroup
from contracts.validation import InvalidSettingsError


@dataclass(frozen=True, kw_only=True)
class Pages(Settings):
    """Where health, plan and metrics are shown."""

    http_host: str = setting("127.0.0.1")
    """Address of the pages; 0.0.0.0 inside a container."""
    http_port: int = setting(0, least=0, most=65535)
    """Port of the pages; 0: none."""


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(Settings):
    """Options of the policy itself."""

    policy_options: str = setting("")
    """What the policy itself can be told, as a JSON object: {"patience_s": 5}; in a file, a table."""

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
    """The Deployment whose pods are the replicas; infra/k8s/base/payment.yaml shows what it must have."""
    kubernetes_namespace: str = setting("")
    """Its namespace; empty: the one that the autoscaler's own pod is in, or that the kubeconfig's context names."""
    kubernetes_context: str = setting("")
    """Context of the kubeconfig; empty: as a pod its own account, else the current one."""
    kubernetes_lease: str = setting("")
    """Lease by which one of several autoscalers leads and the others stand by; empty: whoever started last leads."""


def kubeconfig() -> str:
    """Return the path as the environment has it now; Kubernetes' own client looks only once, when it is imported."""
    return os.environ.get("KUBECONFIG") or "~/.kube/config"


@dataclass(frozen=True, kw_only=True)
class AutoscalerSettings(
    Scaling, Target, Guards, Membership, Work, LiveSpeeds, PolicyOptions, Pages, ScaledGroup, KubernetesSettings
):
    """Environment: TAILPACK_POLICY, TAILPACK_HTTP_PORT, … and the sections that a scenario has.

    Or the same names in a TOML file. Replicas inherit the whole environment and these settings, so theirs are set here.
    """

    payment_partitions: int = setting(0, "partitions", least=0)
    """Partitions that the topic has at least; it may have more, and it may grow. 0: whatever the topic has."""
    state_dir: str
    """Folder for pid files and logs of the replicas. One autoscaler at a time."""
    overhead_s: float = setting(0.012, "s", least=0)
    """What an event's latency has beside waiting and being served. Twice what the way through the broker takes on one
    machine (6 ms at the 99th percentile when quiet, 7 ms in the middle beside other work): few are always quiet."""
    commit_age_s: float = setting(0.05, "s", least=0)
    """How old commits are on average as lag is read: half of the interval in which replicas commit."""
    startup_s: float = setting(2.0, "s", least=0)
    """From the request of a replica until it could serve, before one was seen to start. A Python process on one of two
    busy cores takes so long."""
    taken_within_s: float = setting(12.0, "s", above=0)
    """A member that serves by an older plan for longer is said to be late, and the plan is written again. Not less than
    the longest round may take."""
    runtime: str = setting("", known=("", *RUNTIMES))
    """Another runtime than ours carries out the work, and places the partitions itself: plans state a count only."""
    launcher: str = setting("processes", known=("processes", "kubernetes", "keda"))
    """What replicas are: processes of this machine, or pods of a Deployment. The autoscaler sets the number of pods
    (`kubernetes`), or states it in plans that KEDA's external scaler reads (`keda`)."""
    replica_module: str = setting("services.payment")
    """Started with `python -m` for each replica."""
    replica_command: str = setting("")
    """Command line that is started for each replica instead, with its words as a shell would part them."""
    replica_client_properties: str = setting("")
    """Client properties of the replicas, so that they have rights of their own; empty: those of the autoscaler."""
    replica_prefix: str = setting(REPLICA_PREFIX)
    """Replicas are named prefix-0, prefix-1 and so on, as they are told in TAILPACK_REPLICA."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return the sections' rules and: a partition for each of the first replicas, a delivery that is ours."""
        own = (
            ("initial_replicas", _enough_partitions),
            TAKES_TIME,
            OBEYS_PLANS,
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
