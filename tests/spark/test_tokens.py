"""Tokens that run out: fetched for every connection, and sent anew on those that outlive theirs.

The broker is a RabbitMQ whose users are OAuth 2 tokens; it refuses one that is not signed or has run out.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark.protocol import Checkpoint, Fate, run
from tests.spark.test_connection import recording_proxy
from tests.support.brokers import BrokerUnavailable, RunningBroker, start_rabbitmq
from warrenmq.client import Connection
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import OptionError, parse
from warrenmq.spark.secret import Login, expiry, password

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

CONFIG = """
auth_backends.1 = rabbit_auth_backend_oauth2
auth_backends.2 = internal
auth_oauth2.resource_server_id = rabbitmq
auth_oauth2.default_key = ours
auth_oauth2.signing_keys.ours = {key}
"""
SCOPE = ["rabbitmq.configure:*/*", "rabbitmq.write:*/*", "rabbitmq.read:*/*", "rabbitmq.tag:administrator"]


def part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Who signs tokens."""

    def __init__(self, folder: Path) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        folder.chmod(0o755)
        self.public = folder / "key.pem"
        self.public.write_bytes(
            self._key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )

    def token(self, number: int, seconds: float = 3600) -> str:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        claims = {"aud": ["rabbitmq"], "scope": SCOPE, "exp": int(time.time() + seconds), "jti": f"token {number}"}
        head = part(json.dumps({"alg": "RS256", "typ": "JWT", "kid": "ours"}).encode())
        signed = f"{head}.{part(json.dumps(claims).encode())}"
        return f"{signed}.{part(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:  # RabbitMQ's user must be able to read it
        yield Issuer(Path(folder))


@pytest.fixture(scope="module")
def oauth(issuer: Issuer) -> Iterator[RunningBroker]:
    plugins = ("rabbitmq_management", "rabbitmq_auth_backend_oauth2")
    try:
        with start_rabbitmq(plugins, CONFIG.format(key=issuer.public)) as broker:
            yield broker
    except BrokerUnavailable as missing:
        pytest.skip(str(missing))


@contextmanager
def watched(broker: RunningBroker, folder: Path) -> Iterator[tuple[dict[str, str], list[bytes], Path]]:
    """Options with a token file, what the client has sent, and the file. Tokens are looked for all the time."""
    file = folder / "token"
    with recording_proxy(broker.port) as (port, said):
        options = {
            "host": "127.0.0.1",
            "port": str(port),
            "httpPort": str(broker.http_port),
            "username": "anybody",
            "tokenFile": str(file),
            "tokenRefresh": "1ms",
        }
        yield options, said, file


def declare(broker: RunningBroker, token: str, name: str, count: int, arguments: dict[str, object]) -> None:
    with Connection(host=broker.host, port=broker.port, username="", password=token) as connection:
        channel = connection.channel()
        channel.queue_declare(name, durable=True, arguments=arguments)
        channel.confirm_select()
        channel.publish_many("", name, [b"%06d" % number for number in range(count)])
        channel.wait_for_confirms(60)


def update_of(token: str) -> bytes:
    """How connection.update-secret begins: class, method, and the token as a long string."""
    return b"\0\x0a\0\x46" + len(token).to_bytes(4, "big") + token.encode()


@pytest.mark.slow
@pytest.mark.oracle
def test_a_write_that_outlives_its_token_sends_the_next_one(
    oauth: RunningBroker, issuer: Issuer, name: str, tmp_path: Path
) -> None:
    import pyarrow

    from warrenmq.spark.publisher import Publisher

    first, second = issuer.token(1), issuer.token(2)
    declare(oauth, first, name, 0, {})
    with watched(oauth, tmp_path) as (options, said, file):
        file.write_text(f"{first}\n")

        def batches() -> Iterator[pyarrow.RecordBatch]:
            yield pyarrow.record_batch({"body": [b"x"] * 10})
            file.write_text(second)
            time.sleep(0.01)  # longer than tokenRefresh
            yield pyarrow.record_batch({"body": [b"x"] * 10})

        publisher = Publisher(parse({**options, "exchange": "", "routingKey": name}, writing=True), "")
        assert [outcome for chunk in publisher.run(batches()) for outcome in chunk.outcomes] == ["confirmed"] * 20
        assert len(said) == 1 and first.encode() in said[0] and said[0].count(update_of(second)) == 1


@pytest.mark.slow
@pytest.mark.oracle
def test_a_stream_that_outlives_its_token_is_read_with_the_next_one(
    oauth: RunningBroker, issuer: Issuer, name: str, tmp_path: Path
) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.stream_reading import StreamPartition, read_range

    first, second = issuer.token(1), issuer.token(2)
    declare(oauth, first, name, 20_000, {"x-queue-type": "stream"})
    with watched(oauth, tmp_path) as (options, said, file):
        file.write_text(first)
        given = parse({**options, "stream": name, "prefetchCount": "1000"})
        schema = StructType([StructField("body", BinaryType())])
        rows = []
        for table in read_range(given, schema, StreamPartition(name, 0, 20_000)):
            file.write_text(second)
            time.sleep(0.01)
            rows += table.column("body").to_pylist()
        assert rows == [b"%06d" % number for number in range(20_000)]
        assert len(said) == 1 and said[0].count(update_of(second)) == 1


@pytest.mark.slow
@pytest.mark.oracle
def test_a_queue_is_held_with_new_tokens_while_a_batch_takes_its_time(
    oauth: RunningBroker, issuer: Issuer, name: str, tmp_path: Path
) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    first, second = issuer.token(1), issuer.token(2)
    declare(oauth, first, name, 50, {})
    with watched(oauth, tmp_path) as (options, said, file):
        file.write_text(first)
        given = {**options, "queue": f"{name}*", "maxOffsetsPerTrigger": "20"}  # the pattern asks HTTP
        reader: Any = AmqpDataSource(given).streamReader(StructType([StructField("body", BinaryType())]))

        class Slow(Fate):
            """The tasks take so long that the token is replaced meanwhile."""

            def passes(self, point: str) -> None:
                super().passes(point)
                if point == "batch 1 partitioned":
                    file.write_text(second)
                    until(lambda: any(update_of(second) in each for each in said))

        checkpoint = Checkpoint()
        run(checkpoint, reader, Slow(), available_now=True)
        reader.stop()
        assert checkpoint.rows() == [b"%06d" % number for number in range(50)]  # over one connection: none twice


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.oracle
def test_every_connection_logs_in_with_the_token_of_the_moment(
    oauth: RunningBroker, issuer: Issuer, tmp_path: Path
) -> None:
    with watched(oauth, tmp_path) as (options, said, file):
        given = parse({**options, "queue": "q"})
        tokens = [issuer.token(number) for number in (1, 2)]
        for token in tokens:
            file.write_text(token)
            connect(given, "test").close()
            assert HttpApi(given).call("GET", "/api/overview")[0] == 200
        assert [token.encode() in each for token, each in zip(tokens, said, strict=True)] == [True, True]
        file.write_text(stale := issuer.token(3, seconds=-60))
        with pytest.raises(BrokerLost, match="refused the connection: ACCESS_REFUSED") as refused:
            connect(given, "test")
        assert stale not in str(refused.value)


def test_a_token_comes_from_a_command_too_which_is_never_told(tmp_path: Path) -> None:
    def token(command: str) -> str:
        options = parse({"stream": "s", "tokenCommand": command})
        assert "geheim" not in repr(options)
        return password(options)

    script = tmp_path / "token.py"
    script.write_text("import sys; print(sys.argv[1])")
    assert token(f"{sys.executable} {script} 'ge heim'") == "ge heim"
    for command, text in (
        ("/none/geheim", "tokenCommand cannot be run here: No such file or directory"),
        (f"{sys.executable} -c 'print(\"geheim\"); exit(3)'", "tokenCommand ended with status 3"),
        (f"{sys.executable} {script} ''", "tokenCommand gave no token"),
        ("", "tokenCommand cannot be run here: it is empty"),
        ("geheim '", "tokenCommand has a quotation mark that is not closed"),
    ):
        with pytest.raises(OptionError) as wrong:
            token(command)
        assert str(wrong.value) == text
    with pytest.raises(OptionError, match="tokenFile /none cannot be read: No such file"):
        password(parse({"stream": "s", "tokenFile": "/none"}))
    with pytest.raises(OptionError, match="'tokenRefresh' needs option 'tokenFile' or 'tokenCommand'"):
        parse({"stream": "s", "tokenRefresh": "1m"})
    with pytest.raises(OptionError, match="give only one of the options .*, or a password in 'url'"):
        parse({"stream": "s", "url": "amqp://u:p@h", "tokenFile": "/t"})


def test_the_next_token_is_sent_before_the_old_one_ends(warren: RunningBroker, issuer: Issuer, tmp_path: Path) -> None:
    start = time.time()
    file = tmp_path / "token"
    now = [start]
    warren.add_user("token", (first := issuer.token(1, 600)))
    file.write_text(first)
    assert expiry(first) == int(start + 600) and expiry("opaque") is None and expiry("a.b.c") is None
    with recording_proxy(warren.port) as (port, said):
        options = parse({"stream": "s", "host": f"127.0.0.1:{port}", "username": "token", "tokenFile": str(file)})
        connection = connect(options, "test")
        login = Login(options, connection, lambda: now[0])
        file.write_text(second := issuer.token(2, 1200))
        for later, sent in ((0, 0), (390, 0), (405, 1), (410, 1)):
            now[0] = start + later
            login.refresh()
            assert said[0].count(update_of(second)) == sent
        file.unlink()  # nobody replaces it: the old one serves as long as it can
        now[0] = start + 1150
        login.refresh()
        now[0] += 1
        login.refresh()
        file.write_text(third := issuer.token(3, 2000))
        now[0] += 5
        login.refresh()
        assert said[0].count(update_of(third)) == 1
        connection.close()
