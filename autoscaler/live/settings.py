"""Settings of the live autoscaler."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec

from autoscaler.live.windows import windows_open, zone_exists
from autoscaler.policies.settings import REPLICA_PREFIX, Guards, Scaling
from contracts.fields import NAME, NAME_RULE
from contracts.membership import MIN_SERVICE_TIME, PLAN_PROTOCOL_ONLY, EventCost, LiveSpeeds, Membership
from contracts.plan import plan_key
from contracts.rebalance_protocol import RUNTIMES
from contracts.settings import Rule, Rules, Settings, Target, WebPages, must, setting
from contracts.topics import ScaledGroup
from contracts.validation import DECODE_ERRORS

GOALS: Final = {"savings": 0.2, "balanced": 1.0, "reliability": 5.0}
"""Goal → factor of the price of late events."""


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(Settings):
    """Options of the policy itself."""

    goal: str = setting("balanced", known=tuple(GOALS))
    """`savings`: a fifth of the policy's default price of late events; `balanced`: that price; `reliability`: five
    times as much. A price in `policy_options` wins."""
    policy_options: str = setting("")
    """Options of the policy: in a file a table, in the environment a JSON object such as {"keep_s": 5}."""

    def options(self) -> dict[str, Any]:
        """Return the decoded options, with the price of the goal. Raises ValueError."""
        try:
            given = msgspec.json.decode(self.policy_options or "{}", type=dict[str, Any])
        except DECODE_ERRORS as error:
            raise ValueError(f"TAILPACK_POLICY_OPTIONS: must be a JSON object: {error}") from error
        if GOALS[self.goal] == 1:
            return given
        from autoscaler.policies.tail_aware.plans import TailAwareSettings  # noqa: PLC0415  imports numpy

        return {"price": GOALS[self.goal] * TailAwareSettings.price} | given


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings(Settings):
    """Deployment of the replicas, if they are pods."""

    kubernetes_deployment: str = setting("payment")
    """Deployment of the replicas."""
    kubernetes_namespace: str = setting("")
    """Its namespace; empty: that of the autoscaler's pod or the kubeconfig."""
    kubernetes_context: str = setting("")
    """Context of the kubeconfig; empty: the pod's account, or the current context."""
    kubernetes_lease: str = setting("")
    """Lease that selects the leader of several autoscalers; empty: the newest one leads."""
    kubernetes_lease_s: float = setting(5.0, "s", least=5.0)
    """Duration of that Lease: over twice the API server's slowest answer."""


def kubeconfig() -> str:
    """Return the kubeconfig's path. Kubernetes' client would read KUBECONFIG only once, when it is imported."""
    return os.environ.get("KUBECONFIG") or "~/.kube/config"


EQUAL_PODS: Final = must(
    "speeds",
    lambda of: of["launcher"] == "processes" or len({*of["speeds"]}) <= 1,
    "must be equal, because pods of one Deployment are equal; or set launcher = processes",
)
NO_SLOW_PODS: Final = must(
    "slow_factor",
    lambda of: of["launcher"] == "processes" or of["slow_factor"] == 1,
    "must be 1 unless launcher = processes: pods do not learn when the load starts",
)


def _enough_partitions(name: str) -> tuple[str, Rule]:
    otherwise = "must not exceed the {payment_partitions} partitions: more replicas would own none"
    return must(name, lambda of: not of["payment_partitions"] or of[name] <= of["payment_partitions"], otherwise)


LED_RULES: Final = (
    must("consumers", lambda of: of["consumers"] == "ours" or not of["runtime"], "must be ours with runtime"),
    must(
        "replica_command",
        lambda of: of["replica_command"] or of["launcher"] != "processes" or of["consumers"] == "ours",
        "must start your consumer unless consumers = ours",
    ),
    must(
        "absence_grace_s",
        lambda of: of["consumers"] == "ours" or not of["absence_grace_s"],
        "must be 0 unless consumers = ours",
    ),
)


@dataclass(frozen=True, kw_only=True)
class AutoscalerSettings(
    Scaling, Target, Guards, Membership, EventCost, LiveSpeeds, PolicyOptions, WebPages, ScaledGroup, KubernetesSettings
):
    """Settings of the live autoscaler: TAILPACK_POLICY, TAILPACK_HTTP_PORT, …, or the same names in a TOML file.

    Replicas inherit the environment and these settings, so their settings belong here too.
    """

    TABLES: ClassVar[Mapping[str, Mapping[str, str]]] = {"rails": {"min": "min_replicas", "max": "max_replicas"}}

    payment_partitions: int = setting(0, "partitions", least=0)
    """Minimum number of partitions of the topic; 0: any. The topic may grow."""
    act: str = setting("on", known=("off", "propose", "on"))
    """`on`: plans are carried out. `off`: the autoscaler observes a group that another scaler manages, decides and
    reports; it joins no group and writes no plan. `propose`: as `off`, but the replica count is published for KEDA."""
    windows: tuple[str, ...] = setting(())
    """Times without changes, such as `Mon-Fri 08:00-18:00 scale-in off`; also `scale-out off` or `all off`."""
    time_zone: str = setting("UTC")
    """Time zone of the windows, such as Europe/Berlin."""
    revert_in_vain: bool = setting(False)
    """Whether two scale-ups in turn that brought less than a third of the expected throughput are reverted for ten
    minutes. They are always reported."""
    fallback: bool = setting(True)
    """Whether a count by rate and lag replaces the decisions of a policy that fails."""
    member_rate: float = setting(0.0, "events/s", least=0)
    """Unless act = on: service rate of one busy member; 0: learned while members have lag."""
    state_dir: str = setting("")
    """Folder for pid files and logs of the replicas. Only one autoscaler may use it at a time."""
    overhead_s: float = setting(0.012, "s", least=0)
    """Latency of an event without waiting and service: twice the p99 (6 ms) of an idle broker on the same machine."""
    commit_age_s: float = setting(0.05, "s", least=0)
    """Mean age of committed offsets when they are read: half the commit interval. Of led groups, intervals above 0.5 s
    are learned."""
    startup_s: float = setting(2.0, "s", least=0)
    """Assumed start-up time of a replica until one is measured. Nothing is measured unless act = on."""
    taken_within_s: float = setting(12.0, "s", above=0)
    """Time until a member with an older plan is reported and the plan is written again. Longer than a rebalance."""
    runtime: str = setting("", known=("", *RUNTIMES))
    """Other runtime that processes the events and assigns partitions itself. Plans then contain only a count."""
    consumers: str = setting("ours", known=("ours", "led", "assigned", "auto"))
    """`ours`: replicas follow plans by themselves. `led`: replicas are any consumers of the classic protocol, and the
    autoscaler leads their group. `assigned`: brokers assign their partitions (KIP-848), by tailpack's assignor. `auto`:
    whichever suits the group."""
    take_over: str = setting("wait", known=("wait", "kick"))
    """If another member leads at the start (`consumers = led`): wait until it has left, or make it leave and rejoin
    (`kick`)."""
    led_protocols: tuple[str, ...] = setting(("range", "roundrobin", "sticky", "cooperative-sticky"))
    """Assignors that the autoscaler offers as the leader. The consumers must share one. KafkaJS: RoundRobinAssigner."""
    launcher: str = setting("processes", known=("processes", "kubernetes", "keda"))
    """Replicas are processes, pods of a Deployment (`kubernetes`), or pods that KEDA scales by the plan (`keda`)."""
    replica_module: str = setting("services.payment")
    """Module that `python -m` starts for each replica."""
    replica_command: str = setting("")
    """Command line for each replica, instead of a module."""
    replica_client_properties: str = setting("")
    """Client properties of the replicas; empty: those of the autoscaler."""
    replica_prefix: str = setting(REPLICA_PREFIX)
    """Replicas get the names prefix-0, prefix-1, … in TAILPACK_REPLICA."""

    @property
    def acts(self) -> bool:
        """Whether plans are carried out."""
        return self.act == "on"

    def journal_key(self, namespace: str) -> bytes:
        """Return the key of the journal. An autoscaler that only observes does not mix with the one that acts."""
        return plan_key(self.group_in(namespace), self.topic_in(namespace)) + (b"" if self.acts else b"/would")

    @property
    def is_foreign(self) -> bool:
        """Whether the replicas are other consumers, which report nothing."""
        return self.consumers != "ours"

    RULES: ClassVar[Rules] = (
        *LED_RULES,
        ("windows", windows_open),
        ("time_zone", zone_exists),
        must("state_dir", lambda of: of["state_dir"] or of["act"] != "on", "must be set if act = on"),
        *map(_enough_partitions, ("min_replicas", "initial_replicas")),
        MIN_SERVICE_TIME,
        PLAN_PROTOCOL_ONLY,
        EQUAL_PODS,
        NO_SLOW_PODS,
        must("replica_prefix", lambda of: NAME.fullmatch(of["replica_prefix"]), NAME_RULE),
    )
