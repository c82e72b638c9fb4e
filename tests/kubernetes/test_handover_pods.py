"""Handovers and ends of replicas that are pods, by the harness that measures processes."""

import json

from tailpack_command import tailpack

from bench.cluster import Cluster
from bench.handover.courses import failover
from bench.handover.pods import pods
from bench.handover.setup import Setup
from tailpack.local.topics import create_topics


def test_partitions_move_between_pods(kubernetes: str) -> None:
    """A single move, a rotation of three, and a pod that is started for two more."""
    told = ("--launcher", "kubernetes", "--image", kubernetes, "--handovers", "6", "--heartbeat", "0.5", "--rate", "60")
    done = tailpack("bench", "handover", *told, "--json", deadline_s=240)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["launcher"] == "kubernetes"
    assert {one["kind"] for one in found["kinds"]} == {"move 1", "move 3", "start"}
    assert found["handovers"] >= 6
    assert not any(found[fault] for fault in ("lost", "duplicates", "order_violations", "offset_regressions"))


def test_a_pod_that_is_killed_or_stopped_is_survived(kubernetes: str) -> None:
    """SIGKILL that nobody tells of, SIGKILL that the kubelet tells of, and a pod that is let go."""
    setup = Setup(launcher="kubernetes", rate=60.0, heartbeat_s=0.5)
    with pods(Cluster(images={"tailpack": kubernetes}), setup, lambda _: None) as (connection, start):
        create_topics(connection, setup.partitions)
        result = failover(setup, connection, lambda *_: None, start, known=1, sigterms=1, unknown=1)
    found = result.figures
    assert (found.kills, found.sigterms, found.unfinished) == (2, 1, 0)
    assert (found.lost, found.order_violations, found.offset_regressions) == (0, 0, 0)
    assert found.unknown_death_max_s is not None
    assert found.known_death_max_s is not None
    assert found.unknown_death_max_s > 5, "its session of 6 s ran out, from its last heartbeat"
    assert found.known_death_max_s < found.unknown_death_max_s, "what the kubelet saw was said"
