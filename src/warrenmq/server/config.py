"""Every setting of the broker: one table, read from flags, `WARREN_*` variables and a TOML file or `rabbitmq.conf`.

Precedence: flags, then environment, then file, then the defaults below. A key that does not exist and a value that
is not allowed are refused with the key, the value and what is allowed; nothing is guessed and nothing is ignored.

This module only reads and checks. It opens no port, makes no folder and knows no event loop. `docs/configuration.md`
is checked against this table by a test.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from warrenmq.server import rabbitmq_conf
from warrenmq.server.certificates import USERS_OF_A_CERTIFICATE
from warrenmq.server.environment import CONFIG_OF_RABBITMQ, CONFIG_VARIABLE, settings_in, variable
from warrenmq.server.kinds import (
    Kind,
    SettingsError,
    addresses,
    choice,
    endpoint,
    endpoints,
    integer,
    names,
    networks,
    or_off,
    origins,
    path,
    seconds,
    size,
    some_of,
    text,
    watermark,
    word,
)
from warrenmq.server.rabbitmq_keys import MECHANISMS
from warrenmq.sizes import GIB, MIB

__all__ = ["TABLE", "Setting", "Settings", "SettingsError", "load"]


def _setting(default: object, kind: Kind, help: str) -> Any:
    """A dataclass field that carries how it is read and what it means; lists get a copy each."""
    metadata = {"kind": kind, "help": help}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


_PORT = "; 0 picks a free one"


@dataclass(kw_only=True)
class Settings:
    """The settings of one broker, checked. `Settings()` is what `warren serve` runs with when nothing is said."""

    host: list[str] = _setting(["127.0.0.1", "::1"], addresses(), "addresses to listen on")
    port: int = _setting(5672, integer(0, 65535, _PORT), "AMQP port; 0 picks a free one")
    http_port: int | None = _setting(
        15672, or_off(integer(0, 65535, _PORT)), "HTTP port: management API, metrics, page; off where there is HTTPS"
    )
    tls_port: int | None = _setting(None, integer(0, 65535, _PORT), "AMQP over TLS port; off unless given")
    metrics_port: int | None = _setting(
        None, or_off(integer(0, 65535, _PORT)), "port with the metrics alone, besides the HTTP port; off unless given"
    )
    metrics_host: list[str] = _setting(
        [], addresses(some=False), "addresses of that port; those of the HTTP port unless given"
    )
    metrics_per_object: str = _setting(
        "off", choice("on", "off"), "/metrics tells each queue, connection and channel, as /metrics/per-object does"
    )
    otel_endpoint: str | None = _setting(
        None, or_off(endpoint()), "collector that is sent metrics and spans, OTLP over HTTP; off unless given"
    )
    otel_interval: float = _setting(
        30.0, seconds(0, 3600, "; 0 is no metrics"), "seconds from one sending of metrics to the next"
    )
    otel_spans: str = _setting(
        "on", choice("on", "off"), "spans of publish and deliver, for messages that carry a traceparent"
    )
    data_dir: Path = _setting(Path("data"), path(), "folder of the durable log")
    ready_file: Path | None = _setting(None, path(), "JSON file written once listening, removed at the end")

    https_port: int | None = _setting(None, integer(0, 65535, _PORT), "HTTP over TLS port; off unless given")
    tls_cert: Path | None = _setting(None, path(), "certificate chain of the TLS listener, PEM")
    tls_key: Path | None = _setting(None, path(), "its private key, PEM")
    tls_ca: Path | None = _setting(None, path(), "authorities that client certificates are checked against, PEM")
    tls_verify: str = _setting(
        "none", choice("none", "peer", "require"), "client certificates: ignored, checked if sent, or required"
    )
    tls_min_version: str = _setting("1.2", choice("1.2", "1.3"), "oldest TLS that is spoken, over AMQP and HTTP")
    tls_login_from: str = _setting(
        "common_name",
        choice(*USERS_OF_A_CERTIFICATE),
        "the part of a client certificate that is its user, for EXTERNAL",
    )

    auth_mechanisms: list[str] = _setting(
        list(MECHANISMS), some_of(*MECHANISMS), "login mechanisms offered; EXTERNAL where a certificate was shown"
    )
    heartbeat: int = _setting(60, integer(0, 65535, "; 0 is off"), "heartbeat suggested to clients, seconds")
    frame_max: int = _setting(131072, size(4096, 2147483647), "largest frame offered to clients")
    channel_max: int = _setting(2047, integer(0, 65535, "; 0 is no limit"), "channels a connection may open")
    max_message_size: int = _setting(128 * MIB, size(1, 2 * GIB), "largest message body accepted")
    handshake_timeout: float = _setting(10.0, seconds(0.1, 3600), "seconds a client has to log in")
    connection_max: int = _setting(0, integer(0, 1000000, "; 0 is no limit"), "connections at once")
    consumer_timeout: float = _setting(
        1800.0,
        seconds(0, 31536000, "; 0 is off"),
        "seconds a delivery may stay unacknowledged before its channel is closed",
    )

    https_cert: Path | None = _setting(None, path(), "certificate chain of HTTPS, PEM; that of tls_cert unless given")
    https_key: Path | None = _setting(None, path(), "its private key, PEM; that of tls_key unless given")
    http_header_timeout: float = _setting(10.0, seconds(0.1, 3600), "seconds a whole HTTP header may take")
    http_body_timeout: float = _setting(
        60.0, seconds(0.1, 3600), "seconds each 64 KiB of an HTTP body or answer may take"
    )
    http_connection_max: int = _setting(1000, integer(1, 1000000), "HTTP connections at once")
    http_proxies: list[str] = _setting([], networks(), "proxies whose X-Forwarded-For is believed")
    http_host: list[str] = _setting([], addresses(some=False), "addresses of the HTTP port; those of host unless given")
    http_origins: list[str] = _setting([], origins(), "origins whose pages may use the HTTP API, besides its own")

    memory_high_watermark: float | int = _setting(0.4, watermark(), "memory above which publishers are blocked")
    disk_free_limit: int = _setting(50 * 1000**2, size(0, 2**60), "free disk below which publishers are blocked")

    scrub_rate: int = _setting(1 * MIB, size(0, 2**40), "bytes of the log checked a second; 0 is off")
    scrub_interval: float = _setting(86400.0, seconds(0, 31536000), "seconds from one check of it all to the next")

    journal: str = _setting("on", choice("on", "off"), "the journal: what became of durable messages, as Parquet")
    journal_interval: float = _setting(3.0, seconds(0.1, 3600), "seconds from one file of it to the next, at least")
    journal_max_age: float = _setting(
        2592000.0, seconds(0, 3153600000, "; 0 is no limit"), "seconds that its files are kept"
    )
    journal_max_bytes: int = _setting(10 * GIB, size(0, 2**60), "size above which its oldest files go; 0 is no limit")
    journal_index_headers: list[str] = _setting(
        [], names("names of headers separated by commas, or none"), "headers by which its messages are found at once"
    )

    cluster: str | None = _setting(
        None, or_off(word()), "cluster that this node is one of (experimental); off unless given"
    )
    cluster_node: str | None = _setting(None, word(), "name of this node; that of the machine unless given")
    cluster_etcd: list[str] = _setting(["http://127.0.0.1:2379"], endpoints(), "members of the cluster's etcd")
    cluster_host: str = _setting("127.0.0.1", text("one address"), "address at which other nodes reach this one")
    cluster_port: int = _setting(25672, integer(0, 65535, _PORT), "port at which other nodes reach this one")
    cluster_secret: Path | None = _setting(None, path(), "file with the secret that the nodes share")
    cluster_cert: Path | None = _setting(
        None, path(), "certificate chain with this node's name, shown to other nodes instead of a secret, PEM"
    )
    cluster_key: Path | None = _setting(None, path(), "its private key, PEM")
    cluster_ca: Path | None = _setting(None, path(), "authority of the certificates of all nodes, PEM")
    cluster_insecure: str = _setting(
        "off", choice("on", "off"), "no proof between nodes that are all on this machine, at 127.0.0.1"
    )
    cluster_etcd_ca: Path | None = _setting(None, path(), "authority of etcd's certificates, PEM; the system's else")
    cluster_etcd_cert: Path | None = _setting(None, path(), "certificate shown to etcd, PEM")
    cluster_etcd_key: Path | None = _setting(None, path(), "its private key, PEM")
    cluster_min_in_sync: int = _setting(
        1, integer(1, 7), "nodes that must have a message on disk before it is confirmed, at least"
    )
    cluster_ack_timeout: float = _setting(
        1.0, seconds(0.1, 60), "seconds a follower may owe an acknowledgement before it is dropped"
    )
    cluster_stay_out: float = _setting(
        600.0, seconds(0, 86400), "seconds a follower does not count that was late three times within them; 0 for none"
    )
    cluster_ttl: int = _setting(3, integer(2, 60), "seconds without a sign of life until a leader is replaced")

    load_definitions: Path | None = _setting(
        None, path(), "definitions, a JSON file or a folder of them, that are imported at every start"
    )
    default_user: str = _setting("guest", text(), "user made when the data folder is new")
    default_pass: str = _setting("guest", text(), "password of that user")
    default_vhost: str = _setting("/", text(), "virtual host made when the data folder is new")
    loopback_users: list[str] = _setting(
        ["guest"], names("user names separated by commas, or none"), "users who may log in from this machine only"
    )
    interceptors: list[str] = _setting(
        [], names("MODULE:OBJECT names separated by commas, or none"), "channel interceptors to load, in order"
    )
    decorators: list[str] = _setting(
        [], names("MODULE:OBJECT names separated by commas, or none"), "exchange decorators to load, in order"
    )

    log_level: str = _setting("info", choice("debug", "info", "warning", "error"), "least level that is logged")
    log_format: str = _setting("text", choice("text", "json"), "log lines as key=value or as JSON")
    log_file: Path | None = _setting(None, path(), "file the log is appended to; standard error unless given")
    file: Path | None = field(default=None, repr=False, compare=False)  # that some of them are from
    sources: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    unused: dict[str, str] = field(default_factory=dict, repr=False, compare=False)  # keys of rabbitmq.conf, and why

    def __post_init__(self) -> None:
        """Values given in code go through the same checks as any other."""
        for name, one in TABLE.items() if TABLE else ():
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, _read(name, value, one, self.sources.get(name, "")))
        if self.tls_port is not None and (self.tls_cert is None or self.tls_key is None):
            missing = "tls_cert" if self.tls_cert is None else "tls_key"
            raise SettingsError(f"{missing}: nothing given; allowed: a path, as tls_port is {self.tls_port}")
        self._check_https()
        if self.tls_verify != "none" and self.tls_port is not None and self.tls_ca is None:
            raise SettingsError(f"tls_ca: nothing given; allowed: a path, as tls_verify is {self.tls_verify}")

        self._check_cluster()

    def _check_cluster(self) -> None:
        """Certificates come whole."""
        if self.cluster is None:
            return
        given = [self.cluster_cert, self.cluster_key, self.cluster_ca]
        if None in given and given != [None, None, None]:
            missing = ("cluster_cert", "cluster_key", "cluster_ca")[given.index(None)]
            raise SettingsError(f"{missing}: nothing given; allowed: a path, as others of the three are given")
        if (self.cluster_etcd_cert is None) != (self.cluster_etcd_key is None):
            missing = "cluster_etcd_cert" if self.cluster_etcd_cert is None else "cluster_etcd_key"
            raise SettingsError(f"{missing}: nothing given; allowed: a path, as the other of the two is given")

    def etcd_places(self) -> list[tuple[str, int]]:
        """Hosts and ports of ``cluster_etcd``."""
        parts = [urlsplit(one) for one in self.cluster_etcd]
        return [(str(one.hostname), int(one.port or 0)) for one in parts]

    def _check_https(self) -> None:
        """Its certificate and key belong together, so both are its own or both are those of AMQP."""
        if self.http_port is None and self.https_port is None:
            raise SettingsError("http_port: off is not allowed without https_port; allowed: a port")
        if (self.https_cert is None) != (self.https_key is None):
            missing = "https_cert" if self.https_cert is None else "https_key"
            raise SettingsError(f"{missing}: nothing given; allowed: a path, as the other of the two is given")
        if self.https_port is not None and self.https_cert is None and (self.tls_cert is None or self.tls_key is None):
            raise SettingsError(f"https_cert: nothing given; allowed: a path, as https_port is {self.https_port}")


@dataclass(frozen=True)
class Setting:
    """One row of the table: what the command line, the documentation and the checks need to know."""

    name: str
    default: object
    kind: Kind
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return variable(self.name)


TABLE: dict[str, Setting] = {}


def _fill_table() -> None:
    for one in dataclasses.fields(Settings):
        if "kind" in one.metadata:
            default = one.default if one.default_factory is dataclasses.MISSING else one.default_factory()
            TABLE[one.name] = Setting(one.name, default, one.metadata["kind"], one.metadata["help"])


_fill_table()


def load(flags: Mapping[str, str], environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from flags (by setting name, plus `config`), environment and file, in this precedence."""
    environment = os.environ if environment is None else environment
    found: dict[str, object] = {}
    sources: dict[str, str] = {}
    unused: dict[str, str] = {}
    file = _file(flags, environment)
    if file is not None:
        if rabbitmq_conf.is_one(file):
            read = rabbitmq_conf.read(file)
            found, unused = read.settings, read.unused
            sources = {name: f"from {key} in {file}" for name, key in read.keys.items()}
        else:
            found = _from_file(file)
            sources = dict.fromkeys(found, f"in {file}")
    told, unknown = settings_in(environment, TABLE)
    for name in unknown:
        known = [one.variable for one in TABLE.values()]
        raise SettingsError(_unknown(name, environment[name], "in the environment", known))
    for name, (given, source) in told.items():
        found[name], sources[name] = given, f"from {source}"
    for name, given in flags.items():
        if name != "config":
            found[name], sources[name] = given, f"from {TABLE[name].flag}"
    if _read_port(found.get("port")) == 0:
        found.setdefault("http_port", 0)  # --port 0 asks for free ports, so that two brokers never meet
    return Settings(**found, file=file, sources=sources, unused=unused)  # type: ignore[arg-type]


def _file(flags: Mapping[str, str], environment: Mapping[str, str]) -> Path | None:
    """The configuration file: ours, or RabbitMQ's where its own variable names it, with or without its ending."""
    named = flags.get("config") or environment.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    theirs = environment.get(CONFIG_OF_RABBITMQ)
    if not theirs:
        return None
    return Path(theirs if theirs.endswith(".conf") else f"{theirs}.conf")


def _read_port(value: object) -> object:
    return int(value) if isinstance(value, str) and value.strip().isdigit() else value


def _from_file(file: Path) -> dict[str, object]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"config: {file} cannot be read ({error.strerror}); allowed: a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as malformed:
        raise SettingsError(f"config: {file} is no TOML ({malformed}); allowed: lines such as port = 5672") from None
    for key, value in document.items():
        if key not in TABLE:
            raise SettingsError(_unknown(key, value, f"in {file}", list(TABLE)))
    return document


def _unknown(key: str, value: object, where: str, known: list[str]) -> str:
    near = get_close_matches(key, known, n=1)
    allowed = f"did you mean {near[0]}?" if near else "allowed: " + ", ".join(known)
    return f"{key}: unknown setting with value {_shown(value)} ({where}); {allowed}"


def _read(name: str, value: object, one: Setting, source: str) -> object:
    try:
        return one.kind.parse(value)
    except (ValueError, TypeError, OverflowError):
        where = f" ({source})" if source else ""
        shown = "a value" if name == "default_pass" else _shown(value)
        raise SettingsError(f"{name}: {shown} is not allowed{where}; allowed: {one.kind.allowed}") from None


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
