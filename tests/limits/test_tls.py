"""The TLS listener: who comes in with which certificate, and what happens to those who come the wrong way."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from cryptography.hazmat.primitives import serialization

import warrenmq
from tests.limits.authority import Authority
from tests.support.brokers import answers, free_ports, start_warren
from warrenmq.client import ConnectError, Connection
from warrenmq.testing import Broker


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "theirs")


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def tls_broker(authority: Authority, verify: str, handshake_timeout: float = 60.0) -> Broker:
    certificate, key = authority.issue("broker")
    return Broker(
        tls_port=0,
        tls_cert=certificate,
        tls_key=key,
        tls_ca=authority.certificate,
        tls_verify=verify,
        handshake_timeout=handshake_timeout,
    )


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    with tls_broker(authority, "peer") as broker:
        broker.call(lambda: broker.server.broker.registry.access.add_user("amy", "amy", []))
        broker.call(lambda: broker.server.broker.registry.access.set_permissions("amy", "/", ".*", ".*", ".*"))
        yield broker


def tls_port(broker: Broker) -> int:
    return broker.server.tls_addresses[0][1]


def trusting(authority: Authority, identity: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if identity is not None:
        context.load_cert_chain(*identity)
    return context


def use(connection: Connection) -> None:
    with connection:
        channel = connection.channel()
        channel.queue_declare("tls", exclusive=True)
        channel.basic_publish("", "tls", b"x" * 300_000)
        connection.flush()
        message = channel.basic_get("tls")
        assert message is not None and message.body == b"x" * 300_000


def wait_for(caplog: pytest.LogCaptureFixture, words: str) -> str:
    """The log line with these words; the broker's thread may be a moment behind the socket."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for record in list(caplog.records):
            if words in record.getMessage():
                return record.getMessage()
        time.sleep(0.01)
    raise AssertionError(f"no line with {words!r}: {[record.getMessage() for record in caplog.records]}")


def test_a_client_logs_in_with_a_password_over_tls(broker: Broker, authority: Authority) -> None:
    use(Connection(port=tls_port(broker), ssl=trusting(authority)))


def test_pika_talks_tls(broker: Broker, authority: Authority) -> None:
    options = pika.SSLOptions(trusting(authority), "localhost")
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", tls_port(broker), ssl_options=options))
    channel = connection.channel()
    channel.queue_declare("pika", exclusive=True)
    channel.basic_publish("", "pika", b"hello")
    assert channel.basic_get("pika")[2] == b"hello"
    connection.close()


def test_a_certificate_logs_its_common_name_in_with_external(broker: Broker, authority: Authority) -> None:
    context = trusting(authority, authority.issue("amy"))
    connection = Connection(port=tls_port(broker), ssl=context, mechanism="EXTERNAL", username="", password="")
    users = broker.call(lambda: [each.username for each in broker.server.broker.connections])
    assert "amy" in users
    use(connection)


def test_a_client_that_goes_without_a_word_is_forgotten(
    broker: Broker, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    before = broker.call(lambda: len(broker.server.broker.connections))
    connection = Connection(port=tls_port(broker), ssl=trusting(authority), connection_name="soon gone")
    connection.channel()
    connection.abort()
    deadline = time.monotonic() + 60
    while broker.call(lambda: len(broker.server.broker.connections)) > before:
        assert time.monotonic() < deadline, "the connection is still there"
        time.sleep(0.01)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_certificate_of_nobody_we_know_is_refused(broker: Broker, authority: Authority) -> None:
    context = trusting(authority, authority.issue("nobody"))
    with pytest.raises(ConnectError, match="Login was refused using authentication mechanism EXTERNAL"):
        Connection(port=tls_port(broker), ssl=context, mechanism="EXTERNAL", username="", password="")


def test_external_is_not_offered_without_a_certificate(broker: Broker, authority: Authority) -> None:
    with pytest.raises(ConnectError, match="EXTERNAL"):
        Connection(port=tls_port(broker), ssl=trusting(authority), mechanism="EXTERNAL", username="", password="")


def test_a_certificate_of_another_authority_is_refused_and_logged(
    broker: Broker, authority: Authority, stranger: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    context = trusting(authority, stranger.issue("amy"))
    with pytest.raises((ConnectError, OSError)):
        Connection(port=tls_port(broker), ssl=context, mechanism="EXTERNAL", username="", password="", timeout=60)
    line = wait_for(caplog, "tls_handshake_failed")
    assert "peer=127.0.0.1:" in line and "CERTIFICATE_VERIFY_FAILED" in line


def test_a_client_that_does_not_trust_our_authority_does_not_talk_to_us(
    broker: Broker, stranger: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises((ConnectError, OSError), match="CERTIFICATE_VERIFY_FAILED"):
        Connection(port=tls_port(broker), ssl=trusting(stranger))
    assert "peer=127.0.0.1:" in wait_for(caplog, "tls_handshake_failed")


def test_without_a_certificate_nobody_comes_in_where_one_is_required(authority: Authority) -> None:
    with tls_broker(authority, "require") as broker:
        with pytest.raises((ConnectError, OSError)):
            Connection(port=tls_port(broker), ssl=trusting(authority), timeout=60)
        use(Connection(port=tls_port(broker), ssl=trusting(authority, authority.issue("any"))))


def test_a_plain_client_on_the_tls_port_is_ended_and_logged(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_connection(("127.0.0.1", tls_port(broker)), timeout=60) as client:
        client.sendall(b"AMQP\x00\x00\x09\x01")
        while client.recv(1000):  # a TLS alert, then the end
            pass
    line = wait_for(caplog, "tls_handshake_failed")
    assert "peer=127.0.0.1:" in line and "use the plain port" in line


def test_a_tls_client_on_the_plain_port_is_ended_and_logged(
    broker: Broker, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises((ConnectError, OSError)):
        Connection(port=broker.port, ssl=trusting(authority), timeout=60)
    line = wait_for(caplog, "bad_protocol_header")
    assert "peer=127.0.0.1:" in line and "use the TLS port" in line


def test_whoever_says_nothing_on_the_tls_port_is_dropped_after_the_handshake_timeout(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with tls_broker(authority, "peer", handshake_timeout=0.5) as broker:
        with socket.create_connection(("127.0.0.1", tls_port(broker)), timeout=60) as client:
            assert client.recv(1000) == b""
        assert "peer=127.0.0.1:" in wait_for(caplog, "tls_handshake_ended")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_tls_versions_are_refused(broker: Broker, authority: Authority) -> None:
    context = trusting(authority)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    try:
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    except ValueError:
        pytest.skip("this OpenSSL knows no TLS 1.1 any more")
    with pytest.raises((ConnectError, OSError)):
        Connection(port=tls_port(broker), ssl=context, timeout=60)


def test_a_broker_that_stops_ends_a_client_that_it_has_closed_but_that_does_not_hang_up(authority: Authority) -> None:
    with tls_broker(authority, "peer") as broker:
        plain = socket.create_connection(("127.0.0.1", tls_port(broker)), timeout=60)
        with trusting(authority).wrap_socket(plain, server_hostname="127.0.0.1") as client:
            client.sendall(b"AMQP\x01\x01\x00\x0a")  # AMQP 1.0: refused, and the connection closed
            assert client.recv(8) == b"AMQP\x00\x00\x09\x01"
            broker.stop()


def test_the_served_process_talks_tls_too(authority: Authority) -> None:
    certificate, key = authority.issue("broker")
    [port] = free_ports(1)
    with start_warren(
        "--tls-port",
        str(port),
        "--tls-cert",
        str(certificate),
        "--tls-key",
        str(key),
        "--tls-ca",
        str(authority.certificate),
        "--tls-verify",
        "peer",
    ) as served:
        assert answers(port)
        use(Connection(port=port, ssl=trusting(authority)))
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"AMQP\x00\x00\x09\x01")
            while client.recv(1000):
                pass
        served.add_user("amy", "amy")
        context = trusting(authority, authority.issue("amy"))
        use(Connection(port=port, ssl=context, mechanism="EXTERNAL", username="", password=""))
        log = (served.folder / "log").read_text()
        assert "tls_handshake_failed" in log and "use the plain port" in log


def test_a_file_of_tls_that_cannot_be_used_ends_the_start_with_its_setting_and_the_cure(
    authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.issue("starts")
    other = authority.issue("other")[1]
    pem = serialization.load_pem_private_key(key.read_bytes(), None)
    locked = tmp_path / "locked.key"
    password = serialization.BestAvailableEncryption(b"secret")
    locked.write_bytes(pem.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, password))
    text = tmp_path / "text"
    text.write_text("nothing of PEM")
    for shown, secret, ca, said in (
        (certificate, tmp_path / "none", None, f"tls_key: {tmp_path}/none cannot be read (No such file or directory)"),
        (tmp_path / "none", key, None, f"tls_cert: {tmp_path}/none cannot be read (No such file or directory)"),
        (certificate, locked, None, f"tls_key: {locked} has a password: `openssl pkey -in {locked} -out PLAIN` writes"),
        (certificate, other, None, f"tls_key: {other} is not the key of tls_cert, {certificate}"),
        (certificate, text, None, f"tls_key: {text} has no private key in PEM"),
        (text, key, None, f"tls_cert: {text} has no certificate in PEM"),
        (certificate, key, text, f"tls_ca: {text} has no certificate in PEM"),
    ):
        words = [sys.executable, "-m", "warrenmq", "serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
        words += ["--tls-port", "0", "--tls-cert", str(shown), "--tls-key", str(secret), "--log-level", "error"]
        words += [] if ca is None else ["--tls-ca", str(ca)]
        environment = {**os.environ, "PYTHONPATH": str(Path(warrenmq.__file__).parents[1])}
        ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
        assert (ended.returncode, ended.stdout) == (1, "") and ended.stderr.startswith(f"warren: {said}"), ended.stderr
        assert len(ended.stderr.splitlines()) == 1
