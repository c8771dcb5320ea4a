"""`rabbitmq.conf`, read as it is: the format, every key of a real RabbitMQ, and what each becomes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warrenmq.server.config import TABLE, Settings, SettingsError, load
from warrenmq.server.memory import memory_total
from warrenmq.server.rabbitmq_conf import lines, row_of
from warrenmq.server.rabbitmq_keys import KEYS

pytestmark = pytest.mark.pure
SCHEMAS = Path("/usr/lib/rabbitmq/lib")
GUIDE = Path(__file__).parents[2] / "docs" / "moving-from-rabbitmq.md"


def settings(tmp_path: Path, text: str, **environment: str) -> Settings:
    file = tmp_path / "rabbitmq.conf"
    file.write_text(text)
    return load({"config": str(file)}, environment)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, text)
    return str(caught.value)


def test_lines_are_read_as_rabbitmqs_own_reader_reads_them() -> None:
    """Recorded from cuttlefish 3.0.1, which comes with RabbitMQ 3.10.8."""
    text = """# comment
  ## another
listeners.tcp.default = 5673
listeners.tcp.local   = 127.0.0.1:5674
default_pass = a#b
default_user = 'quoted # user'
default_vhost = spaced out   # trailing
cluster_name = "dq"
loopback_users.guest = false
loopback_users.a\\.b = true
log.file = /var/log/x.log
listeners.tcp.default = 5675
motd_file=tight
heartbeat = 5 5
"""
    assert lines(text, "rabbitmq.conf") == {
        "listeners.tcp.default": "5675",
        "listeners.tcp.local": "127.0.0.1:5674",
        "default_pass": "a",
        "default_user": "'quoted",
        "default_vhost": "spaced out",
        "cluster_name": '"dq"',
        "loopback_users.guest": "false",
        "loopback_users.a\\.b": "true",
        "log.file": "/var/log/x.log",
        "motd_file": "tight",
        "heartbeat": "5 5",
    }


@pytest.mark.parametrize("line", ["nonsense", "default_user =", "= x", "[{rabbit, []}]."])
def test_a_line_that_rabbitmq_cannot_read_is_refused_by_its_number(line: str, tmp_path: Path) -> None:
    assert "line 2 of" in refusal(tmp_path, f"heartbeat = 5\n{line}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("listeners.tcp.default = 5673", {"port": 5673, "host": ["::"]}),
        ("listeners.tcp.local = 127.0.0.1:5673\nlisteners.tcp.v6 = [::1]:5673", {"host": ["127.0.0.1", "::1"]}),
        ("listeners.tcp.all = 0.0.0.0:5673", {"port": 5673, "host": ["::"]}),
        ("heartbeat = 30", {"heartbeat": 30, "host": ["::"]}),
        (
            "listeners.ssl.default = 5671\nssl_options.certfile = /c\nssl_options.keyfile = /k",
            {"tls_port": 5671, "tls_cert": Path("/c"), "tls_key": Path("/k"), "tls_verify": "none"},
        ),
        (
            "ssl_options.verify = verify_peer\nssl_options.cacertfile = /a",
            {"tls_verify": "peer", "tls_ca": Path("/a")},
        ),
        ("ssl_options.fail_if_no_peer_cert = true\nssl_options.verify = verify_peer", {"tls_verify": "require"}),
        ("default_user = u\ndefault_pass = p\ndefault_vhost = v", {"default_user": "u", "default_vhost": "v"}),
        ("loopback_users = none", {"loopback_users": []}),
        ("loopback_users.guest = false", {"loopback_users": []}),
        ("loopback_users.ann = true", {"loopback_users": ["guest", "ann"]}),
        ("loopback_users = none\nloopback_users.a\\.b = true", {"loopback_users": ["a.b"]}),
        ("frame_max = 8192\nchannel_max = 10\nmax_message_size = 1048576", {"frame_max": 8192, "channel_max": 10}),
        ("connection_max = infinity", {"connection_max": 0}),
        ("handshake_timeout = 2500\nconsumer_timeout = 60000", {"handshake_timeout": 2.5, "consumer_timeout": 60.0}),
        ("consumer_timeout = false", {"consumer_timeout": 0.0}),
        ("vm_memory_high_watermark.relative = 0.6", {"memory_high_watermark": 0.6}),
        ("vm_memory_high_watermark.absolute = 2GB", {"memory_high_watermark": 2 * 1000**3}),
        ("disk_free_limit.absolute = 50MB", {"disk_free_limit": 50_000_000}),
        ("disk_free_limit.relative = 1.0", {"disk_free_limit": memory_total()}),
        (
            "management.tcp.port = 15673\nmanagement.tcp.ip = 127.0.0.1",
            {"http_port": 15673, "http_host": ["127.0.0.1"]},
        ),
        (
            "management.ssl.port = 15671\nmanagement.ssl.certfile = /c\nmanagement.ssl.keyfile = /k",
            {"https_port": 15671, "http_port": None, "https_cert": Path("/c"), "https_key": Path("/k")},
        ),
        (
            "management.ssl.port = 1\nmanagement.tcp.port = 2\nssl_options.certfile = /c\nssl_options.keyfile = /k",
            {"https_port": 1, "http_port": 2},
        ),
        (
            "prometheus.tcp.port = 15692\nprometheus.tcp.ip = 127.0.0.1\nprometheus.return_per_object_metrics = true",
            {"metrics_port": 15692, "metrics_host": ["127.0.0.1"], "metrics_per_object": "on"},
        ),
        ("prometheus.path = /metrics", {"metrics_port": None}),
        ("management.load_definitions = /d.json", {"load_definitions": Path("/d.json")}),
        (
            "definitions.import_backend = local_filesystem\ndefinitions.local.path = /d",
            {"load_definitions": Path("/d")},
        ),
        ("management.cors.allow_origins.1 = https://a.example", {"http_origins": ["https://a.example:443"]}),
        ("log.dir = /var/log\nlog.file = w.log", {"log_file": Path("/var/log/w.log")}),
        ("log.file = false\nlog.console.level = notice", {"log_file": None, "log_level": "info"}),
        ("log.console.formatter = json\nlog.default.level = critical", {"log_format": "json", "log_level": "error"}),
    ],
    ids=lambda value: value.splitlines()[0] if isinstance(value, str) else "",
)
def test_a_key_becomes_its_setting(text: str, expected: dict[str, object], tmp_path: Path) -> None:
    found = settings(tmp_path, text)
    assert {name: getattr(found, name) for name in expected} == expected
    assert not found.unused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("listeners.tcp = none", "always listens without TLS"),
        ("listeners.tcp.a = 5672\nlisteners.tcp.b = 5673", "one port"),
        ("listeners.tcp.a = 127.0.0.1:5672\nlisteners.ssl.a = 5671", "same addresses"),
        ("listeners.tcp.a = many", "allowed: PORT or ADDRESS:PORT"),
        ("auth_backends.1 = ldap", "users are Warren's own"),
        ("proxy_protocol = true", "proxy protocol"),
        ("default_permissions.read = ^a", "may do everything"),
        ("default_user_tags.monitoring = true", "administrator"),
        ("management.ssl.verify = verify_peer", "user and password"),
        ("definitions.import_backend = https", "from a file"),
        ("handshake_timeout = soon", "allowed: milliseconds"),
        ("heartbeat = soon", "heartbeat: 'soon' is not allowed (from heartbeat in "),
        ("defualt_user = x", "did you mean default_user?"),
        ("nothing.like.it = 1", "RabbitMQ 3.10 has no such key"),
        ("log.console.level = none", "cannot be turned off"),
        ("ssl_options.versions.1 = tlsv1.1", "nothing older"),
        ("ssl_options.versions.1 = sslv3", "allowed: tlsv1.3 or tlsv1.2"),
        ("ssl_options.password = secret", "without a password"),
        ("ssl_options.crl_check = peer", "revoked certificates"),
        ("ssl_cert_login_san_type = other_name", "other_name"),
        ("auth_mechanisms.1 = RABBIT-CR-DEMO", "only PLAIN, AMQPLAIN and EXTERNAL"),
        (
            "credential_validator.validation_backend = rabbit_credential_validator_min_password_length",
            "passwords are not judged",
        ),
    ],
)
def test_what_cannot_be_honoured_safely_is_refused_with_the_key_and_the_reason(
    text: str, said: str, tmp_path: Path
) -> None:
    text_of_refusal = refusal(tmp_path, text)
    assert said in text_of_refusal and text.partition(" ")[0] in text_of_refusal
    assert "\n" not in text_of_refusal


def test_what_has_no_meaning_here_is_named_with_its_reason_and_does_not_stop_the_start(tmp_path: Path) -> None:
    """As the operator for Kubernetes writes it."""
    found = settings(
        tmp_path,
        "queue_master_locator = min-masters\ndisk_free_limit.absolute = 2GB\n"
        "cluster_partition_handling = pause_minority\ncluster_formation.peer_discovery_backend = k8s\n"
        "mqtt.vhost = /\n",
    )
    assert set(found.unused) == {
        "queue_master_locator",
        "cluster_partition_handling",
        "cluster_formation.peer_discovery_backend",
        "mqtt.vhost",
    }
    assert found.unused["mqtt.vhost"] == "of a plugin that is not here"


def test_variables_win_over_it_and_its_own_variable_names_it(tmp_path: Path) -> None:
    assert settings(tmp_path, "heartbeat = 5\ndefault_user = u", WARREN_HEARTBEAT="7").heartbeat == 7
    named = {"RABBITMQ_CONFIG_FILE": str(tmp_path / "rabbitmq")}  # as RabbitMQ takes it: with or without the ending
    assert load({}, named).default_user == "u"
    assert load({}, {"RABBITMQ_CONFIG_FILE": str(tmp_path / "rabbitmq.conf")}).default_user == "u"


def test_every_key_of_a_real_rabbitmq_has_a_row() -> None:
    schemas = sorted(SCHEMAS.glob("*/plugins/*/priv/**/*.schema"))
    if not schemas:
        pytest.skip("needs rabbitmq-server (Debian's package), whose keys are compared")
    keys = {
        key
        for file in schemas
        for key in re.findall(r'^\s*\{mapping,\s*"([^"]+)"', file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(keys) > 300
    missing = [key for key in sorted(keys) if row_of(key.replace("$", "")) is None]
    assert not missing


def test_the_table_names_only_settings_that_exist_and_stands_in_the_guide() -> None:
    text = GUIDE.read_text()
    for row in KEYS:
        for name in re.findall(r"^`(\w+)`(?:, `(\w+)`)?$", row.shown):
            assert {one for one in name if one} <= set(TABLE), row
        assert f"| `{row.pattern}` | {row.shown} |" in text, f"docs/moving-from-rabbitmq.md lacks: {row.pattern}"


# -- one case for every row -------------------------------------------------------------------------------------------

#: of each row that becomes a setting, the lines that have to stand beside it, and a line of it
HONOURED: dict[str, tuple[str, str]] = {
    "listeners.tcp.$name": ("", "listeners.tcp.default = 5673"),
    "listeners.ssl.$name": ("ssl_options.certfile = /c\nssl_options.keyfile = /k", "listeners.ssl.default = 5671"),
    "ssl_options.certfile": ("", "ssl_options.certfile = /c"),
    "ssl_options.keyfile": ("", "ssl_options.keyfile = /k"),
    "ssl_options.cacertfile": ("", "ssl_options.cacertfile = /a"),
    "ssl_options.verify": ("", "ssl_options.verify = verify_peer"),
    "ssl_options.fail_if_no_peer_cert": (
        "ssl_options.verify = verify_peer",
        "ssl_options.fail_if_no_peer_cert = true",
    ),
    "ssl_options.versions.$version": ("", "ssl_options.versions.1 = tlsv1.3"),
    "ssl_cert_login_from": ("", "ssl_cert_login_from = distinguished_name"),
    "ssl_cert_login_san_type": ("ssl_cert_login_from = subject_alternative_name", "ssl_cert_login_san_type = email"),
    "auth_mechanisms.$name": ("", "auth_mechanisms.1 = PLAIN"),
    "handshake_timeout": ("", "handshake_timeout = 2500"),
    "heartbeat": ("", "heartbeat = 30"),
    "frame_max": ("", "frame_max = 8192"),
    "channel_max": ("", "channel_max = 10"),
    "connection_max": ("", "connection_max = 7"),
    "max_message_size": ("", "max_message_size = 1048576"),
    "consumer_timeout": ("", "consumer_timeout = 60000"),
    "default_user": ("", "default_user = u"),
    "default_pass": ("", "default_pass = p"),
    "default_vhost": ("", "default_vhost = v"),
    "loopback_users": ("", "loopback_users = none"),
    "loopback_users.$user": ("", "loopback_users.ann = true"),
    "load_definitions": ("", "load_definitions = /d.json"),
    "management.load_definitions": ("", "management.load_definitions = /d.json"),
    "definitions.local.path": ("", "definitions.local.path = /d"),
    "vm_memory_high_watermark.relative": ("", "vm_memory_high_watermark.relative = 0.6"),
    "vm_memory_high_watermark.absolute": ("", "vm_memory_high_watermark.absolute = 2GB"),
    "disk_free_limit.relative": ("", "disk_free_limit.relative = 1.0"),
    "disk_free_limit.absolute": ("", "disk_free_limit.absolute = 51MB"),
    "management.tcp.port": ("", "management.tcp.port = 15673"),
    "management.tcp.ip": ("", "management.tcp.ip = 127.0.0.1"),
    "management.listener.port": ("", "management.listener.port = 15673"),
    "management.listener.ip": ("", "management.listener.ip = 127.0.0.1"),
    "management.ssl.port": ("ssl_options.certfile = /c\nssl_options.keyfile = /k", "management.ssl.port = 15671"),
    "management.ssl.ip": ("", "management.ssl.ip = 127.0.0.1"),
    "management.ssl.certfile": ("management.ssl.keyfile = /k", "management.ssl.certfile = /c"),
    "management.ssl.keyfile": ("management.ssl.certfile = /c", "management.ssl.keyfile = /k"),
    "management.cors.allow_origins.$name": ("", "management.cors.allow_origins.1 = https://a.example"),
    "prometheus.tcp.port": ("", "prometheus.tcp.port = 15692"),
    "prometheus.tcp.ip": ("", "prometheus.tcp.ip = 127.0.0.1"),
    "prometheus.return_per_object_metrics": ("", "prometheus.return_per_object_metrics = true"),
    "log.dir": ("log.file = w.log", "log.dir = /var/log"),
    "log.file": ("", "log.file = w.log"),
    "log.file.level": ("", "log.file.level = debug"),
    "log.console.level": ("", "log.console.level = debug"),
    "log.default.level": ("", "log.default.level = debug"),
    "log.file.formatter": ("", "log.file.formatter = json"),
    "log.console.formatter": ("", "log.console.formatter = json"),
}
REST = [row.pattern for row in KEYS if row.pattern not in HONOURED]


def read_or_refused(tmp_path: Path, text: str) -> Settings | str:
    try:
        return settings(tmp_path, text)
    except SettingsError as refused:
        return str(refused)


def test_every_row_that_names_a_setting_alone_is_honoured() -> None:
    alone = {
        row.pattern for row in KEYS if set(re.findall(r"`(\w+)`", row.shown)) & set(TABLE) and "only" not in row.shown
    }
    counted_with_another = {"ssl_handshake_timeout", "log.*"}
    assert alone - counted_with_another == set(HONOURED)


@pytest.mark.parametrize("pattern", HONOURED)
def test_a_key_that_is_honoured_changes_its_setting(pattern: str, tmp_path: Path) -> None:
    """What the setting does is seen from outside in test_every_setting.py."""
    beside, line = HONOURED[pattern]
    row = row_of(line.partition(" = ")[0])
    assert row is not None and row.pattern == pattern
    alone = read_or_refused(tmp_path, beside)
    before = settings(tmp_path, "") if isinstance(alone, str) else alone
    after = settings(tmp_path, f"{beside}\n{line}\n")
    changed = {name for name in TABLE if getattr(before, name) != getattr(after, name)}
    assert changed & set(re.findall(r"`(\w+)`", row.shown)), (changed, row.shown)
    assert not after.unused


@pytest.mark.parametrize("pattern", REST)
def test_any_other_key_is_named_once_with_the_reason_or_refused(pattern: str, tmp_path: Path) -> None:
    key = re.sub(r"\*$", "any", pattern.replace("$num", "1")).replace("$", "")
    row = row_of(key)
    assert row is not None and row.pattern == pattern
    empty = settings(tmp_path, "")
    for value in ("x", "true", "1"):
        found = read_or_refused(tmp_path, f"{key} = {value}\n")
        if isinstance(found, str):
            assert found.startswith(key) and "\n" not in found
            assert "only" in row.shown or "refused" in row.shown or row.shown == "`none` is the default"
        else:
            assert found.unused == {key: row.shown}
            assert {name for name in TABLE if getattr(found, name) != getattr(empty, name)} == set()
