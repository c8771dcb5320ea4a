"""Every setting does something: one case each, seen from outside, with the setting read from a configuration file.

A case looks at brokers that differ in one setting only and finds that they behave differently, over AMQP, over HTTP,
in a file or in what `warren serve` says. A setting without a case fails: that is how one that does nothing is found.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import warrenmq
from tests.limits.authority import Authority
from tests.support import web
from tests.support.brokers import free_ports
from tests.support.cluster import Cluster
from tests.support.collector import collecting
from tests.support.etcd import Etcd
from tests.support.rawclient import PROTOCOL_HEADER, Frame, RawClient
from warrenmq.broker.records import BasicMessage, Exchange, Resource
from warrenmq.client import ConnectError, Connection
from warrenmq.cluster.etcd import Request
from warrenmq.cluster.handshake import NONE, SECRET, TLS, Handshake, Refused
from warrenmq.cluster.wire import Frames
from warrenmq.server import journal as server_journal
from warrenmq.server.config import TABLE, SettingsError, load
from warrenmq.server.tls_files import CertificateError
from warrenmq.testing import Broker

Case = Callable[[Path], None]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


@pytest.mark.parametrize("name", TABLE)
def test_a_setting_changes_something_that_can_be_seen(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_journal, "FIRST", 0.0)  # seconds before it begins, which no case is about
    assert name in CASES, f"no case for the setting {name}: does it do anything?"
    CASES[name](tmp_path)


def test_every_case_is_about_a_setting() -> None:
    assert set(CASES) <= set(TABLE)


# -- brokers -------------------------------------------------------------------------------------------------------


def toml(value: object) -> str:
    return json.dumps(str(value) if isinstance(value, Path) else value)


def broker(folder: Path, clock: str = "real", **settings: object) -> Broker:
    """A broker whose settings come from a file."""
    folder.mkdir(exist_ok=True)
    file = folder / f"warren-{len(list(folder.iterdir()))}.toml"
    file.write_text("".join(f"{name} = {toml(value)}\n" for name, value in settings.items()))
    read = load({"config": str(file)}, {})
    return Broker(clock=clock, heartbeats=clock, **{name: getattr(read, name) for name in settings})


def serve(folder: Path, *, wait: bool = True, **settings: object) -> tuple[subprocess.Popen[bytes], Path]:
    """`warren serve` with a file; its output is in the second."""
    folder.mkdir()
    file, output, ready = folder / "warren.toml", folder / "output", folder / "ready.json"
    settings = {"port": 0, "data_dir": folder / "data", "ready_file": ready, **settings}
    file.write_text("".join(f"{name} = {toml(value)}\n" for name, value in settings.items()))
    with output.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "warrenmq", "serve", "--config", str(file)],
            env={**os.environ, "PYTHONPATH": str(Path(warrenmq.__file__).parents[1])},
            cwd=folder,
            stdout=out,
            stderr=out,
        )
    while wait and not Path(str(settings["ready_file"])).exists():
        assert process.poll() is None, output.read_text()
        time.sleep(0.01)
    return process, output


def stopped(served: tuple[subprocess.Popen[bytes], Path]) -> str:
    process, output = served
    process.terminate()
    assert process.wait(60) == 0
    return output.read_text()


def tuned(broker: Broker, name: str) -> int:
    """What connection.tune offers."""
    with RawClient(broker.port) as client:
        client.send(PROTOCOL_HEADER)
        client.wait("connection.start")
        client.start_ok("guest", "guest")
        return client.wait("connection.tune").number(name)


def login(broker: Broker, user: str = "guest", password: str = "guest", vhost: str = "/") -> bool:
    with RawClient(broker.port) as client:
        return opened(client, user, password, vhost)


def opened(client: RawClient, user: str = "guest", password: str = "guest", vhost: str = "/") -> bool:
    return any(frame.name == "connection.open-ok" for frame in client.handshake(user, password, vhost).frames)


def status(broker: Broker, path: str = "/whoami", method: str = "GET", **headers: str) -> int:
    wanted = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.request(method, f"{broker.http_url}/api{path}", auth=("guest", "guest"), headers=wanted).status_code


def node(broker: Broker) -> dict[str, object]:
    answer = web.get(f"{broker.http_url}/api/nodes", auth=("guest", "guest")).json()
    found: dict[str, object] = answer[0]
    return found


def metric(broker: Broker, name: str) -> int:
    for line in web.get(f"{broker.http_url}/metrics").text.splitlines():
        if line.startswith(name):
            return int(float(line.rpartition(" ")[2]))
    raise AssertionError(name)


def accepts(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 60).close()
    except OSError:
        return False
    return True


def ended(connection: socket.socket) -> bool:
    """Nothing else is ever sent to it, so whatever can be read is an answer that ends it, or its end."""
    return bool(select.select([connection], [], [], 0)[0])


def wait_for_end(connection: socket.socket) -> None:
    connection.settimeout(60)
    while True:
        try:
            if not connection.recv(65536):
                return
        except ConnectionError:
            return


# -- addresses and files -------------------------------------------------------------------------------------------


@case
def host(folder: Path) -> None:
    with broker(folder, host=["127.0.0.2"]) as one:
        assert accepts("127.0.0.2", one.port) and not accepts("127.0.0.1", one.port)


@case
def port(folder: Path) -> None:
    (free,) = free_ports(1)
    with broker(folder, port=free):
        assert accepts("127.0.0.1", free)


@case
def http_port(folder: Path) -> None:
    (free,) = free_ports(1)
    with broker(folder, http_port=free):
        assert web.get(f"http://127.0.0.1:{free}/api/whoami", auth=("guest", "guest")).status_code == 200


@case
def data_dir(folder: Path) -> None:
    stopped(serve(folder / "a", data_dir=folder / "here"))
    assert list((folder / "here").iterdir())


@case
def ready_file(folder: Path) -> None:
    served = serve(folder / "a", ready_file=folder / "ready")
    assert json.loads((folder / "ready").read_text())["pid"] == served[0].pid
    stopped(served)


# -- TLS -----------------------------------------------------------------------------------------------------------


def identities(folder: Path) -> tuple[Authority, Authority]:
    (folder / "ours").mkdir()
    (folder / "theirs").mkdir()
    return Authority(folder / "ours", "ours"), Authority(folder / "theirs", "theirs")


def tls_login(port: int, trusted: Authority, identity: tuple[Path, Path] | None = None) -> bool:
    """Does a client that trusts this authority, and shows this certificate, come in?"""
    context = ssl.create_default_context(cafile=str(trusted.certificate))
    if identity is not None:
        context.load_cert_chain(*identity)
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as client:
                client.sendall(PROTOCOL_HEADER)
                return len(client.recv(100)) > 0
    except OSError:
        return False


@case
def tls_port(folder: Path) -> None:
    ours, _ = identities(folder)
    certificate, key = ours.issue("broker")
    (free,) = free_ports(1)
    with broker(folder, tls_cert=certificate, tls_key=key):
        assert not accepts("127.0.0.1", free)
    with broker(folder, tls_port=free, tls_cert=certificate, tls_key=key):
        assert tls_login(free, ours)


@case
def tls_cert(folder: Path) -> None:
    for number, authority in enumerate(identities(folder)):
        (free,) = free_ports(1)
        certificate, key = authority.issue("broker")
        with broker(folder / str(number), tls_port=free, tls_cert=certificate, tls_key=key):
            assert tls_login(free, authority)


@case
def tls_key(folder: Path) -> None:
    ours, theirs = identities(folder)
    with (
        pytest.raises(CertificateError, match="tls_key: .* is not the key of tls_cert"),
        broker(folder, tls_port=0, tls_cert=ours.issue("broker")[0], tls_key=theirs.issue("broker")[1]),
    ):
        pass


@case
def tls_ca(folder: Path) -> None:
    ours, theirs = identities(folder)
    certificate, key = ours.issue("broker")
    for authority, comes_in in ((ours, False), (theirs, True)):
        (free,) = free_ports(1)
        with broker(
            folder, tls_port=free, tls_cert=certificate, tls_key=key, tls_ca=authority.certificate, tls_verify="require"
        ):
            assert tls_login(free, ours, theirs.issue("client")) == comes_in


@case
def tls_verify(folder: Path) -> None:
    ours, _ = identities(folder)
    certificate, key = ours.issue("broker")
    for verify, comes_in in (("none", True), ("peer", True), ("require", False)):
        (free,) = free_ports(1)
        with broker(
            folder, tls_port=free, tls_cert=certificate, tls_key=key, tls_ca=ours.certificate, tls_verify=verify
        ):
            assert tls_login(free, ours) == comes_in


@case
def tls_min_version(folder: Path) -> None:
    ours, _ = identities(folder)
    certificate, key = ours.issue("broker")
    for oldest, comes_in in (("1.2", True), ("1.3", False)):
        amqp, http = free_ports(2)
        shown: dict[str, Any] = {"tls_cert": certificate, "tls_key": key, "tls_min_version": oldest}
        with broker(folder / oldest, tls_port=amqp, https_port=http, **shown):
            for port in (amqp, http):
                context = ssl.create_default_context(cafile=str(ours.certificate))
                context.maximum_version = ssl.TLSVersion.TLSv1_2
                with socket.create_connection(("127.0.0.1", port), 60) as plain:
                    if comes_in:
                        context.wrap_socket(plain, server_hostname="localhost").close()
                    else:
                        with pytest.raises(ssl.SSLError):
                            context.wrap_socket(plain, server_hostname="localhost")


@case
def tls_login_from(folder: Path) -> None:
    ours, _ = identities(folder)
    certificate, key = ours.issue("broker")
    for part, user in (("common_name", "amy"), ("distinguished_name", "CN=amy"), ("ip", "127.0.0.1")):
        (free,) = free_ports(1)
        shown: dict[str, Any] = {
            "tls_cert": certificate,
            "tls_key": key,
            "tls_ca": ours.certificate,
            "tls_verify": "peer",
        }
        with broker(folder / part, tls_port=free, tls_login_from=part, default_user=user, **shown):
            context = ssl.create_default_context(cafile=str(ours.certificate))
            context.load_cert_chain(*ours.issue("amy"))
            Connection(port=free, ssl=context, mechanism="EXTERNAL", username="", password="").close()


# -- what clients are offered and allowed --------------------------------------------------------------------------


@case
def auth_mechanisms(folder: Path) -> None:
    for offered in ("PLAIN", "AMQPLAIN", "PLAIN, AMQPLAIN"):
        with broker(folder / offered, auth_mechanisms=offered) as one:
            for mechanism in ("PLAIN", "AMQPLAIN"):
                url = f"amqp://guest:guest@127.0.0.1:{one.port}/"
                if mechanism in offered.split(", "):
                    Connection(url, mechanism=mechanism).close()
                else:
                    with pytest.raises(ConnectError, match="mechanism"):
                        Connection(url, mechanism=mechanism)
            with web.Client() as client:
                (node,) = client.get(f"{one.http_url}/api/nodes", auth=("guest", "guest")).json()
            enabled = {each["name"] for each in node["auth_mechanisms"] if each["enabled"]}
            assert enabled == set(offered.split(", "))


@case
def heartbeat(folder: Path) -> None:
    with broker(folder, heartbeat=17) as one:
        assert tuned(one, "heartbeat") == 17


@case
def frame_max(folder: Path) -> None:
    with broker(folder, frame_max="8KiB") as one:
        assert tuned(one, "frame_max") == 8192


@case
def channel_max(folder: Path) -> None:
    with broker(folder, channel_max=5) as one:
        assert tuned(one, "channel_max") == 5


@case
def max_message_size(folder: Path) -> None:
    with broker(folder, max_message_size=10) as one, RawClient(one.port) as client:
        client.handshake().open(1)
        client.publish(1, "", "nobody", b"x" * 10)
        client.publish(1, "", "nobody", b"x" * 11)
        assert "larger than configured max size 10" in client.wait("channel.close").text("reply_text")


@case
def handshake_timeout(folder: Path) -> None:
    with broker(folder, "virtual", handshake_timeout=3.0) as one:
        with socket.create_connection(("127.0.0.1", one.port), 60) as client:
            one.settle()
            one.advance(2.9)
            assert not ended(client)
            one.advance(0.2)
            wait_for_end(client)


@case
def connection_max(folder: Path) -> None:
    with broker(folder, connection_max=1) as one, RawClient(one.port) as first:
        assert opened(first)
        assert not login(one)


@case
def consumer_timeout(folder: Path) -> None:
    with broker(folder, "virtual", consumer_timeout=120.0, heartbeat=0) as one, RawClient(one.port) as client:
        client.handshake().open(1)
        client.call(1, "queue.declare", queue="slow")
        client.call(1, "basic.consume", queue="slow")
        client.publish(1, "", "slow", b"x")
        client.wait("basic.deliver")
        one.advance(240)
        assert "timed out" in client.wait("channel.close").text("reply_text")


# -- HTTP ----------------------------------------------------------------------------------------------------------


def half_a_request(one: Broker, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", one.http_port), 60)
    connection.sendall(sent)
    return connection


def patience(folder: Path, setting: str, sent: bytes) -> None:
    """Two brokers get half a request each; the patient one still waits when the other has given up."""
    with broker(folder, **{setting: 3600.0}) as patient, broker(folder, **{setting: 0.2}) as hasty:  # type: ignore[arg-type]
        with half_a_request(patient, sent) as kept, half_a_request(hasty, sent) as given_up:
            wait_for_end(given_up)
            assert not ended(kept)


@case
def http_header_timeout(folder: Path) -> None:
    patience(folder, "http_header_timeout", b"GET /api/whoami HTTP/1.1\r\nhost: x\r\n")


@case
def http_body_timeout(folder: Path) -> None:
    login = b"authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"
    head = b"PUT /api/vhosts/x HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    patience(folder, "http_body_timeout", head + login + b"content-length: 10\r\n\r\n{")


@case
def http_connection_max(folder: Path) -> None:
    with broker(folder, http_connection_max=1) as one:
        with half_a_request(one, b"GET") as first:
            with half_a_request(one, b"GET"):
                wait_for_end(first)  # it makes room for the second


@case
def http_proxies(folder: Path) -> None:
    with broker(folder) as one:
        assert status(one, x_forwarded_for="127.0.0.1") == 401
    with broker(folder, http_proxies=["127.0.0.1"]) as one:
        assert status(one, x_forwarded_for="127.0.0.1") == 200


@case
def http_origins(folder: Path) -> None:
    with broker(folder) as one:
        assert status(one, "/vhosts/x", "PUT", origin="https://a.example") == 403
    with broker(folder, http_origins=["https://a.example"]) as one:
        assert status(one, "/vhosts/x", "PUT", origin="https://a.example") == 201


# -- several nodes -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def member(folder: Path, **settings: object) -> Iterator[tuple[int, Path]]:
    """A node of a cluster, whether there is an etcd or not: where others reach it, and its output."""
    (free,) = free_ports(1)
    given = {"cluster": "one", "cluster_port": free, "cluster_insecure": "on", "cluster_etcd": dead_end(), **settings}
    process, output = serve(folder, wait=False, journal="off", **given)
    try:
        yield free, output
    finally:
        process.kill()
        process.wait()


def dead_end() -> str:
    return f"http://127.0.0.1:{free_ports(1)[0]}"


def said(output: Path, text: str) -> str:
    """The output once it has that."""
    while text not in output.read_text():
        time.sleep(0.02)
    return output.read_text()


def proves(port: int, mode: str, secret: bytes = b"", identity: tuple[Path, Path] | None = None) -> bool:
    """Whether a node takes for one whoever proves it in this way."""
    handshake, frames = Handshake(True, mode, secret, bytes(32)), Frames()
    with socket.create_connection(("127.0.0.1", port), 60) as plain:
        connection: socket.socket = plain
        try:
            if identity is not None:
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                context.load_cert_chain(*identity)
                connection = context.wrap_socket(plain)
            connection.sendall(handshake.begin())
            while not handshake.done and (data := connection.recv(65536)):
                frames.feed(data)
                while (frame := frames.next()) is not None:
                    connection.sendall(handshake.take(frame))
            # a node that believes it waits for what comes next, and another one has hung up
            connection.settimeout(0.3)
            return handshake.done and bool(connection.recv(1))
        except TimeoutError:
            return handshake.done
        except (OSError, Refused):
            return False


@case
def cluster(folder: Path) -> None:
    with member(folder / "a", cluster="autumn") as (_, output):
        assert "AMQP" not in said(output, "a node of the cluster autumn")
    assert "a node of" not in stopped(serve(folder / "b"))


@case
def cluster_node(folder: Path) -> None:
    with member(folder / "a", cluster_node="willow") as (_, output):
        said(output, "of the cluster one, willow at")


@case
def cluster_port(folder: Path) -> None:
    with member(folder / "a") as (port, output):
        said(output, f"at 127.0.0.1:{port}.")
        assert accepts("127.0.0.1", port)


@case
def cluster_host(folder: Path) -> None:
    with member(folder / "a", cluster_host="127.0.0.2") as (port, output):
        said(output, f"at 127.0.0.2:{port}.")
        assert accepts("127.0.0.2", port) and not accepts("127.0.0.1", port)


@case
def cluster_etcd(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with member(folder / "a", cluster_etcd=[dead_end(), f"http://127.0.0.1:{listener.getsockname()[1]}"]):
            client, _ = listener.accept()
            assert client.recv(100).startswith(b"POST /v3/kv/range ")
            client.close()


@case
def cluster_insecure(folder: Path) -> None:
    with member(folder / "a") as (port, output):
        said(output, "a node of")
        assert proves(port, NONE)
    for number, others in enumerate(({"cluster_insecure": "off"}, {"cluster_host": "0.0.0.0"})):
        with member(folder / f"b{number}", **others) as (_, output):
            assert "a node of" not in said(output, "cluster_secret: nothing given")


@case
def cluster_secret(folder: Path) -> None:
    (folder / "secret").write_text("seventeen octets.\n")
    with member(folder / "a", cluster_insecure="off", cluster_secret=folder / "secret") as (port, output):
        said(output, "a node of")
        assert proves(port, SECRET, b"seventeen octets.") and not proves(port, SECRET, b"some other octets")
        assert not proves(port, NONE)
    (folder / "short").write_text("word")
    with member(folder / "b", cluster_secret=folder / "short") as (_, output):
        said(output, "has 4 octets; allowed: at least 16")


def certified(
    folder: Path, *, cert: Authority, key: Authority, ca: Authority, name: str
) -> tuple[tuple[bool, bool], str]:
    """Whether a node with these takes one with a certificate of the first and of the last authority; what it says."""
    with member(
        folder / name,
        cluster_insecure="off",
        cluster_cert=cert.issue("node")[0],
        cluster_key=key.issue("node")[1],
        cluster_ca=ca.certificate,
    ) as (port, output):
        while not output.read_text():
            time.sleep(0.02)
        text = said(output, "\n")
        if "a node of" in text:
            return (proves(port, TLS, b"", cert.issue("n2")), proves(port, TLS, b"", ca.issue("n3"))), text
        return (False, False), text


@case
def cluster_cert(folder: Path) -> None:
    ours, theirs = identities(folder)
    assert certified(folder, cert=ours, key=ours, ca=ours, name="a")[0] == (True, True)
    assert "cluster_cert: cannot be used" in certified(folder, cert=theirs, key=ours, ca=ours, name="b")[1]


@case
def cluster_key(folder: Path) -> None:
    ours, theirs = identities(folder)
    assert "cluster_cert: cannot be used" in certified(folder, cert=ours, key=theirs, ca=ours, name="a")[1]


@case
def cluster_ca(folder: Path) -> None:
    ours, theirs = identities(folder)
    assert certified(folder, cert=ours, key=ours, ca=theirs, name="a")[0] == (False, True)


def over_tls(folder: Path, authority: Authority, **settings: object) -> str:
    """Who asks this etcd, by the certificate; it is refused without one."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.issue("etcd"))
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with member(folder, cluster_etcd=place, **settings):
            while True:
                plain, _ = listener.accept()
                try:
                    with context.wrap_socket(plain, server_side=True) as client:
                        asked = client.recv(100)
                        shown: Any = client.getpeercert()
                        return str(shown["subject"][0][0][1]) if asked.startswith(b"POST ") else "nobody"
                except OSError as error:
                    return str(error)


@case
def cluster_etcd_ca(folder: Path) -> None:
    ours, theirs = identities(folder)
    certificate, key = ours.issue("n1")
    show = {"cluster_etcd_cert": certificate, "cluster_etcd_key": key}
    assert over_tls(folder / "a", ours, cluster_etcd_ca=ours.certificate, **show) == "n1"
    assert "unknown ca" in over_tls(folder / "b", ours, cluster_etcd_ca=theirs.certificate, **show).lower()


@case
def cluster_etcd_cert(folder: Path) -> None:
    ours, theirs = identities(folder)
    certificate, key = theirs.issue("n1")
    show = {"cluster_etcd_cert": certificate, "cluster_etcd_key": key}
    assert "verify failed" in over_tls(folder / "a", ours, cluster_etcd_ca=ours.certificate, **show)


@case
def cluster_etcd_key(folder: Path) -> None:
    ours, theirs = identities(folder)
    show = {"cluster_etcd_cert": ours.issue("n1")[0], "cluster_etcd_key": theirs.issue("n1")[1]}
    with member(folder / "a", cluster_etcd="https://127.0.0.1:1", cluster_etcd_ca=ours.certificate, **show) as one:
        said(one[1], "cluster_etcd_cert: cannot be used")


@case
def cluster_ttl(folder: Path) -> None:
    with Etcd(folder / "etcd") as etcd:
        with member(folder / "a", cluster_etcd=etcd.endpoint, cluster_ttl=7) as (_, output):
            said(output, "is listening")
            store = etcd.store()
            status, raw = store.ask(Request("/v3/lease/leases", {}))
            lease = json.loads(raw)["leases"][0]["ID"]
            status, raw = store.ask(Request("/v3/lease/timetolive", {"ID": lease}))
            assert (status, json.loads(raw)["grantedTTL"]) == (200, "7")


def confirms(port: int, seconds: float, name: str = "kept") -> bool:
    """Whether a new durable queue is there in this time, or at all."""
    with RawClient(port) as client:
        client.handshake().open(1)
        client.send_method(1, "queue.declare", queue=name, durable=True)
        return bool(select.select([client.socket], [], [], seconds)[0])


@case
def cluster_min_in_sync(folder: Path) -> None:
    with Etcd(folder / "etcd") as etcd:
        (port,) = free_ports(1)
        for least, promised in ((1, True), (2, False)):
            beside = {"port": port, "cluster_etcd": etcd.endpoint, "cluster_min_in_sync": least}
            with member(folder / str(least), cluster=f"c{least}", **beside) as (_, output):
                said(output, "is listening")
                assert confirms(port, 60 if promised else 2) == promised


@case
def cluster_ack_timeout(folder: Path) -> None:
    """A follower stands still; its lease and its stream live longer than this test."""
    for timeout, dropped in ((0.3, True), (60.0, False)):
        with Cluster(folder / str(int(timeout)), 2, cluster_ack_timeout=timeout, cluster_ttl=60) as two:
            leader, follower = two.members
            follower.signal(signal.SIGSTOP)
            assert confirms(leader.port, 60 if dropped else 3) == dropped
            assert ("cluster.follower_dropped" in leader.output) == dropped


@case
def cluster_stay_out(folder: Path) -> None:
    """A node stands still three times while the other one keeps up; then it is the other one's turn."""
    with Cluster(folder, 3, cluster_stay_out=3600, cluster_ack_timeout=2, cluster_ttl=60) as three:
        leader, late, other = three.members
        for count in range(3):
            late.signal(signal.SIGSTOP)
            assert confirms(leader.port, 60, f"kept {count}")
            three.wait_in_sync(2)
            late.signal(signal.SIGCONT)
            if count < 2:
                three.wait_in_sync(3)
        assert leader.times("cluster.follower_stays_out") == 1

        def status() -> dict[str, Any]:
            said: dict[str, Any] = web.get(f"http://127.0.0.1:{leader.http_port}/api/cluster").json()
            return said

        three.wait("their names", lambda: status()["in_sync"] == ["n1", "n3"])
        told = status()
        assert 3000 < told["nodes"][1]["stays_out"] <= 3600
        assert any("n2 was late too often" in line for line in told["warnings"])
        numbers = {one["name"]: one["id"] for one in told["nodes"]}
        other.kill()  # then it is needed
        assert confirms(leader.port, 60, "kept once more")
        three.wait("the late one", lambda: three.config()["in_sync"] == sorted([numbers["n1"], numbers["n2"]]))


# -- memory and disk -----------------------------------------------------------------------------------------------


@case
def memory_high_watermark(folder: Path) -> None:
    with broker(folder, memory_high_watermark="2TB") as one:
        assert node(one)["mem_limit"] == 2 * 1000**4


@case
def disk_free_limit(folder: Path) -> None:
    with broker(folder, disk_free_limit="3kB") as one:
        assert node(one)["disk_free_limit"] == 3000


def scrubbed(folder: Path, name: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    """The counter of the one goes to two and beyond while that of the other, which began earlier, does not."""
    with broker(folder / "other", **other) as resting, broker(folder / "one", **one) as busy:
        for each in (resting, busy):
            with RawClient(each.port) as client:
                client.handshake().open(1)
                client.call(1, "queue.declare", queue="kept", durable=True)
                client.call(1, "confirm.select")
                client.publish(1, "", "kept", b"x" * 1000, delivery_mode=2)
                client.wait("basic.ack")
        while metric(busy, name) < 2:
            time.sleep(0.05)
        assert metric(resting, name) < 2


@case
def scrub_rate(folder: Path) -> None:
    scrubbed(
        folder,
        "warren_scrub_read_bytes_total",
        {"scrub_interval": 0.0},
        {"scrub_interval": 0.0, "scrub_rate": 0},
    )


@case
def scrub_interval(folder: Path) -> None:
    scrubbed(folder, "warren_scrub_passes_total", {"scrub_interval": 0.0}, {"scrub_interval": 31536000.0})


# -- the journal ---------------------------------------------------------------------------------------------------


def kept_message(one: Broker) -> None:
    with RawClient(one.port) as client:
        client.handshake().open(1)
        client.call(1, "queue.declare", queue="kept", durable=True)
        client.call(1, "confirm.select")
        client.publish(1, "", "kept", b"x", delivery_mode=2)
        client.wait("basic.ack")


def journal_files(data: Path) -> set[str]:
    return {path.name for path in (data / "journal").glob("*.parquet")}


@case
def journal(folder: Path) -> None:
    with broker(folder, journal="on", data_dir=folder / "on") as on:
        with broker(folder, journal="off", data_dir=folder / "off") as off:
            for each in (on, off):
                kept_message(each)
            while not journal_files(folder / "on"):
                time.sleep(0.05)
    assert not (folder / "off" / "journal").exists()


@case
def journal_interval(folder: Path) -> None:
    """The patient one writes its first file at once, and no other until it stops."""
    patient = broker(folder, journal="on", journal_interval=3600.0, data_dir=folder / "patient")
    with patient as rare, broker(folder, journal="on", journal_interval=0.1, data_dir=folder / "hasty") as often:
        seen: dict[Broker, set[str]] = {rare: set(), often: set()}
        while len(seen[often]) < 4:
            for each, name in ((rare, "patient"), (often, "hasty")):
                kept_message(each)
                seen[each] |= journal_files(folder / name)
            time.sleep(0.05)
        assert len(seen[rare]) <= 1


def removed(folder: Path, **limit: object) -> None:
    """With the limit the file of what happened before a restart goes, which is a full segment's; without it stays."""
    for name, settings in (("kept", {"journal_max_age": 0, "journal_max_bytes": 0}), ("trimmed", limit)):
        one = broker(folder, journal="on", journal_interval=0.1, data_dir=folder / name, **settings)
        with one:
            kept_message(one)
            while not journal_files(folder / name):
                time.sleep(0.05)
        first = {file[25:35] for file in journal_files(folder / name)}
        with one:
            while {file[25:35] for file in journal_files(folder / name)} <= first:
                kept_message(one)
                time.sleep(0.05)
            while name == "trimmed" and "0000000000" not in {file[25:35] for file in journal_files(folder / name)}:
                time.sleep(0.05)
                kept_message(one)
        left = {file[25:35] for file in journal_files(folder / name)}
        assert (first <= left) == (name == "kept"), left


@case
def journal_max_age(folder: Path) -> None:
    removed(folder, journal_max_age=0.001)


@case
def journal_max_bytes(folder: Path) -> None:
    removed(folder, journal_max_bytes=1)


@case
def journal_index_headers(folder: Path) -> None:
    for name, headers in (("with", ["order"]), ("without", [])):
        with broker(folder, journal="on", data_dir=folder / name, journal_index_headers=headers) as one:
            kept_message(one)
            while not journal_files(folder / name):
                time.sleep(0.05)
        listed = [b'"headers": ["order"]' in path.read_bytes() for path in (folder / name / "journal").glob("*.index")]
        assert any(listed) == (name == "with")


# -- users ---------------------------------------------------------------------------------------------------------


@case
def default_user(folder: Path) -> None:
    with broker(folder, default_user="amy") as one:
        assert login(one, "amy", "guest") and not login(one)


@case
def default_pass(folder: Path) -> None:
    with broker(folder, default_pass="secret") as one:
        assert login(one, "guest", "secret") and not login(one)


@case
def default_vhost(folder: Path) -> None:
    with broker(folder, default_vhost="shop") as one:
        assert login(one, vhost="shop") and not login(one)
        vhosts = web.get(f"{one.http_url}/api/vhosts", auth=("guest", "guest")).json()
        assert [(vhost["name"], vhost["description"]) for vhost in vhosts] == [("shop", "Default virtual host")]
        assert status(one, "/exchanges/shop/amq.direct") == 200


def answers_over_tls(port: int, trusted: Authority) -> bool:
    context = ssl.create_default_context(cafile=str(trusted.certificate))
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as client:
                client.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
                return client.recv(65536).startswith(b"HTTP/1.1 200")
    except ssl.SSLError:
        return False


@case
def https_port(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    ours = Authority(folder, "ours")
    certificate, key = ours.issue("broker")
    (free,) = free_ports(1)
    with broker(folder, https_port=free, tls_cert=certificate, tls_key=key) as one:
        assert answers_over_tls(free, ours) and status(one) == 200
        with socket.create_connection(("127.0.0.1", free), 60) as plain:  # no TLS: nobody else is harmed
            plain.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert not plain.recv(65536).startswith(b"HTTP")
        assert answers_over_tls(free, ours)
    with broker(folder, https_port=free, http_port="off", tls_cert=certificate, tls_key=key) as one:
        assert answers_over_tls(free, ours) and one.http_port == free and not one.server.http_addresses
    with pytest.raises(SettingsError, match="https_cert: nothing given"):
        broker(folder, https_port=free)
    with pytest.raises(SettingsError, match="off is not allowed without https_port"):
        broker(folder, http_port="off")


@case
def https_cert(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    ours, theirs = Authority(folder, "ours"), Authority(folder, "theirs")
    amqp, web_files = ours.issue("broker"), theirs.issue("web")
    (free,) = free_ports(1)
    files: dict[str, Any] = {
        "tls_cert": amqp[0],
        "tls_key": amqp[1],
        "https_cert": web_files[0],
        "https_key": web_files[1],
    }
    with broker(folder, https_port=free, **files):
        assert answers_over_tls(free, theirs) and not answers_over_tls(free, ours)


@case
def https_key(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    certificate, _ = Authority(folder, "ours").issue("broker")
    with pytest.raises(SettingsError, match="https_key: nothing given"):
        broker(folder, https_port=0, https_cert=certificate)
    _, other = Authority(folder, "theirs").issue("web")
    with pytest.raises(CertificateError, match="https_key: .* is not the key of https_cert"):
        broker(folder, https_port=0, https_cert=certificate, https_key=other).__enter__()


@case
def http_host(folder: Path) -> None:
    with broker(folder, http_host=["127.0.0.3"]) as one:
        assert accepts("127.0.0.1", one.port) and not accepts("127.0.0.3", one.port)
        assert accepts("127.0.0.3", one.http_port) and not accepts("127.0.0.1", one.http_port)


def page(host: str, port: int, path: str) -> tuple[int, str]:
    with web.Client() as client:
        answer = client.get(f"http://{host}:{port}{path}")
        return answer.status_code, answer.text


@case
def metrics_port(folder: Path) -> None:
    (free,) = free_ports(1)
    with broker(folder) as one:
        assert not accepts("127.0.0.1", free) and not one.server.metrics_addresses
    with broker(folder, metrics_port=free) as one:
        for path in ("/metrics", "/metrics/per-object", "/metrics/detailed?family=queue_coarse_metrics"):
            for port in (free, one.http_port):
                found, text = page("127.0.0.1", port, path)
                assert found == 200 and "rabbitmq_identity_info{" in text
        assert [page("127.0.0.1", free, path)[0] for path in ("/", "/api/overview", "/healthz")] == [404] * 3
        assert status(one) == 200


@case
def metrics_host(folder: Path) -> None:
    (free,) = free_ports(1)
    with broker(folder, metrics_port=free, metrics_host=["127.0.0.3"]) as one:
        assert accepts("127.0.0.3", free) and not accepts("127.0.0.1", free)
        assert accepts("127.0.0.1", one.http_port) and not accepts("127.0.0.3", one.http_port)


@case
def metrics_per_object(folder: Path) -> None:
    for said, endpoint in (("off", "aggregated"), ("on", "per-object")):
        with broker(folder, metrics_per_object=said) as one:
            assert f'rabbitmq_endpoint="{endpoint}"' in page("127.0.0.1", one.http_port, "/metrics")[1]


def published_traced(one: Broker) -> None:
    with RawClient(one.port) as client:
        client.handshake().open(1)
        context = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
        client.publish(1, "", "nowhere", b"x", headers=context)
        client.call(1, "queue.declare", queue="kept")


@case
def otel_endpoint(folder: Path) -> None:
    with collecting() as collector:
        with broker(folder, otel_endpoint=collector.url + "/") as one:
            published_traced(one)
        assert collector.metrics and len(collector.spans) == 1  # what was left was sent at the end
    for wrong in ("collector:4318", "ftp://collector", "http://", "http://a:b:c", "http://a?b=c"):
        with pytest.raises(SettingsError, match="otel_endpoint: .* is not allowed"):
            broker(folder, otel_endpoint=wrong)


@case
def otel_interval(folder: Path) -> None:
    with collecting() as often, collecting() as never:
        with broker(folder, otel_endpoint=often.url, otel_interval=0.1):
            with broker(folder, otel_endpoint=never.url, otel_interval=0):
                often.wait(lambda: often.requests > 3)
        assert never.requests == 0


@case
def otel_spans(folder: Path) -> None:
    for said in ("on", "off"):
        with collecting() as collector:
            with broker(folder, otel_endpoint=collector.url, otel_spans=said) as one:
                published_traced(one)
            assert len(collector.spans) == (1 if said == "on" else 0)


@case
def load_definitions(folder: Path) -> None:
    first, second = folder / "definitions" / "1.json", folder / "definitions" / "2.json"
    first.parent.mkdir(parents=True)
    first.write_text(json.dumps({"vhosts": [{"name": "shop"}], "users": [user_named("ann")]}))
    second.write_text(json.dumps({"permissions": [permission_of("ann", "shop")], "queues": [queue_in("shop")]}))
    with broker(folder, load_definitions=first.parent) as one:
        assert login(one, "ann", "secret", "shop") and not login(one)  # definitions with users: no default user
        assert "orders" in one.server.broker.vhosts["shop"].queues and "/" not in one.server.broker.vhosts
    first.unlink()
    second.write_text(json.dumps({"queues": [queue_in("/")]}))
    with broker(folder, load_definitions=second) as one:
        assert login(one) and "orders" in one.server.broker.vhosts["/"].queues
    second.write_text(json.dumps({"queues": [queue_in("nowhere")]}))
    with pytest.raises(SettingsError, match=r"2\.json cannot be imported: queues\[0\]"):
        broker(folder, load_definitions=second).__enter__()
    second.write_text("{")
    with pytest.raises(SettingsError, match="is no JSON"):
        broker(folder, load_definitions=second).__enter__()
    second.unlink()
    with pytest.raises(SettingsError, match="has no file"):
        broker(folder, load_definitions=first.parent).__enter__()


def user_named(name: str) -> dict[str, object]:
    """With the password `secret`, hashed as RabbitMQ does."""
    salt = b"salt"
    digest = base64.b64encode(salt + hashlib.sha256(salt + b"secret").digest()).decode()
    return {"name": name, "password_hash": digest, "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": []}


def permission_of(user: str, vhost: str) -> dict[str, object]:
    return {"user": user, "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}


def queue_in(vhost: str) -> dict[str, object]:
    return {"name": "orders", "vhost": vhost, "durable": True, "auto_delete": False, "arguments": {}}


@case
def loopback_users(folder: Path) -> None:
    with broker(folder) as one:
        assert status(one, x_forwarded_for="192.0.2.1") == 401
    with broker(folder, loopback_users="none") as one:
        assert status(one, x_forwarded_for="192.0.2.1") == 200


# -- extensions and logs -------------------------------------------------------------------------------------------


class NoQueues:
    """An interceptor that forbids to declare queues."""

    name = "no-queues"
    applies_to = ("queue.declare",)

    def intercept(self, method: object, channel: object) -> object:
        raise ValueError("no queues today")


class AlsoToKept:
    """A decorator that sends whatever passes through a fanout exchange to the queue `kept` as well."""

    name = "also-to-kept"

    def applies(self, exchange: Exchange) -> bool:
        return exchange.type == "fanout"

    def route(self, exchange: Exchange, message: BasicMessage) -> list[Resource]:
        return [Resource(exchange.name.virtual_host, "queue", "kept")]


def declared(client: RawClient) -> Frame:
    return client.handshake().open(1).call(1, "queue.declare", queue="kept")


@case
def interceptors(folder: Path) -> None:
    with broker(folder, interceptors=[f"{__name__}:NoQueues"]) as one, RawClient(one.port) as client:
        assert "no queues today" in declared(client).text("reply_text")


@case
def decorators(folder: Path) -> None:
    with broker(folder, decorators=[f"{__name__}:AlsoToKept"]) as one, RawClient(one.port) as client:
        assert declared(client).name == "queue.declare-ok"
        client.publish(1, "amq.fanout", "", b"x")
        assert client.call(1, "basic.get", queue="kept", no_ack=True).name == "basic.get-ok"


@case
def log_level(folder: Path) -> None:
    assert " info " in stopped(serve(folder / "info"))
    assert " info " not in stopped(serve(folder / "error", log_level="error"))


@case
def log_format(folder: Path) -> None:
    lines = stopped(serve(folder / "a", log_format="json")).splitlines()
    assert any(line.startswith("{") and json.loads(line) for line in lines)


@case
def log_file(folder: Path) -> None:
    stopped(serve(folder / "a", log_file=folder / "warren.log"))
    assert " info " in (folder / "warren.log").read_text()
