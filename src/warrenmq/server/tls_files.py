"""Certificates, keys and authorities of the settings, as contexts of TLS.

Duty: read the files, and say which one is wrong, and how, by the setting that names it. Not here: listening
(``tls.py``), and who a client's certificate stands for (``certificates.py``).
"""

from __future__ import annotations

import ssl
from pathlib import Path

from warrenmq.server.config import Settings

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
VERIFY = {"none": ssl.CERT_NONE, "peer": ssl.CERT_OPTIONAL, "require": ssl.CERT_REQUIRED}


class CertificateError(OSError):
    """A file of TLS cannot be used; the text is one line that names it."""


def https_context(settings: Settings) -> ssl.SSLContext:
    """For HTTP; who a client is, it says with a password."""
    if settings.https_cert is not None and settings.https_key is not None:
        return _context(settings, "https", settings.https_cert, settings.https_key)
    if settings.tls_cert is None or settings.tls_key is None:
        raise CertificateError("https_port needs https_cert or tls_cert: the certificate that HTTPS shows")
    return _context(settings, "tls", settings.tls_cert, settings.tls_key)


def tls_context(settings: Settings) -> ssl.SSLContext:
    """For AMQP, with client certificates as configured."""
    if settings.tls_cert is None or settings.tls_key is None:
        raise CertificateError("tls_port needs tls_cert and tls_key: the certificate the TLS listener shows")
    context = _context(settings, "tls", settings.tls_cert, settings.tls_key)
    if settings.tls_ca is not None:
        _readable("tls_ca", settings.tls_ca)
        try:
            context.load_verify_locations(settings.tls_ca)
        except ssl.SSLError:
            raise CertificateError(f"tls_ca: {settings.tls_ca} has no certificate in PEM") from None
    context.verify_mode = VERIFY[settings.tls_verify]
    return context


def _context(settings: Settings, kind: str, certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = VERSIONS[settings.tls_min_version]
    shown = _readable(f"{kind}_cert", certificate)
    secret = _readable(f"{kind}_key", key)
    try:
        context.load_cert_chain(certificate, key, password="")  # of a key with a password nobody is asked for it
    except ssl.SSLError as error:
        if b"-----BEGIN CERTIFICATE" not in shown:
            raise CertificateError(f"{kind}_cert: {certificate} has no certificate in PEM") from None
        if b"ENCRYPTED" in secret:
            raise CertificateError(
                f"{kind}_key: {key} has a password: `openssl pkey -in {key} -out PLAIN` writes it without"
            ) from None
        if b"PRIVATE KEY-----" not in secret:
            raise CertificateError(f"{kind}_key: {key} has no private key in PEM") from None
        if error.reason == "KEY_VALUES_MISMATCH":
            raise CertificateError(f"{kind}_key: {key} is not the key of {kind}_cert, {certificate}") from None
        raise CertificateError(f"{kind}_cert, {kind}_key: {error.reason or error}") from None
    return context


def _readable(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CertificateError(f"{setting}: {file} cannot be read ({error.strerror})") from None
