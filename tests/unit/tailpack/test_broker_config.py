"""Ports, server.properties and folders of embedded nodes, without starting any."""

import socket
from pathlib import Path

import pytest

from report.run_info import RUN_FILE
from tailpack.errors import TailpackError
from tailpack.local.broker_config import PROPERTIES, NodeState, assign_ports, write_configuration
from tailpack.local.ports import EPHEMERAL, free_ports
from tailpack.provenance import check_no_run


def properties(folder: Path, state: NodeState) -> dict[str, str]:
    write_configuration(folder, state, PROPERTIES)
    lines = (folder / "server.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def test_three_new_nodes_get_six_different_ports_and_the_same_quorum() -> None:
    states = assign_ports([None, None, None], 0)
    assert [state.node for state in states] == [1, 2, 3]
    assert all(state.quorum == states[0].quorum for state in states)
    assert len({state.port for state in states} | set(states[0].quorum.values())) == 6


@pytest.mark.skipif(not EPHEMERAL.exists(), reason="this system does not tell which ports it gives away")
def test_a_free_port_is_outside_the_ephemeral_range() -> None:
    first = int(EPHEMERAL.read_text().split()[0])
    ports = free_ports([0] * 50)
    assert len(set(ports)) == 50
    assert max(ports) < first or first < 11_000


def test_a_taken_port_is_rejected_with_the_option() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TailpackError, match=f"port {port} on 127.0.0.1 is taken; .*--port"):
            assign_ports([NodeState(port=port)], 0)


@pytest.mark.parametrize(("nodes", "copies", "in_sync"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_a_partition_has_as_many_copies_as_nodes_but_at_most_three(
    tmp_path: Path, nodes: int, copies: int, in_sync: int
) -> None:
    found = properties(tmp_path, NodeState(port=1, quorum={node: 100 + node for node in range(1, nodes + 1)}))
    assert {found[key] for key in found if key.endswith("replication.factor")} == {str(copies)}
    assert {found[key] for key in found if "min.isr" in key or key.startswith("min.insync")} == {str(in_sync)}
    assert found["controller.quorum.voters"].split(",")[-1] == f"{nodes}@127.0.0.1:{100 + nodes}"


def test_an_existing_folder_is_accepted_unless_it_holds_a_run(tmp_path: Path) -> None:
    (tmp_path / "mine" / "logs").mkdir(parents=True)
    assert check_no_run(tmp_path / "mine") == tmp_path / "mine"
    (tmp_path / "mine" / RUN_FILE).write_text("{}")
    with pytest.raises(TailpackError, match="mine already holds a run"):
        check_no_run(tmp_path / "mine")
