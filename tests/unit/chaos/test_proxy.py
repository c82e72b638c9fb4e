"""The proxy forwards, drops without a reset, and delays; dropped bytes arrive once it is open again."""

import gc
import socket
import threading
import warnings
from collections.abc import Iterator

import pytest
from chaos_suite.proxy import Mode, Proxies, Proxy


@pytest.fixture
def echo() -> Iterator[int]:
    """Port of a server that sends back what it receives."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection:
                while received := connection.recv(4096):
                    connection.sendall(received)

        threading.Thread(target=serve, daemon=True).start()
        yield int(listening.getsockname()[1])
        listening.shutdown(socket.SHUT_RDWR)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10.0)


def is_cut_off(client: socket.socket) -> bool:
    try:
        return client.recv(100) == b""
    except ConnectionResetError:
        return True


def test_dropped_bytes_reach_nobody_and_arrive_later(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy.port) as known:
        known.sendall(b"before")
        assert known.recv(100) == b"before"
        proxy.switch(Mode.DROP)
        with connected(proxy.port) as new:
            for each in (known, new):
                each.sendall(b"into the dark")
                each.settimeout(0.2)
                with pytest.raises(TimeoutError):  # no answer, no reset, no end
                    each.recv(100)
            proxy.switch(Mode.OPEN)
            for each in (known, new):
                each.settimeout(10)
                assert each.recv(100) == b"into the dark"


def test_a_closed_cluster_of_proxies_cuts_every_connection_and_leaves_no_socket(echo: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(10):
            proxies = Proxies()
            port = proxies.door(echo)
            with connected(port) as client, connected(port):
                proxies.switch(echo, Mode.DROP)
                proxies.close()
                assert is_cut_off(client)
            with pytest.raises(ConnectionRefusedError):
                connected(port)
        gc.collect()
    assert [str(one.message) for one in caught] == []
