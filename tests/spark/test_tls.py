"""The connector over TLS with a private authority: AMQP on Warren's own listener, HTTP behind a front that ends TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.limits.authority import Authority
from tests.spark.test_connection import read_all
from warrenmq.client import Connection
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import OptionError, parse
from warrenmq.spark.patience import Patience
from warrenmq.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

# Nobody is at this address: the certificate is found by the name that tlsServerName says.
NAME, ELSEWHERE = "broker.test", "192.0.2.1"


@contextmanager
def tls_front(target: int, context: ssl.SSLContext) -> Iterator[int]:
    """A port that speaks TLS and hands what is inside to a plain port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError, ValueError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def serve(plain: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(plain, server_side=True) as client:
            with socket.create_connection(("127.0.0.1", target)) as server:
                back = threading.Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                pump(client, server)
                back.join()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


class Secured:
    """A broker whose clients need a certificate of our authority, and the options with which one gets in."""

    def __init__(self, broker: Broker, http_port: int, authority: Authority) -> None:
        self.broker = broker
        self.authority = authority
        certificate, key = authority.issue("spark")
        self.options = {
            "host": "127.0.0.1",
            "port": str(broker.server.tls_addresses[0][1]),
            "tls": "true",
            "httpPort": str(http_port),
            "httpTls": "true",
            "tlsCaFile": str(authority.certificate),
            "tlsCertFile": str(certificate),
            "tlsKeyFile": str(key),
            "tlsServerName": NAME,
        }

    def fill(self, name: str, kind: str) -> dict[str, str]:
        with Connection(host="127.0.0.1", port=self.broker.port) as connection:
            channel = connection.channel()
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"} if kind == "stream" else {})
            channel.confirm_select()
            channel.publish_many("", name, [b"x"] * 10)
            channel.wait_for_confirms(60)
        if kind == "stream":
            return {**self.options, "stream": name}
        return {**self.options, "queue": name, "leases": {"leased": "true", "plain": "false"}.get(kind, "auto")}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    authority = Authority(tmp_path_factory.mktemp("authority"), "ours")
    certificate, key = authority.issue("broker", NAME, ELSEWHERE)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(certificate, key)
    context.verify_mode = ssl.CERT_REQUIRED
    with (
        Broker(tls_port=0, tls_cert=certificate, tls_key=key, tls_ca=authority.certificate, tls_verify="require") as it,
        tls_front(it.http_port, context) as http_port,
    ):
        yield Secured(it, http_port, authority)


@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "streaming"])
@pytest.mark.parametrize("kind", ["stream", "leased", "peeked", "plain"])
def test_everything_is_read_over_tls(secured: Secured, name: str, kind: str, streaming: bool) -> None:
    assert read_all(secured.fill(name, kind), streaming) == 10


def test_spark_reads_and_writes_over_tls(spark: SparkSession, secured: Secured, name: str) -> None:
    read = spark.read.format("amqp").options(**secured.fill(name, "stream"))
    read.load().select("body").write.format("amqp").options(**secured.options, exchange="", routingKey=name).mode(
        "append"
    ).save()
    assert read.load().count() == 20


@pytest.mark.parametrize("fault", ["authority", "name"])
def test_a_broker_that_is_not_the_one_we_want_is_refused_at_once(secured: Secured, tmp_path: Path, fault: str) -> None:
    wrong = {"tlsServerName": "other.test"}
    if fault == "authority":
        wrong = {"tlsCaFile": str(Authority(tmp_path, "theirs").certificate)}
    options = parse({**secured.options, "queue": "q-*", **wrong})
    pauses: list[float] = []
    with pytest.raises(BrokerLost, match=r"refused the connection: .*CERTIFICATE_VERIFY_FAILED") as refused:
        connect(options, "test", Patience(options, pauses.append))
    with pytest.raises(BrokerLost, match=r"has no certificate for us: .*CERTIFICATE_VERIFY_FAILED") as unheard:
        HttpApi(options).names(stream=False)
    assert pauses == [] and "\n" not in f"{refused.value}{unheard.value}"
    careless = parse({**secured.options, "queue": "q-*", **wrong, "tlsVerify": "false"})
    connect(careless, "test").close()
    assert HttpApi(careless).call("GET", "/api/overview")[0] == 200


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"tlsCaFile": "/none.pem"}, "tlsCaFile /none.pem cannot be read here: No such file or directory"),
        ({"tlsCertFile": "/none.crt"}, "tlsCertFile /none.crt cannot be read here: No such file or directory"),
        ({"tlsKeyFile": "/none.key"}, "tlsKeyFile /none.key cannot be read here: No such file or directory"),
        ({"tlsCaFile": __file__}, f"tlsCaFile {__file__} holds no certificate in PEM form"),
        ({"tlsKeyFile": "OTHER"}, "are no certificate with its key, in PEM form: KEY_VALUES_MISMATCH"),
    ],
)
def test_a_file_that_is_not_on_this_machine_is_named_at_once(
    secured: Secured, change: dict[str, str], text: str
) -> None:
    if change.get("tlsKeyFile") == "OTHER":
        change = {"tlsKeyFile": str(secured.authority.issue("another")[1])}
    options = parse({**secured.options, "queue": "q-*", **change})
    for ask in (lambda: connect(options, "test"), lambda: HttpApi(options).names(stream=False)):
        with pytest.raises(OptionError) as wrong:
            ask()
        assert text in str(wrong.value) and "\n" not in str(wrong.value)


def test_options_of_tls_without_tls_are_refused() -> None:
    with pytest.raises(OptionError, match="option 'tlsCaFile' is for TLS: give 'tls' or 'httpTls' as true"):
        parse({"stream": "s", "tlsCaFile": "/ca.pem"})
    with pytest.raises(OptionError, match="option 'tlsKeyFile' needs option 'tlsCertFile'"):
        parse({"stream": "s", "tls": "true", "tlsKeyFile": "/key.pem"})
    assert parse({"stream": "s", "url": "amqps://h", "tlsCaFile": "/ca.pem"}).address == "h:5671"
