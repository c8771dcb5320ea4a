"""Which broker a Spark job speaks with: one address for all commands, said as options of format amqp.

``--host`` and the options of the format name one apart; otherwise it is found as every command finds it
(``cli/_address.py``), and where nothing names one the format's own defaults hold. What is said apart (a password in a
file, an HTTP port) counts over what the address says. An address with several hosts goes to the format as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from warrenmq.cli._address import DEFAULT_URL, AddressError, Target, amqp_url, http_url, target
from warrenmq.cli._command import stop

APART = ("url", "host", "port")
SECRETS = ("password", "passwordEnv", "passwordFile", "tokenFile", "tokenCommand")


def broker_options(url: str | None, options: dict[str, str], asks_http: bool) -> dict[str, str]:
    """These options with those of the address; ``asks_http``: the job may ask the HTTP API."""
    apart = any(name in options for name in APART)
    if url is not None and ("," in url or apart):
        return {**options, "url": url}  # of which two the format says itself that they contradict each other
    if apart:
        return options
    try:
        found = target(url)
        if found.url == DEFAULT_URL and url is None:
            return options  # nobody named any
        amqp_url(url)
        return {**of_address(found, options), **_http(url, found, options, asks_http), **options}
    except AddressError as error:
        stop("pipeline", str(error), error.status)


def of_address(found: Target, options: Mapping[str, str]) -> dict[str, str]:
    parts = urlsplit(found.url)
    tls = parts.scheme == "amqps"
    place = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else str(parts.hostname)
    said = {"host": place, "port": str(parts.port or (5671 if tls else 5672)), "virtualHost": found.vhost}
    if tls:
        said["tls"] = "true"
    if parts.username:
        said["username"] = unquote(parts.username)
    if parts.password is not None and not any(name in options for name in SECRETS):
        said["password"] = unquote(parts.password)
    return said


def _http(url: str | None, found: Target, options: Mapping[str, str], asked: bool) -> dict[str, str]:
    """Where the HTTP API is, if the address says so or the broker does."""
    if "httpHost" in options or "httpPort" in options or not (asked or found.http_url):
        return {}
    parts = urlsplit(found.http_url or http_url(url))
    tls = parts.scheme == "https"
    place = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else str(parts.hostname)
    said = {"httpHost": place, "httpPort": str(parts.port or (443 if tls else 80))}
    return {**said, "httpTls": "true"} if tls and "httpTls" not in options else said
