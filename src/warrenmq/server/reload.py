"""SIGHUP: the settings that may change while the broker runs, and the certificates, without dropping a connection.

Duty: compare what was configured with what is now, apply the difference, say what it was and what needs a restart.
A setting that did not change is left alone, so that what ``warren ctl`` changed meanwhile stays. Whatever is wrong
with the new configuration is told and changes nothing at all.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warrenmq.server.config import TABLE, Settings
from warrenmq.server.limits import OFFERS, set_memory_limit, set_offers
from warrenmq.server.logging import configure
from warrenmq.server.tls_files import https_context, tls_context

if TYPE_CHECKING:
    from warrenmq.server.app import Server

LOGGING = ("log_level", "log_format", "log_file")
ALARMS = ("memory_high_watermark", "disk_free_limit")
TLS = ("tls_cert", "tls_key", "tls_ca", "tls_verify", "tls_min_version", "https_cert", "https_key")
CERTIFICATES = ("tls_login_from",)  # looked at for each new connection
HTTP = (
    "http_origins",
    "http_proxies",
    "http_header_timeout",
    "http_body_timeout",
    "http_connection_max",
)  # read from the settings when they count
JOURNAL = ("journal_interval", "journal_max_age", "journal_max_bytes", "journal_index_headers")
AT_RUN_TIME = frozenset((*OFFERS, *LOGGING, *ALARMS, *TLS, *CERTIFICATES, *HTTP, *JOURNAL))
FOLLOWED_ELSEWHERE = frozenset(("default_user", "default_pass", "default_vhost"))  # of new data folders only


@dataclass
class Reloaded:
    """The outcome of a reload: settings in force now, and those that wait for a restart."""

    changed: list[str] = field(default_factory=list)
    needs_restart: list[str] = field(default_factory=list)


def reload(server: Server, wanted: Settings) -> Reloaded:
    """Apply ``wanted``. Raises OSError, with nothing changed, when a file cannot be used."""
    before = server.settings
    differing = [name for name in TABLE if getattr(before, name) != getattr(wanted, name)]
    result = Reloaded([name for name in differing if name in AT_RUN_TIME])
    result.needs_restart = [name for name in differing if name not in AT_RUN_TIME | FOLLOWED_ELSEWHERE]
    context = _new_context(server, wanted)
    https = None if server.https is None else https_context(wanted)
    configure(wanted.log_level, wanted.log_format, file=wanted.log_file)  # a moved log file is opened anew as well
    if context is not None and server.tls is not None:
        server.tls.renew(context)
    server.https = https
    server.begin()
    set_offers(server.broker, wanted)
    alarms = server.broker.services.pressure.alarms
    if alarms is not None:
        if "memory_high_watermark" in result.changed:
            set_memory_limit(alarms, wanted)
        if "disk_free_limit" in result.changed:
            alarms.set_disk_limit(wanted.disk_free_limit)
        server.broker.update_alarms()
    for name in AT_RUN_TIME:
        setattr(server.settings, name, getattr(wanted, name))
    server.journal.settings_changed()
    return result


def _new_context(server: Server, wanted: Settings) -> ssl.SSLContext | None:
    """The certificates as they are on disk now, read before anything is changed."""
    return None if server.settings.tls_port is None else tls_context(wanted)
