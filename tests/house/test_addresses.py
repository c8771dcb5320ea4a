"""Where the broker listens: both families, one port."""

from __future__ import annotations

import errno
import json
import socket
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import web
from tests.support.brokers import free_ports, start_warren
from warrenmq.server import listening
from warrenmq.testing import Broker


def speaks_amqp(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=30) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            return b"Warren" in connection.recv(4096)
    except ConnectionRefusedError:
        return False


def has_ipv6() -> bool:
    try:
        with closing(socket.socket(socket.AF_INET6)) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")


@needs_ipv6
@pytest.mark.parametrize("arguments", [(), ("--host", "::"), ("--host", "localhost,127.0.0.1,::1")])
def test_both_families_are_served_on_one_port_that_was_free(arguments: tuple[str, ...]) -> None:
    with start_warren(*arguments) as broker:
        ready = json.loads((broker.folder / "ready.json").read_text())
        assert set(ready) == {"pid", "amqp", "http"}
        for kind, port in (("amqp", broker.port), ("http", broker.http_port)):
            assert ready[kind] == f"{'0.0.0.0' if '::' in arguments else '127.0.0.1'}:{port}"
        for host in ("127.0.0.1", "::1"):
            assert speaks_amqp(host, broker.port)
            shown = f"[{host}]" if ":" in host else host
            answer = web.get(f"http://{shown}:{broker.http_port}/api/overview", auth=("guest", "guest"))
            assert answer.status_code == 200  # guest is local on both
        listeners = {(one["protocol"], one["ip_address"]) for one in answer.json()["listeners"]}
        expected = {"::", "0.0.0.0"} if "::" in arguments else {"::1", "127.0.0.1"}
        assert listeners == {(protocol, host) for protocol in ("amqp", "http") for host in expected}


@needs_ipv6
def test_one_family_alone_is_served_when_only_that_is_named(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text('host = ["::1"]\n')
    with start_warren("--config", str(file)) as broker:
        assert json.loads((broker.folder / "ready.json").read_text())["amqp"] == f"[::1]:{broker.port}"
        assert speaks_amqp("::1", broker.port) and not speaks_amqp("127.0.0.1", broker.port)
    with start_warren(environment={"WARREN_HOST": "127.0.0.1"}) as broker:
        assert speaks_amqp("127.0.0.1", broker.port) and not speaks_amqp("::1", broker.port)


@needs_ipv6
def test_it_listens_on_the_same_addresses_again_after_stop_app() -> None:
    with Broker() as broker, web.Client(base_url=broker.http_url, auth=("guest", "guest")) as client:
        node = client.get("/api/overview").json()["node"]
        places = [("127.0.0.1", broker.port), ("::1", broker.port)]
        assert client.post(f"/api/nodes/{node}/stop_app").status_code == 204
        assert not any(speaks_amqp(*place) for place in places)
        assert client.post(f"/api/nodes/{node}/start_app").status_code == 204
        assert all(speaks_amqp(*place) for place in places)


def without_ipv6(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """A machine that has no IPv6: its sockets cannot be made, or cannot be bound."""
    bound = listening._socket

    def refuse(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(error, "no IPv6")
        return bound(family, address, port)

    monkeypatch.setattr(listening, "_socket", refuse)


@pytest.mark.parametrize("error", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
@pytest.mark.parametrize("host", [None, "::", "127.0.0.1,::1"])
def test_a_machine_without_ipv6_listens_on_the_rest(
    monkeypatch: pytest.MonkeyPatch, error: int, host: str | None
) -> None:
    without_ipv6(monkeypatch, error)
    with Broker(host=host) if host else Broker() as broker:
        assert speaks_amqp("127.0.0.1", broker.port)


@pytest.mark.parametrize("host", ["::1", "2001:db8::1,127.0.0.1"])
def test_an_address_that_was_asked_for_and_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    without_ipv6(monkeypatch, errno.EADDRNOTAVAIL)
    with pytest.raises(OSError, match="no IPv6"):
        Broker(host=host).start()


def test_a_port_that_is_taken_on_one_address_is_not_taken_for_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Port 0: the first pick is in use on the second address, so another one is picked for both."""
    bound = listening._socket
    refused: list[int] = []

    def taken_once(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        if port and not refused:
            refused.append(port)
            raise OSError(errno.EADDRINUSE, "in use")
        return bound(family, address, port)

    monkeypatch.setattr(listening, "_socket", taken_once)
    sockets = listening.listen(["127.0.0.1", "127.0.0.2"], 0)
    places = listening.addresses(sockets)
    for one in sockets:
        one.close()
    assert refused and [host for host, _ in places] == ["127.0.0.1", "127.0.0.2"]
    assert places[0][1] == places[1][1]


def test_a_named_port_in_use_on_the_second_address_is_told_with_its_cure() -> None:
    (port,) = free_ports(1)
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.2", port))
        other.listen()
        with pytest.raises(RuntimeError, match=f"port {port} is in use"):
            with start_warren("--host", "127.0.0.1,127.0.0.2", "--port", str(port)):
                pass
