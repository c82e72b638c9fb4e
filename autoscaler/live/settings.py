"""What the live autoscaler is told by its environment."""

from dataclasses import dataclass

from autoscaler.policies.settings import Guards, Scaling, Target
from contracts.delivery import RUNTIMES
from contracts.membership import Membership, Work, obeys_plans, takes_some_time
from contracts.settings import Rule, Values, required, setting


@dataclass(frozen=True, kw_only=True)
class AutoscalerSettings(Scaling, Target, Guards, Membership, Work):
    """Environment: TAILPACK_POLICY, TAILPACK_HTTP_PORT, … and the sections that a scenario has.

    Replicas inherit the whole environment, so what Payment reads is set here too.
    """

    payment_partitions: int = required(least=1)
    """Partitions that the topic has at least; it may have more, and it may grow."""
    state_dir: str
    """Folder for pid files and logs of the replicas. One autoscaler at a time."""
    policy_options: str = setting("")
    """What the policy itself can be told, as a JSON object: {"patience_s": 5}."""
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
    http_host: str = setting("127.0.0.1")
    """Address of the pages; 0.0.0.0 inside a container."""
    http_port: int = setting(0, least=0, most=65535)
    """Port of the pages; 0: none."""
    replica_module: str = setting("services.payment")
    """Started with `python -m` for each replica."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return the sections' rules and: a partition for each of the first replicas, a delivery that is ours."""
        own = (
            ("initial_replicas", _enough_partitions),
            ("service_time_s", takes_some_time),
            ("delivery", obeys_plans),
        )
        return (*super().rules(), *own)


def _enough_partitions(values: Values) -> str | None:
    partitions, first = values["payment_partitions"], values["initial_replicas"]
    return None if first <= partitions else f"is more than the {partitions} partitions; the rest would own nothing"
