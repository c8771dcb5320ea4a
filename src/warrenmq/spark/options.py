"""The options of format("amqp"): their names, their types, and where secrets come from.

Duty: turn Spark's string options into one checked, immutable record. An unknown option is an error that lists the
known ones; so is a value that does not parse. A password is best given by name (``passwordEnv``, ``passwordFile``), so
that it is read where it is needed and travels nowhere; ``password`` and a password inside ``url`` are accepted because
Spark redacts both in plans and neither reaches offsets or logs (``tests/spark/test_secrets.py`` looks for it there).

Not here: the forms of an address (``addresses.py``), getting the secret (``secret.py``), connecting (``connect.py``),
and what the numbers mean to a reader or writer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from warrenmq.spark.addresses import Address, Addresses, listed, parse_list, parse_url
from warrenmq.spark.names import Name, names_of
from warrenmq.spark.names import OptionError as OptionError
from warrenmq.spark.positions import Positions, everywhere, offsets, times

CONNECTION = (
    "url",
    "host",
    "port",
    "virtualHost",
    "username",
    "password",
    "passwordEnv",
    "passwordFile",
    "tokenFile",
    "tokenCommand",
    "tokenRefresh",
    "tls",
    "tlsCaFile",
    "tlsCertFile",
    "tlsKeyFile",
    "tlsVerify",
    "tlsServerName",
    "heartbeat",
    "connectTimeout",
    "patience",
    "retries",
    "httpHost",
    "httpPort",
    "httpTls",
)
READ = (
    "queue",
    "stream",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "timestampTolerance",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxRowsPerSecond",
    "minPartitions",
    "failOnDataLoss",
    "leases",
    "leaseTtl",
    "leaseColumns",
    "prefetchCount",
    "badRecords",
    "badRecordsPath",
)
WRITE = (
    "exchange",
    "routingKey",
    "mandatory",
    "persistent",
    "confirmTimeout",
    "maxOutstanding",
    "maxRowsPerSecondPerTask",
    "unroutable",
    "unroutablePath",
    "batchKey",
    "batchBegan",
    "messageIds",
    "deduplicate",
)
SECRETS = ("password", "passwordEnv", "passwordFile", "tokenFile", "tokenCommand")
# Spark adds these by itself.
SPARK = ("path", "paths", "checkpointLocation", "queryName", "outputMode", "header")


# Spark adds these, and ``option.`` before the name of each option, when it asks for the columns of CREATE TABLE.
TABLE = ("provider", "owner", "location", "external", "is_managed_location", "comment", "collation")
TABLE_OPTION = "option."
NO_TABLE_OPTIONS = (
    "; where this is a table: Spark hands a Python source none of its stored options, so give them with the statement, "
    "as in SELECT … FROM t WITH (…)"
)


@dataclass(frozen=True)
class Options:
    """The options of a source or sink, checked. Their text never shows the secret."""

    hosts: Addresses = (Address("localhost", 5672),)
    virtual_host: str = "/"
    username: str = "guest"
    secret: str | None = field(default=None, repr=False)
    password_env: str | None = None
    password_file: str | None = None
    token_file: str | None = None
    token_command: str | None = field(default=None, repr=False)
    token_refresh: float | None = None
    tls: bool = False
    tls_ca_file: str | None = None
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    tls_verify: bool = True
    tls_server_name: str | None = None
    heartbeat: int = 0
    connect_timeout: float = 10.0
    patience: float = 120.0
    retries: int | None = None
    # reading
    queues: tuple[Name, ...] = ()
    stream: bool = False
    starting: Positions = everywhere("startingOffsets", "earliest")
    ending: Positions | None = None  # where the stream ends
    timestamp_tolerance: float | None = None
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay: float = 900.0
    max_rows_per_second: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    leases: str = "auto"
    lease_columns: bool = False
    lease_ttl_ms: int = 7 * 24 * 3600 * 1000
    http_hosts: Addresses = (Address("localhost", 15672),)
    http_tls: bool = False
    prefetch_count: int = 5000
    bad_records: str = "replace"
    bad_records_path: str | None = None
    # writing
    exchange: str | None = None
    routing_key: str | None = None
    mandatory: bool = True
    persistent: bool = True
    confirm_timeout: float = 60.0
    max_outstanding: int = 20000
    max_rows_per_second_per_task: int | None = None
    unroutable: str = "fail"
    unroutable_path: str | None = None
    batch_key: str | None = None
    batch_began: int | None = None  # ms since 1970
    message_ids: str = "row"
    deduplicate: bool = False
    checkpoint_location: str | None = None  # Spark's, of a streaming query
    given: frozenset[str] = field(default_factory=frozenset)

    @property
    def address(self) -> str:
        return listed(self.hosts)

    @property
    def http_address(self) -> str:
        return listed(self.http_hosts)


def is_sink(options: Mapping[str, str]) -> bool:
    """Are these the options of a write? CREATE TABLE without columns does not say what the table is for."""
    names = {key.lower().removeprefix(TABLE_OPTION) for key in options}
    return "exchange" in names and not names & {"queue", "stream"}


def parse(options: Mapping[str, str], *, writing: bool = False) -> Options:
    """Check the options of a read or a write; every fault is an OptionError of one line."""
    options = _without_table(options)
    known = {name.lower(): name for name in (*CONNECTION, *(WRITE if writing else READ))}
    passing = {name.lower() for name in SPARK}
    # Spark's dictionary may lower-case the keys; messages use the documented spelling.
    given: dict[str, str] = {}
    for key, value in options.items():
        name = known.get(key.lower())
        if name is not None:
            given[name] = str(value)
        elif key.lower() not in passing:
            verb = "write" if writing else "read"
            raise OptionError(
                f"unknown option '{key}' for format amqp; known for {verb}: {', '.join(sorted(known.values()))}"
            )
    checked = _checked(given, writing)
    checkpoint = next((str(value) for key, value in options.items() if key.lower() == "checkpointlocation"), None)
    return replace(checked, checkpoint_location=checkpoint) if writing and checkpoint else checked


def _without_table(options: Mapping[str, str]) -> dict[str, str]:
    """What was said of a table's options, without what Spark itself says of the table."""
    if "provider" not in {key.lower() for key in options}:
        return dict(options)
    prefixed = {key[len(TABLE_OPTION) :]: value for key, value in options.items() if key.startswith(TABLE_OPTION)}
    plain = {
        key: value
        for key, value in options.items()
        if key.lower() not in TABLE and not key.startswith((TABLE_OPTION, "transient_"))
    }
    said = {key.lower() for key in plain}
    return {**{key: value for key, value in prefixed.items() if key.lower() not in said}, **plain}


def _checked(given: dict[str, str], writing: bool) -> Options:
    values: dict[str, object] = {"given": frozenset(given)}
    if "url" in given:
        values.update(parse_url(given["url"]))
        for name in ("host", "port", "virtualHost", "username", "tls"):
            if name in given:
                raise OptionError(f"give either option 'url' or '{name}', not both")
    for name, target in (
        ("virtualHost", "virtual_host"),
        ("username", "username"),
        ("password", "secret"),
        ("passwordEnv", "password_env"),
        ("passwordFile", "password_file"),
        ("tlsCaFile", "tls_ca_file"),
        ("tlsCertFile", "tls_cert_file"),
        ("tlsKeyFile", "tls_key_file"),
        ("exchange", "exchange"),
        ("routingKey", "routing_key"),
        ("unroutablePath", "unroutable_path"),
        ("batchKey", "batch_key"),
        ("badRecordsPath", "bad_records_path"),
        ("tokenFile", "token_file"),
        ("tokenCommand", "token_command"),
        ("tlsServerName", "tls_server_name"),
    ):
        if name in given:
            values[target] = given[name]
    for name, target, least in (
        ("heartbeat", "heartbeat", 0),
        ("retries", "retries", 0),
        ("maxOffsetsPerTrigger", "max_offsets_per_trigger", 1),
        ("maxBytesPerTrigger", "max_bytes_per_trigger", 1),
        ("minOffsetsPerTrigger", "min_offsets_per_trigger", 1),
        ("maxRowsPerSecond", "max_rows_per_second", 1),
        ("maxRowsPerSecondPerTask", "max_rows_per_second_per_task", 1),
        ("minPartitions", "min_partitions", 1),
        ("prefetchCount", "prefetch_count", 1),
        ("maxOutstanding", "max_outstanding", 1),
    ):
        if name in given:
            values[target] = _integer(name, given[name], least)
    for name, target in (
        ("tls", "tls"),
        ("tlsVerify", "tls_verify"),
        ("failOnDataLoss", "fail_on_data_loss"),
        ("leaseColumns", "lease_columns"),
        ("httpTls", "http_tls"),
        ("mandatory", "mandatory"),
        ("persistent", "persistent"),
        ("deduplicate", "deduplicate"),
    ):
        if name in given:
            values[target] = _boolean(name, given[name])
    if "connectTimeout" in given:
        values["connect_timeout"] = duration_ms("connectTimeout", given["connectTimeout"]) / 1000
    if "patience" in given:
        values["patience"] = duration_ms("patience", given["patience"]) / 1000
        if "retries" in given:
            raise OptionError("give either option 'patience' or 'retries', not both")
    if "confirmTimeout" in given:
        values["confirm_timeout"] = duration_ms("confirmTimeout", given["confirmTimeout"]) / 1000
    if "leaseTtl" in given:
        values["lease_ttl_ms"] = duration_ms("leaseTtl", given["leaseTtl"])
    values.update(_addresses(given, values))
    _check_login(given, values)
    values.update(_writing(given) if writing else _reading(given))
    return Options(**values)  # type: ignore[arg-type]


def _addresses(given: dict[str, str], values: dict[str, object]) -> dict[str, object]:
    """The AMQP and the HTTP addresses. HTTP is where AMQP is, unless ``httpHost`` says otherwise."""
    hosts = values.get("hosts")
    if not isinstance(hosts, tuple):
        port = _port(given, "port", 5671 if values.get("tls") else 5672)
        hosts = parse_list("host", given.get("host", "localhost"), port)
    http_port = _port(given, "httpPort", 15672)
    http_hosts = tuple(dict.fromkeys(Address(each.host, http_port) for each in hosts))
    if "httpHost" in given:
        http_hosts = parse_list("httpHost", given["httpHost"], http_port)
    return {"hosts": hosts, "http_hosts": http_hosts}


def _port(given: dict[str, str], name: str, default: int) -> int:
    number = _integer(name, given[name], 1) if name in given else default
    if number > 65535:
        raise OptionError(f"option '{name}' is {number}; a port is at most 65535")
    return number


def _check_login(given: dict[str, str], values: dict[str, object]) -> None:
    """Options that contradict each other, or would be passed over in silence."""
    in_url = "secret" in values and "password" not in given
    if sum(name in given for name in SECRETS) + in_url > 1:
        raise OptionError(f"give only one of the options {', '.join(map(repr, SECRETS))}, or a password in 'url'")
    if "tokenRefresh" in given:
        if not {"tokenFile", "tokenCommand"} & set(given):
            raise OptionError("option 'tokenRefresh' needs option 'tokenFile' or 'tokenCommand'")
        values["token_refresh"] = duration_ms("tokenRefresh", given["tokenRefresh"]) / 1000
    if "tlsKeyFile" in given and "tlsCertFile" not in given:
        raise OptionError("option 'tlsKeyFile' needs option 'tlsCertFile', the certificate that the key belongs to")
    if not values.get("tls") and not values.get("http_tls"):
        for name in ("tlsCaFile", "tlsCertFile", "tlsVerify", "tlsServerName"):
            if name in given:
                raise OptionError(f"option '{name}' is for TLS: give 'tls' or 'httpTls' as true, or a url amqps://…")


def _reading(given: dict[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    if ("queue" in given) == ("stream" in given):
        hint = "" if given else NO_TABLE_OPTIONS
        raise OptionError(f"give exactly one of the options 'queue' and 'stream' (a name, a list or a pattern){hint}")
    kind = "queue" if "queue" in given else "stream"
    values["queues"] = names_of(kind, given[kind])
    values["stream"] = kind == "stream"
    for target in ("starting", "ending"):
        said = [name for name in (f"{target}Offsets", f"{target}Timestamp") if name in given]
        if said and kind == "queue":
            raise OptionError(f"option '{said[0]}' is for streams; a queue has no offsets")
        if len(said) == 2:
            raise OptionError(f"give either option '{said[0]}' or '{said[1]}', not both")
        if said:
            values[target] = (offsets if said[0].endswith("Offsets") else times)(said[0], given[said[0]])
    if "timestampTolerance" in given:
        if kind == "queue":
            raise OptionError("option 'timestampTolerance' is for streams; a queue has no offsets")
        values["timestamp_tolerance"] = duration_ms("timestampTolerance", given["timestampTolerance"]) / 1000
    if "maxTriggerDelay" in given:
        if "minOffsetsPerTrigger" not in given:
            raise OptionError(
                "option 'maxTriggerDelay' needs option 'minOffsetsPerTrigger', which says what to wait for"
            )
        values["max_trigger_delay"] = duration_ms("maxTriggerDelay", given["maxTriggerDelay"]) / 1000
    least, most = given.get("minOffsetsPerTrigger"), given.get("maxOffsetsPerTrigger")
    if least is not None and most is not None and int(least) > int(most):
        raise OptionError(f"option 'minOffsetsPerTrigger' is {least}, more than 'maxOffsetsPerTrigger', {most}")
    leases = given.get("leases", "auto").lower()
    if leases not in ("auto", "true", "false"):
        raise OptionError(f"option 'leases' is '{given['leases']}'; expected auto, true or false")
    values["leases"] = leases
    if given.get("leaseColumns", "").strip().lower() == "true":
        if "stream" in given:
            raise OptionError("option 'leaseColumns' is for queues; a stream has no leases")
        if leases == "false":
            raise OptionError("option 'leaseColumns' is for leased queues, and option 'leases' is false")
    bad = given.get("badRecords", "replace").lower()
    if bad not in ("replace", "column", "table"):
        raise OptionError(f"option 'badRecords' is '{given['badRecords']}'; expected replace, column or table")
    if (bad == "table") != ("badRecordsPath" in given):
        raise OptionError("options 'badRecords' = table and 'badRecordsPath', the folder for the rows, go together")
    values["bad_records"] = bad
    return values


def _writing(given: dict[str, str]) -> dict[str, object]:
    unroutable = given.get("unroutable", "fail").lower()
    if unroutable not in ("fail", "report"):
        raise OptionError(f"option 'unroutable' is '{given['unroutable']}'; expected fail or report")
    if unroutable == "report" and "unroutablePath" not in given:
        raise OptionError("option 'unroutable' = report needs option 'unroutablePath', the folder for the rows")
    ids = given.get("messageIds", "row").lower()
    if ids not in ("row", "content"):
        raise OptionError(f"option 'messageIds' is '{given['messageIds']}'; expected row or content")
    values: dict[str, object] = {"unroutable": unroutable, "message_ids": ids}
    if "batchBegan" in given:
        values["batch_began"] = _moment("batchBegan", given["batchBegan"])
    return values


def _moment(name: str, text: str) -> int:
    """Milliseconds since 1970, or a time as ISO 8601 writes it, in UTC unless it says otherwise."""
    if text.strip().isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise OptionError(
            f"option '{name}' is '{text}'; expected a time such as 2024-05-01T10:00:00Z, or milliseconds since 1970"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def duration_ms(name: str, text: str) -> int:
    """``1500`` (milliseconds), ``1500ms``, ``30s``, ``5m``, ``12h`` or ``7d``."""
    match = re.fullmatch(r"(\d+)\s*(ms|s|m|h|d)?", text.strip())
    if match is None or int(match.group(1)) == 0:
        raise OptionError(f"option '{name}' is '{text}'; expected a duration such as 500ms, 30s, 5m, 12h or 7d")
    unit = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[match.group(2) or "ms"]
    return int(match.group(1)) * unit


def _integer(name: str, text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"option '{name}' is '{text}'; expected a whole number") from None
    if value < least:
        raise OptionError(f"option '{name}' is {value}; expected {least} or more")
    return value


def _boolean(name: str, text: str) -> bool:
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise OptionError(f"option '{name}' is '{text}'; expected true or false")
    return value == "true"
