"""How nodes know each other, and how they know etcd: from settings to secrets and certificates.

Duty: which of the three ways it is, and that no node listens beyond its own machine without one that proves something.
"""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path

from warrenmq.cluster.handshake import LEAST_SECRET, NONE, SECRET, TLS
from warrenmq.server.config import Settings, SettingsError


class Security:
    """The certificate that a node shows and the authority that it asks for."""

    def __init__(self, settings: Settings) -> None:
        self.secret = b""
        self.called: ssl.SSLContext | None = None
        self.calling: ssl.SSLContext | None = None
        self.etcd = _etcd(settings)
        if settings.cluster_cert is not None:
            assert settings.cluster_key is not None and settings.cluster_ca is not None
            self.mode = TLS
            self.called = _context(ssl.PROTOCOL_TLS_SERVER, settings)
            self.calling = _context(ssl.PROTOCOL_TLS_CLIENT, settings)
        elif settings.cluster_secret is not None:
            self.mode = SECRET
            self.secret = _secret(settings.cluster_secret)
        elif settings.cluster_insecure == "on" and _is_loopback(settings.cluster_host):
            self.mode = NONE
        else:
            raise SettingsError(
                "cluster_secret: nothing given; allowed: a file with the secret that all nodes share, or cluster_cert, "
                "cluster_key and cluster_ca; on 127.0.0.1 alone also cluster_insecure = on"
            )


def _context(protocol: int, settings: Settings) -> ssl.SSLContext:
    """Both sides show a certificate of the cluster's authority; for whom it is, is looked at afterwards: nodes are
    known by their names, not by their addresses."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    assert settings.cluster_cert is not None and settings.cluster_ca is not None
    try:
        context.load_cert_chain(settings.cluster_cert, settings.cluster_key)
        context.load_verify_locations(settings.cluster_ca)
    except OSError as error:
        raise SettingsError(f"cluster_cert: cannot be used ({error}); allowed: a pair of PEM files") from None
    return context


def _etcd(settings: Settings) -> ssl.SSLContext | None:
    if not any(one.startswith("https:") for one in settings.cluster_etcd):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.cluster_etcd_ca)
        if settings.cluster_etcd_cert is not None:
            context.load_cert_chain(settings.cluster_etcd_cert, settings.cluster_etcd_key)
    except OSError as error:
        raise SettingsError(f"cluster_etcd_cert: cannot be used ({error}); allowed: PEM files") from None
    return context


def _secret(path: Path) -> bytes:
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise SettingsError(f"cluster_secret: {path} cannot be read ({error.strerror}); allowed: a file") from None
    if len(secret) < LEAST_SECRET:
        raise SettingsError(
            f"cluster_secret: {path} has {len(secret)} octets; allowed: at least {LEAST_SECRET}, such as "
            "`openssl rand -hex 32` makes"
        )
    return secret


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
