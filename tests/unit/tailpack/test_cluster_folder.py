"""A cluster's folder remembers how many nodes it holds and where they listen, also while none of them runs."""

from pathlib import Path

import msgspec
import pytest

from tailpack.errors import TailpackError
from tailpack.local.broker import STATE_FILE
from tailpack.local.broker_config import Seat
from tailpack.local.cluster import Cluster

QUORUM = {1: 501, 2: 502, 3: 503}


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A folder in which three nodes ran before."""
    for node in QUORUM:
        folder = tmp_path / f"node-{node}"
        folder.mkdir()
        (folder / STATE_FILE).write_bytes(msgspec.json.encode(Seat(port=100 + node, node=node, quorum=QUORUM)))
    return tmp_path


def test_a_new_folder_takes_one_node_unless_told_otherwise(tmp_path: Path) -> None:
    assert [broker.folder for broker in Cluster(tmp_path).nodes.values()] == [tmp_path]
    assert [broker.folder.name for broker in Cluster(tmp_path, brokers=2).nodes.values()] == ["node-1", "node-2"]
    assert Cluster(tmp_path).address() is None


def test_a_folder_of_three_is_found_again(three: Path) -> None:
    cluster = Cluster(three)

    assert cluster.addresses == {1: "127.0.0.1:101", 2: "127.0.0.1:102", 3: "127.0.0.1:103"}
    assert cluster.address() is None, "none of them runs"
    cluster.stop()


@pytest.mark.parametrize("brokers", [1, 5])
def test_another_number_is_refused_before_anything_starts(three: Path, brokers: int) -> None:
    with pytest.raises(TailpackError, match=f"{three} holds a Kafka of 3 brokers, not {brokers}; leave --brokers out"):
        Cluster(three, brokers)
