"""Every key of RabbitMQ 3.10's configuration file, and what it is here.

Duty: one table. A key becomes settings, has no meaning (and why), or is refused (and why).
``docs/moving-from-rabbitmq.md`` shows the table, and a test holds it beside the keys of a real RabbitMQ. Not here:
reading the file (``rabbitmq_conf.py``).

Patterns: ``$name`` stands for one part of a key, ``*`` at the end for any rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warrenmq.server.certificates import ALTERNATIVE
from warrenmq.server.memory import memory_total

Said = dict[str, object]

EVERYWHERE = "::"
MECHANISMS = ("PLAIN", "AMQPLAIN", "EXTERNAL")
FLAGS = {"true": True, "on": True, "false": False, "off": False}
LEVELS = {
    "debug": "debug",
    "info": "info",
    "notice": "info",
    "warning": "warning",
    "error": "error",
    "critical": "error",
    "alert": "error",
    "emergency": "error",
}


class NoMeaning(Exception):
    """The key is right and does nothing here; the text says why."""


class Refused(Exception):
    """A key that is refused: going on without what it asks for would be less safe, or not what clients expect."""


@dataclass(frozen=True)
class Line:
    """One line of the file, and all others, some of which belong together."""

    value: str
    parts: list[str]  # of the key
    given: Mapping[str, str]


@dataclass(frozen=True)
class Key:
    """A key or a group of keys, what it becomes, and how that is shown."""

    pattern: str
    shown: str  # the settings, or why there are none
    meaning: Callable[[Line], Said]
    allowed: str = "a value as in RabbitMQ 3.10"

    def matches(self, parts: list[str]) -> bool:
        wanted = self.pattern.split(".")
        if wanted[-1] == "*":
            wanted = wanted[:-1]
            if len(parts) < len(wanted):
                return False
            parts = parts[: len(wanted)]
        return len(parts) == len(wanted) and all(
            one.startswith("$") or one == part for one, part in zip(wanted, parts, strict=True)
        )


# --- values


def flag(value: str) -> bool:
    if value not in FLAGS:
        raise ValueError
    return FLAGS[value]


def milliseconds(value: str) -> object:
    """As seconds; off, for which we say 0, has several words there."""
    return 0.0 if value in ("false", "undefined", "infinity") else int(value) / 1000


def unlimited(value: str) -> object:
    return 0 if value == "infinity" else int(value)


def of_memory(value: str) -> object:
    """A share of all memory, as bytes."""
    return int(float(value) * memory_total())


def level(value: str) -> object:
    if value == "none":
        raise Refused("Warren's log cannot be turned off; `error` is the least")
    return LEVELS.get(value, value)


def formatted(value: str) -> object:
    return "text" if value == "plaintext" else value


def endpoint(value: str) -> tuple[str, int]:
    """``5672``, ``10.0.0.1:5672`` or ``[::1]:5672``; every address without one."""
    address, _, port = value.rpartition(":")
    if address in ("", "0.0.0.0", "::", "[::]"):
        address = EVERYWHERE
    return address.removeprefix("[").removesuffix("]"), int(port)


# --- lines that need more than their value


def listener(line: Line) -> Said:
    """All listeners of both kinds: ours share their addresses, and each kind has one port."""
    if line.value == "none":
        if line.parts[1] == "ssl":
            return {}
        raise Refused("Warren always listens without TLS; bind it to loopback: listeners.tcp.local = 127.0.0.1:5672")
    if len(line.parts) == 2:
        raise ValueError  # a port needs a name in its key
    endpoint(line.value)  # or ValueError
    said: Said = {}
    places: dict[str, set[str]] = {}
    for kind, name in (("tcp", "port"), ("ssl", "tls_port")):
        found = [endpoint(one) for key, one in line.given.items() if key.startswith(f"listeners.{kind}.")]
        if len({port for _, port in found}) > 1:
            raise Refused(f"Warren listens on one port for {kind}, on several addresses")
        if found:
            said[name] = found[0][1]
            if kind == "ssl" and "ssl_cert_login_from" not in line.given:
                said["tls_login_from"] = "distinguished_name"
            places[kind] = {address for address, _ in found}
    if len(places) == 2 and places["tcp"] != places["ssl"]:
        raise Refused("Warren listens with and without TLS on the same addresses")
    hosts = {address for found in places.values() for address in found}
    said["host"] = [EVERYWHERE] if EVERYWHERE in hosts else sorted(hosts)
    return said


def verify(line: Line) -> Said:
    if line.value not in ("verify_peer", "verify_none"):
        raise ValueError
    if line.value == "verify_none":
        return {"tls_verify": "none"}
    needed = flag(line.given.get("ssl_options.fail_if_no_peer_cert", "false"))
    return {"tls_verify": "require" if needed else "peer"}


def certificate_needed(line: Line) -> Said:
    """It says how ``verify`` is meant, which looks at it."""
    flag(line.value)
    return {}


def versions(line: Line) -> Said:
    """The oldest that is named counts; older ones than 1.2 are not spoken."""
    if line.value not in ("tlsv1.3", "tlsv1.2", "tlsv1.1", "tlsv1"):
        raise ValueError
    named = {one for key, one in line.given.items() if key.startswith("ssl_options.versions.")}
    if not named & {"tlsv1.2", "tlsv1.3"}:
        raise Refused("TLS 1.2 and TLS 1.3 are spoken, nothing older")
    return {"tls_min_version": "1.2" if named - {"tlsv1.3"} else "1.3"}


def login_from(line: Line) -> Said:
    if line.value in ("distinguished_name", "common_name"):
        return {"tls_login_from": line.value}
    if line.value != "subject_alternative_name":
        raise ValueError
    return {"tls_login_from": _alternative(line.given.get("ssl_cert_login_san_type", "dns"))}


def san_type(line: Line) -> Said:
    """It says which one ``login_from`` means, which looks at it."""
    _alternative(line.value)
    return {}


def _alternative(kind: str) -> str:
    if kind == "other_name":
        raise Refused("the user is never an alternative name of the type other_name")
    if kind not in ALTERNATIVE:
        raise ValueError
    return kind


def mechanisms(line: Line) -> Said:
    """All of them: what is not named is not offered."""
    listed = [one for key, one in line.given.items() if key.startswith("auth_mechanisms.")]
    if line.value not in MECHANISMS:
        raise Refused("only PLAIN, AMQPLAIN and EXTERNAL are spoken")
    return {"auth_mechanisms": listed}


def loopback(line: Line) -> Said:
    if line.parts == ["loopback_users"] and line.value != "none":
        raise ValueError
    users = {"guest": "loopback_users" not in line.given}
    for key, value in line.given.items():
        if key.startswith("loopback_users."):
            users[key.removeprefix("loopback_users.").replace("\\.", ".")] = flag(value)
    return {"loopback_users": [user for user, kept in users.items() if kept]}


def log_file(line: Line) -> Said:
    if line.value in FLAGS:
        if FLAGS[line.value]:
            raise ValueError
        return {}
    folder = line.given.get("log.dir", "")
    return {"log_file": line.value if line.value.startswith("/") or not folder else f"{folder}/{line.value}"}


def log_folder(line: Line) -> Said:
    if "log.file" not in line.given:
        raise NoMeaning("the log goes to standard error unless log.file names a file")
    return {}


def administrator(line: Line) -> Said:
    if flag(line.value) != (line.parts[1] == "administrator"):
        raise Refused("the default user is an administrator; import definitions for others")
    return {}


def https_port(line: Line) -> Said:
    """RabbitMQ then has no HTTP without TLS unless that is asked for too."""
    said: Said = {"https_port": int(line.value)}
    if not {"management.tcp.port", "management.listener.port"} & set(line.given):
        said["http_port"] = "off"
    return said


def per_object(line: Line) -> Said:
    return {"metrics_per_object": "on" if flag(line.value) else "off"}


def origins(line: Line) -> Said:
    listed = [one for key, one in line.given.items() if key.startswith("management.cors.allow_origins.")]
    return {"http_origins": listed}


# --- rows


def becomes(pattern: str, name: str, convert: Callable[[str], object] = str, allowed: str = "") -> Key:
    """The value of a setting."""
    meaning: Callable[[Line], Said] = lambda line: {name: convert(line.value)}  # noqa: E731
    return Key(pattern, f"`{name}`", meaning, allowed) if allowed else Key(pattern, f"`{name}`", meaning)


def idle(pattern: str, reason: str) -> Key:
    """No meaning here."""

    def meaning(_: Line) -> Said:
        raise NoMeaning(reason)

    return Key(pattern, reason, meaning)


def just(pattern: str, values: str, reason: str) -> Key:
    """Some values are what Warren does anyway; others cannot be had."""
    allowed = values.split()

    def meaning(line: Line) -> Said:
        if line.value not in allowed:
            raise Refused(reason)
        return {}

    shown = f"{', '.join(f'`{one}`' for one in allowed)} only: {reason}" if allowed else f"refused: {reason}"
    return Key(pattern, shown, meaning)


CLUSTER = "there is one broker, no cluster"
ERLANG = "there is no Erlang here"
RAFT = "quorum queues are kept in Warren's own log"
PLUGIN = "of a plugin that is not here"
TUNING = "there is nothing to tune here"
OPENSSL = "Python's defaults hold, OpenSSL's ciphers"
NO_PASSWORD = "a key is read without a password"
VERSIONS = "tlsv1.3 or tlsv1.2"
LOG = "there is one log: `log_file`, `log_level`, `log_format`"
STATISTICS = "figures are always counted"
HEADERS = "the headers of answers are what they are"
UNCHANGED = "what is unchanged changes nothing"
DEFINITIONS = "definitions are loaded from a file or folder"
OWN_USERS = "users are Warren's own"
PASSWORD = "HTTP asks for user and password"
ENDPOINT = "PORT or ADDRESS:PORT"
NAMED = "none; a port has a name in its key, as listeners.tcp.default = 5672"
ACCEPT = "rabbit_credential_validator_accept_everything"
A_FLAG = "true or false"

KEYS: tuple[Key, ...] = (
    Key("listeners.tcp", "`none` is refused", listener, NAMED),
    Key("listeners.tcp.$name", "`host`, `port`", listener, ENDPOINT),
    Key("listeners.ssl", "`none` is the default", listener, NAMED),
    Key("listeners.ssl.$name", "`host`, `tls_port`", listener, ENDPOINT),
    becomes("ssl_options.certfile", "tls_cert"),
    becomes("ssl_options.keyfile", "tls_key"),
    becomes("ssl_options.cacertfile", "tls_ca"),
    Key("ssl_options.verify", "`tls_verify`", verify, "verify_peer or verify_none"),
    Key("ssl_options.fail_if_no_peer_cert", "`tls_verify`", certificate_needed, A_FLAG),
    just("ssl_options", "none", "its parts have keys of their own, as ssl_options.certfile"),
    Key("ssl_options.versions.$version", "`tls_min_version`", versions, VERSIONS),
    just("ssl_options.crl_check", "false", "lists of revoked certificates are not looked at"),
    just("ssl_options.password", "", NO_PASSWORD),
    idle("ssl_options.*", OPENSSL),
    idle("ssl_allow_poodle_attack", OPENSSL),
    idle("ssl_handshake_timeout", "`handshake_timeout` counts for TLS as well"),
    Key(
        "ssl_cert_login_from",
        "`tls_login_from`",
        login_from,
        "distinguished_name, common_name, subject_alternative_name",
    ),
    Key("ssl_cert_login_san_type", "`tls_login_from`", san_type, "dns, ip, email or uri"),
    just("ssl_cert_login_san_index", "0", "the first alternative name of that type is the user"),
    becomes("default_user", "default_user"),
    becomes("default_pass", "default_pass"),
    becomes("default_vhost", "default_vhost"),
    just("default_permissions.$kind", ".*", "the default user may do everything"),
    Key("default_user_tags.$tag", "`administrator` only", administrator, A_FLAG),
    Key("loopback_users", "`loopback_users`", loopback, "none"),
    Key("loopback_users.$user", "`loopback_users`", loopback, A_FLAG),
    becomes("heartbeat", "heartbeat"),
    becomes("frame_max", "frame_max"),
    becomes("channel_max", "channel_max"),
    becomes("connection_max", "connection_max", unlimited, "a number or infinity"),
    becomes("max_message_size", "max_message_size"),
    becomes("handshake_timeout", "handshake_timeout", milliseconds, "milliseconds"),
    becomes("consumer_timeout", "consumer_timeout", milliseconds, "milliseconds, or false"),
    becomes("vm_memory_high_watermark.relative", "memory_high_watermark", float, "a share such as 0.4"),
    becomes("vm_memory_high_watermark.absolute", "memory_high_watermark"),
    becomes("disk_free_limit.relative", "disk_free_limit", of_memory, "a share of the memory such as 1.0"),
    becomes("disk_free_limit.absolute", "disk_free_limit"),
    becomes("load_definitions", "load_definitions"),
    becomes("management.load_definitions", "load_definitions"),
    becomes("definitions.local.path", "load_definitions"),
    just("definitions.import_backend", "local_filesystem local", DEFINITIONS),
    idle("definitions.skip_if_unchanged", UNCHANGED),
    idle("definitions.hashing.algorithm", UNCHANGED),
    just("definitions.*", "", DEFINITIONS),
    becomes("management.tcp.port", "http_port", int, "a port"),
    becomes("management.tcp.ip", "http_host"),
    becomes("management.listener.port", "http_port", int, "a port"),
    becomes("management.listener.ip", "http_host"),
    just("management.listener.ssl", "false", "say it with management.ssl.port and its neighbours"),
    Key("management.ssl.port", "`https_port`", https_port, "a port"),
    becomes("management.ssl.ip", "http_host"),
    becomes("management.ssl.certfile", "https_cert"),
    becomes("management.ssl.keyfile", "https_key"),
    just("management.ssl.verify", "verify_none", PASSWORD),
    just("management.ssl.fail_if_no_peer_cert", "false", PASSWORD),
    just(
        "management.ssl.versions.$version",
        "tlsv1.3 tlsv1.2",
        "say it with ssl_options.versions, which counts for HTTP too",
    ),
    just("management.ssl.password", "", NO_PASSWORD),
    idle("management.ssl.*", OPENSSL),
    Key("management.cors.allow_origins.$name", "`http_origins`", origins),
    just("management.path_prefix", "", "the HTTP API stands at the root; a proxy may add a prefix"),
    just("management.disable_basic_auth", "false", PASSWORD),
    just("management.enable_uaa", "false", PASSWORD),
    *[
        idle(f"management.{one}", STATISTICS)
        for one in ("rates_mode", "disable_stats", "enable_queue_totals", "sample_retention_policies.*")
    ],
    idle("management.uaa_client_id", PASSWORD),
    idle("management.uaa_location", PASSWORD),
    idle("management.http_log_dir", "requests are not logged"),
    idle("management.login_session_timeout", "a session of the console lasts eight hours"),
    *[idle(f"management.{one}", HEADERS) for one in ("cors.max_age", "csp.policy", "hsts.policy", "headers.*")],
    idle("management.*", TUNING),
    idle("management_agent.*", STATISTICS),
    becomes("prometheus.tcp.port", "metrics_port", int, "a port"),
    becomes("prometheus.tcp.ip", "metrics_host"),
    Key("prometheus.return_per_object_metrics", "`metrics_per_object`", per_object, A_FLAG),
    just("prometheus.path", "/metrics", "metrics are at `/metrics`"),
    idle("prometheus.tcp.*", TUNING),
    idle("prometheus.ssl.*", "metrics over TLS are at `/metrics` of the HTTPS port"),
    idle("prometheus.*", STATISTICS),
    idle("collect_statistics", STATISTICS),
    idle("collect_statistics_interval", STATISTICS),
    Key("log.dir", "the folder of `log_file`", log_folder),
    Key("log.file", "`log_file`", log_file, "a path, or false"),
    becomes("log.console.level", "log_level", level),
    becomes("log.file.level", "log_level", level),
    becomes("log.default.level", "log_level", level),
    becomes("log.console.formatter", "log_format", formatted, "plaintext or json"),
    becomes("log.file.formatter", "log_format", formatted, "plaintext or json"),
    idle("log.*", LOG),
    just("auth_backends.$num", "internal rabbit_auth_backend_internal", OWN_USERS),
    just("auth_backends.$num.authn", "internal rabbit_auth_backend_internal", OWN_USERS),
    just("auth_backends.$num.authz", "internal rabbit_auth_backend_internal", OWN_USERS),
    Key("auth_mechanisms.$name", "`auth_mechanisms`", mechanisms, "PLAIN, AMQPLAIN or EXTERNAL"),
    *[idle(f"auth_{one}.*", PLUGIN) for one in ("cache", "http", "ldap", "oauth2")],
    just("proxy_protocol", "false", "the proxy protocol is not spoken"),
    idle("password_hashing_module", "hashes are taken as they are imported"),
    just("credential_validator.validation_backend", ACCEPT, "passwords are not judged"),
    idle("credential_validator.*", "passwords are not judged"),
    idle("cluster_name", "say it once: `warren ctl set_cluster_name`"),
    idle("total_memory_available_override_value", "say `vm_memory_high_watermark.absolute`"),
    *[
        idle(one, TUNING)
        for one in (
            "vhost_restart_strategy",
            "reverse_dns_lookups",
            "initial_frame_max",
            "num_acceptors.*",
            "socket_writer.*",
            "tcp_listen_options.*",
            "default_worker_pool_size",
            "delegate_count",
            "vm_memory_high_watermark_paging_ratio",
            "memory_monitor_interval",
            "vm_memory_calculation_strategy",
            "message_store_shutdown_timeout",
            "queue_index_embed_msgs_below",
            "background_gc_enabled",
            "background_gc_target_interval",
            "classic_queue.*",
            "product.*",
            "motd_file",
        )
    ],
    *[
        idle(one, CLUSTER)
        for one in (
            "cluster_partition_handling.*",
            "cluster_formation.*",
            "cluster_keepalive_interval",
            "mirroring_sync_batch_size",
            "mirroring_sync_max_throughput",
            "queue_master_locator",
            "queue_leader_locator",
            "mnesia_table_loading_retry_timeout",
            "mnesia_table_loading_retry_limit",
            "net_ticktime",
            "distribution.*",
        )
    ],
    idle("raft.*", RAFT),
    idle("quorum_queue.*", RAFT),
    *[idle(one, ERLANG) for one in ("erlang.*", "nodename", "distributed_cookie", "hipe_compile", "sysmon_handler.*")],
    *[
        idle(f"{one}.*", PLUGIN)
        for one in (
            "mqtt",
            "stomp",
            "web_mqtt",
            "web_stomp",
            "stream",
            "amqp1_0",
            "trust_store",
            "event_exchange",
            "aws",
        )
    ],
)
