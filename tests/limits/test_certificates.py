"""Which user a client certificate stands for, and what is told of a connection over TLS: as RabbitMQ 3.10 has them."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.limits.authority import Authority
from tests.support import web
from tests.support.brokers import BrokerUnavailable, RunningBroker, free_ports, start_rabbitmq
from warrenmq.client import ConnectError, Connection
from warrenmq.server.certificates import distinguished_name
from warrenmq.testing import Broker

USER = "CN=amy\\, of all,OU=two words,O=our company,C=CH"
SUBJECT = x509.Name(
    [
        x509.NameAttribute(NameOID.COUNTRY_NAME, "CH"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "our company"),
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "two words"),
        x509.NameAttribute(NameOID.COMMON_NAME, "amy, of all"),
    ]
)
TOLD = (
    *("ssl", "ssl_protocol", "ssl_key_exchange", "ssl_cipher", "ssl_hash"),
    *("peer_cert_subject", "peer_cert_issuer", "peer_cert_validity"),
)


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    with tempfile.TemporaryDirectory(prefix="warren-authority-") as folder:
        Path(folder).chmod(0o755)  # RabbitMQ runs as a user of its own
        yield Authority(Path(folder), "authority")


@pytest.fixture(scope="module")
def files(authority: Authority) -> dict[str, tuple[Path, Path]]:
    issued = {"broker": authority.issue("broker"), "amy": authority.issue("amy", subject=SUBJECT)}
    for path in (*issued["broker"], authority.certificate):
        path.chmod(0o644)
    return issued


@pytest.fixture(scope="module")
def rabbitmq(authority: Authority, files: dict[str, tuple[Path, Path]]) -> Iterator[tuple[RunningBroker, int]]:
    (port,) = free_ports(1)
    certificate, key = files["broker"]
    config = (
        f"listeners.ssl.1 = 127.0.0.1:{port}\nssl_options.certfile = {certificate}\nssl_options.keyfile = {key}\n"
        f"ssl_options.cacertfile = {authority.certificate}\nssl_options.verify = verify_peer\n"
        "auth_mechanisms.1 = PLAIN\nauth_mechanisms.2 = EXTERNAL\n"
    )
    with contextlib.ExitStack() as stack:
        try:
            plugins = ("rabbitmq_management", "rabbitmq_auth_mechanism_ssl")
            broker = stack.enter_context(start_rabbitmq(plugins, config))
        except BrokerUnavailable as reason:
            pytest.skip(str(reason))
        yield broker, port


def client(authority: Authority, identity: tuple[Path, Path], newest: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(*identity)
    context.maximum_version = newest
    return context


def told(
    ask: Callable[[str, str, Any], Any],
    port: int,
    authority: Authority,
    identity: tuple[Path, Path],
    newest: ssl.TLSVersion,
) -> dict[str, Any]:
    """What the management API says of a connection that a certificate logged in."""
    ask("PUT", f"/api/users/{quote(USER)}", {"password": "unused", "tags": ""})
    ask("PUT", f"/api/permissions/%2F/{quote(USER)}", {"configure": ".*", "write": ".*", "read": ".*"})
    with Connection(
        port=port, ssl=client(authority, identity, newest), mechanism="EXTERNAL", username="", password="", heartbeat=30
    ):
        until = time.monotonic() + 60
        while True:
            rows = [one for one in ask("GET", "/api/connections", None) if one.get("user") == USER]
            if rows and rows[0].get("ssl_cipher") or time.monotonic() > until:
                break
            time.sleep(0.1)
        (row,) = rows
        return {name: row.get(name) for name in (*TOLD, "auth_mechanism")}


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_a_certificates_distinguished_name_is_the_user_that_rabbitmq_calls_by_it_and_its_session_is_told(
    newest: ssl.TLSVersion,
    authority: Authority,
    files: dict[str, tuple[Path, Path]],
    rabbitmq: tuple[RunningBroker, int],
    tmp_path: Path,
) -> None:
    oracle, port = rabbitmq
    theirs = told(lambda *asked: oracle.http(*asked)[1], port, authority, files["amy"], newest)
    (ours_at,) = free_ports(1)
    certificate, key = files["broker"]
    settings: dict[str, Any] = {"tls_cert": certificate, "tls_key": key}
    settings |= {"tls_ca": authority.certificate, "tls_verify": "peer"}
    with (
        Broker(tls_port=ours_at, tls_login_from="distinguished_name", **settings) as broker,
        web.Client() as asking,
    ):

        def ask(method: str, path: str, body: Any) -> Any:
            answer = asking.request(method, broker.http_url + path, json=body, auth=("guest", "guest"))
            return answer.json() if answer.content else None

        assert told(ask, ours_at, authority, files["amy"], newest) == theirs
    assert theirs["peer_cert_subject"] == USER and theirs["auth_mechanism"] == "EXTERNAL"


@pytest.mark.parametrize("part", ["dns", "email", "uri"])
def test_a_certificate_without_the_part_that_is_the_user_is_nobodys(
    part: str, authority: Authority, files: dict[str, tuple[Path, Path]]
) -> None:
    (port,) = free_ports(1)
    certificate, key = files["broker"]
    settings: dict[str, Any] = {"tls_cert": certificate, "tls_key": key}
    settings |= {"tls_ca": authority.certificate, "tls_verify": "peer"}
    with Broker(tls_port=port, tls_login_from=part, **settings):
        with pytest.raises(ConnectError, match="EXTERNAL"):
            context = client(authority, files["amy"], ssl.TLSVersion.TLSv1_3)
            Connection(port=port, ssl=context, mechanism="EXTERNAL", username="", password="")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        ('a "b" <c>;d', 'a \\"b\\" \\<c\\>\\;d'),
        ("back\\slash", "back\\\\slash"),
        (" both ", "\\ both\\ "),
        ("#1", "\\#1"),
    ],
)
def test_signs_that_mean_something_in_a_distinguished_name_are_escaped(value: str, shown: str) -> None:
    assert distinguished_name(((("commonName", value),),)) == f"CN={shown}"
