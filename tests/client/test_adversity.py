"""Brokers that stall, babble, hang up or are none; and TLS. All played, so that no real one is needed."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.client.fake import FakeBroker, Peer
from warrenmq.client import ConnectError, Connection, ConnectionClosed, Properties, Timeout
from warrenmq.wire.content import content_frames, encode_header
from warrenmq.wire.methods import method_frame


def connect(port: int, **more: object) -> Connection:
    return Connection(f"amqp://127.0.0.1:{port}", timeout=60, **more)  # type: ignore[arg-type]


def say_goodbye(peer: Peer) -> None:
    peer.method("connection.close")
    peer.say(0, "connection.close-ok")


def test_the_handshake_says_who_we_are_and_takes_the_lower_limits() -> None:
    seen: list[object] = []

    def play(peer: Peer) -> None:
        start_ok = peer.shake_hands()
        seen.append(start_ok.table("client_properties")["connection_name"].value)
        seen.append(start_ok.bytes("response"))
        say_goodbye(peer)

    with FakeBroker(play) as port, connect(port, connection_name="me") as connection:
        assert (connection.frame_max, connection.channel_max, connection.heartbeat) == (8192, 10, 0)
    assert seen == ["me", b"\x00guest\x00guest"]


def test_nobody_listening_is_a_connect_error() -> None:
    listener = FakeBroker(lambda peer: None).listener
    port = listener.getsockname()[1]
    listener.close()
    with pytest.raises(ConnectError, match="cannot connect"):
        connect(port)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"AMQP\x00\x01\x00\x00", b"220 mail.example.com ESMTP\r\n", b""]
)
def test_something_else_than_a_broker_is_a_connect_error(answer: bytes) -> None:
    def play(peer: Peer) -> None:
        peer.greet()
        peer.socket.sendall(answer)

    with FakeBroker(play) as port, pytest.raises(ConnectError):
        connect(port)


def test_a_broker_that_says_nothing_is_a_timeout() -> None:
    def play(peer: Peer) -> None:
        peer.greet()
        assert peer.socket.recv(1) == b""

    with FakeBroker(play) as port, pytest.raises(Timeout):
        Connection(f"amqp://127.0.0.1:{port}", timeout=0.1)


def test_a_call_that_is_not_answered_is_a_timeout() -> None:
    def play(peer: Peer) -> None:
        peer.shake_hands()
        peer.method("channel.open")
        say_goodbye(peer)

    with FakeBroker(play) as port:
        connection = Connection(f"amqp://127.0.0.1:{port}", timeout=2)  # the handshake before it must fit in, too
        with pytest.raises(Timeout):
            connection.channel()
        connection.close()


def test_a_socket_that_ends_without_a_word_closes_the_connection() -> None:
    def play(peer: Peer) -> None:
        peer.shake_hands()
        peer.open_channel()

    with FakeBroker(play) as port:
        connection = connect(port)
        channel = connection.channel()
        for _ in range(2):
            with pytest.raises(ConnectionClosed) as caught:
                channel.queue_declare("q")
            assert caught.value.code == 0
        connection.close()


def test_a_closing_broker_is_answered_and_its_reason_raised() -> None:
    def play(peer: Peer) -> None:
        peer.shake_hands()
        peer.open_channel()
        peer.method("queue.declare")
        peer.say(0, "connection.close", reply_code=320, reply_text="CONNECTION_FORCED - bye")
        peer.method("connection.close-ok")

    with FakeBroker(play) as port:
        channel = connect(port).channel()
        with pytest.raises(ConnectionClosed, match="320 CONNECTION_FORCED - bye"):
            channel.queue_declare("q")


def test_octets_that_make_no_sense_end_the_connection() -> None:
    def play(peer: Peer) -> None:
        peer.shake_hands()
        peer.open_channel()
        peer.method("queue.declare")
        peer.socket.sendall(b"\x07\x00\x01\x00\x00\x00\x00\xce")

    with FakeBroker(play) as port:
        channel = connect(port).channel()
        with pytest.raises(ConnectionClosed) as caught:
            channel.queue_declare("q")
        assert caught.value.code == 501


def test_blocked_and_unblocked_are_remembered() -> None:
    def play(peer: Peer) -> None:
        peer.shake_hands()
        peer.open_channel()
        peer.say(0, "connection.blocked", reason="low on disk")
        peer.method("queue.declare")
        peer.say(1, "queue.declare-ok", queue="q")
        peer.method("queue.purge")
        peer.say(0, "connection.unblocked")
        peer.say(1, "queue.purge-ok")
        say_goodbye(peer)

    with FakeBroker(play) as port, connect(port) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        assert connection.blocked == "low on disk"
        channel.queue_purge("q")
        assert connection.blocked is None


def test_publishing_while_the_broker_writes_and_does_not_read_does_not_lock_both() -> None:
    """Each side has more to send than the sockets hold, and the broker finishes its side first."""
    body = b"x" * 8000
    flood = 3000

    def play(peer: Peer) -> None:
        peer.shake_hands()
        peer.open_channel()
        deliver = method_frame(1, "basic.deliver", consumer_tag="c", delivery_tag=1)
        one = deliver + content_frames(1, encode_header(Properties(), len(body)), body, 8192)
        for _ in range(flood):
            peer.socket.sendall(one)
        received = 0
        while received < flood * len(body):
            frame = peer.frame()
            if frame.type == 3:
                received += len(frame.payload)
        say_goodbye(peer)

    with FakeBroker(play) as port, connect(port) as connection:
        channel = connection.channel()
        channel.publish_many("", "q", [body] * flood)
        connection.flush()
        taken = 0
        while taken < flood:
            batch = channel.receive(10)
            assert batch
            taken += len(batch)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def test_a_connection_over_tls_carries_large_messages_both_ways(certificate: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    body = b"z" * 1_000_000

    def play(peer: Peer) -> None:
        peer.shake_hands()
        peer.open_channel()
        received = 0
        while received < len(body):
            frame = peer.frame()
            if frame.type == 3:
                received += len(frame.payload)
        peer.socket.sendall(
            method_frame(1, "basic.deliver", consumer_tag="c", delivery_tag=1)
            + content_frames(1, encode_header(Properties(), len(body)), body, 8192)
        )
        say_goodbye(peer)

    client = ssl.create_default_context(cafile=str(certificate))
    with FakeBroker(play, server) as port:
        with Connection(f"amqps://127.0.0.1:{port}", ssl=client, timeout=60) as connection:
            channel = connection.channel()
            channel.basic_publish("", "q", body)
            (message,) = channel.receive(10)
            assert message.body == body


def test_a_certificate_nobody_vouches_for_is_a_connect_error(certificate: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    fake = FakeBroker(lambda peer: None, server)
    with pytest.raises(ConnectError, match="certificate"), fake as port:
        Connection(f"amqps://127.0.0.1:{port}", timeout=60)
