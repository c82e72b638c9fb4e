"""The proxy passes, holds back without a word, and slows down; what was held back arrives later."""

import gc
import socket
import threading
import time
import warnings
from collections.abc import Iterator

import pytest

from bench.chaos.proxy import Mode, Proxies, Proxy


@pytest.fixture
def echo() -> Iterator[int]:
    """Port of a server that says again what it is told."""
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
                while said := connection.recv(4096):
                    connection.sendall(said)

        threading.Thread(target=serve, daemon=True).start()
        yield int(listening.getsockname()[1])
        listening.shutdown(socket.SHUT_RDWR)


def connected(port: int, timeout_s: float = 10.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout_s)


def is_cut_off(client: socket.socket) -> bool:
    try:
        return client.recv(100) == b""
    except ConnectionResetError:
        return True


def test_what_is_said_passes_and_an_end_is_passed_on(echo: int) -> None:
    with Proxy(echo) as proxy, connected(proxy.port) as client:
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"
        client.shutdown(socket.SHUT_WR)
        assert client.recv(100) == b"", "the server's end of file"


def test_while_it_drops_nobody_hears_anything_and_later_all_of_it(echo: int) -> None:
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


def test_slowly_each_chunk_waits(echo: int) -> None:
    with Proxy(echo, delay_s=0.1, bytes_per_s=1e6) as proxy, connected(proxy.port) as client:
        proxy.switch(Mode.SLOW)
        began = time.monotonic()
        client.sendall(b"there and back")
        assert client.recv(100) == b"there and back"
        assert time.monotonic() - began >= 0.2, "both ways"


def test_where_nobody_listens_the_client_is_cut_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
    with Proxy(port) as proxy, connected(proxy.port) as client:
        assert is_cut_off(client)


def test_closing_cuts_every_connection(echo: int) -> None:
    proxies = Proxies()
    port = proxies.door(echo)
    assert proxies.door(echo) == port
    with connected(port) as client:
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"
        proxies.switch(echo, Mode.DROP)
        proxies.close()
        assert is_cut_off(client)
    with pytest.raises(ConnectionRefusedError):
        connected(port)


def test_no_socket_is_left_of_a_proxy_that_is_closed_while_clients_come(echo: int) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(20):
            with Proxy(echo) as proxy:
                clients = [connected(proxy.port) for _ in range(5)]
            for one in clients:
                one.close()
        gc.collect()
    assert [str(one.message) for one in told] == []
