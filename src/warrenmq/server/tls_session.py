"""What a TLS session and its certificate are called, in RabbitMQ's words, for those who list connections.

Duty: names. Not here: the session itself, which is OpenSSL's, and who the client is (``certificates.py``).
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from warrenmq.broker.channel.peer import TlsSession
from warrenmq.server.certificates import distinguished_name

#: ECDHE-RSA-AES256-GCM-SHA384, AES128-SHA, ECDHE-ECDSA-CHACHA20-POLY1305
_CIPHER = re.compile(
    r"(?:(?P<exchange>(?:ECDHE|DHE)-(?:RSA|ECDSA|PSK|DSS)|PSK)-)?"
    r"(?P<cipher>(?P<family>AES|ARIA|CAMELLIA)(?P<bits>\d+)(?:-(?P<mode>GCM|CCM8|CCM))?|CHACHA20-POLY1305)"
    r"(?:-(?P<hash>SHA\d*))?"
)


def session_of(tls: ssl.SSLObject) -> TlsSession:
    name, version, _ = tls.cipher() or ("", "", 0)
    protocol = (tls.version() or version).lower()
    certificate: Mapping[str, Any] = tls.getpeercert() or {}
    return TlsSession(
        protocol,
        *cipher_names(name),
        distinguished_name(certificate.get("subject", ())),
        distinguished_name(certificate.get("issuer", ())),
        " - ".join(_moment(certificate[end]) for end in ("notBefore", "notAfter") if end in certificate),
    )


def cipher_names(name: str) -> tuple[str, str, str]:
    """Key exchange, cipher and hash of OpenSSL's name of a suite."""
    if name.startswith("TLS_"):  # 1.3: the key exchange is no part of it
        return "any", name.removeprefix("TLS_").rpartition("_")[0].lower(), "aead"
    found = _CIPHER.fullmatch(name)
    if found is None:
        return "", name.lower(), ""
    exchange = (found["exchange"] or "RSA").lower().replace("-", "_")
    if found["family"] is None:
        return exchange, "chacha20_poly1305", "aead"
    mode = {None: "cbc", "GCM": "gcm", "CCM": "ccm", "CCM8": "ccm_8"}[found["mode"]]
    cipher = f"{found['family'].lower()}_{found['bits']}_{mode}"
    return exchange, cipher, "aead" if mode != "cbc" else (found["hash"] or "").lower()


def _moment(text: str) -> str:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
