"""What `warren serve` can be told, and how it refuses what it cannot use."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.server.config import TABLE, Settings, SettingsError, load

pytestmark = pytest.mark.pure
GIB = 1024**3


def refusal(**values: object) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings(**values)  # type: ignore[arg-type]
    return str(caught.value)


def test_nothing_said_is_the_default_of_every_setting() -> None:
    assert load({}, {}) == Settings()


def test_flags_win_over_variables_and_variables_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text('port = 1\nhttp_port = 2\nheartbeat = 3\nhost = "0.0.0.0"\n')
    settings = load(
        {"config": str(file), "port": "11"}, {"WARREN_PORT": "21", "WARREN_HTTP_PORT": "22", "PATH": "/bin"}
    )
    assert (settings.port, settings.http_port, settings.heartbeat, settings.host) == (11, 22, 3, ["0.0.0.0"])


def test_the_file_may_be_named_by_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text("port = 7\n")
    assert load({}, {"WARREN_CONFIG": str(file)}).port == 7


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("port", "x", "from 0 to 65535"),
        ("port", 65536, "from 0 to 65535"),
        ("port", -1, "from 0 to 65535"),
        ("port", True, "from 0 to 65535"),
        ("max_message_size", 0, "from 1 to 2147483648"),
        ("max_message_size", 2 * GIB + 1, "from 1 to 2147483648"),
        ("max_message_size", "12 parsecs", "64KiB"),
        ("frame_max", 4095, "from 4096"),
        ("tls_verify", "sometimes", "one of none, peer, require"),
        ("log_level", "loud", "one of debug, info, warning, error"),
        ("memory_high_watermark", 1.5, "such as 0.4"),
        ("memory_high_watermark", 0.0, "such as 0.4"),
        ("handshake_timeout", "soon", "seconds"),
        ("handshake_timeout", "nan", "seconds"),
        ("interceptors", [1], "separated by commas"),
        ("host", "", "addresses or host names separated by commas"),
        ("host", "none", "addresses or host names separated by commas"),
        ("host", [], "addresses or host names separated by commas"),
        ("host", "127.0.0.1:5672", "without ports"),
        ("host", "http://localhost", "without ports"),
        ("host", "127.0.0.1,,::1", "separated by commas"),
        ("http_origins", "broker.example.com", "https://broker.example.com"),
        ("http_origins", "https://broker.example.com/api", "https://broker.example.com"),
        ("http_proxies", "proxy.example.com", "such as 10.0.0.0/8"),
        ("http_proxies", "10.0.0.1/8", "such as 10.0.0.0/8"),
        ("http_origins", "*", "https://broker.example.com"),
    ],
)
def test_a_bad_value_is_refused_with_key_value_and_what_is_allowed(name: str, value: object, allowed: str) -> None:
    text = refusal(**{name: value})
    assert text.startswith(f"{name}: ")
    assert str(value) in text
    assert allowed in text
    assert "\n" not in text


def test_a_refused_password_is_not_shown() -> None:
    assert "secret" not in refusal(default_pass=["secret"])


def test_the_refusal_says_where_the_value_came_from(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text("port = 70000\n")
    for flags, environment, source in [
        ({"port": "70000"}, {}, "from --port"),
        ({}, {"WARREN_PORT": "70000"}, "from WARREN_PORT"),
        ({"config": str(file)}, {}, f"in {file}"),
    ]:
        with pytest.raises(SettingsError, match="70000") as caught:
            load(flags, environment)
        assert source in str(caught.value)


def test_an_unknown_key_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text("prot = 5\n")
    with pytest.raises(SettingsError) as caught:
        load({"config": str(file)}, {})
    assert "prot" in str(caught.value) and "did you mean port?" in str(caught.value) and "5" in str(caught.value)
    with pytest.raises(SettingsError, match="did you mean WARREN_PORT"):
        load({}, {"WARREN_PROT": "5"})


def test_an_unreadable_file_and_one_that_is_no_toml_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.toml cannot be read"):
        load({"config": str(tmp_path / "absent.toml")}, {})
    broken = tmp_path / "broken.toml"
    broken.write_text("port: 5672\n")
    with pytest.raises(SettingsError, match=r"broken\.toml is no TOML"):
        load({"config": str(broken)}, {})


@pytest.mark.parametrize(
    ("given", "bytes_"), [("1", 1), ("64KiB", 65536), ("128MB", 128_000_000), ("2GiB", 2 * GIB), ("1.5 kb", 1500)]
)
def test_sizes_take_units(given: str, bytes_: int) -> None:
    assert Settings(max_message_size=given).max_message_size == bytes_  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("localhost", ["localhost"]),
        ("127.0.0.1, ::1", ["127.0.0.1", "::1"]),
        (["127.0.0.1", "::1"],) * 2,
        ("[::1]", ["::1"]),
        ("fe80::1%eth0", ["fe80::1%eth0"]),
        ("::", ["::"]),
    ],
)
def test_the_addresses_to_listen_on_are_a_list(given: object, meant: list[str], tmp_path: Path) -> None:
    assert Settings(host=given).host == meant  # type: ignore[arg-type]
    if isinstance(given, str):
        assert load({"host": given}, {}).host == load({}, {"WARREN_HOST": given}).host == meant
    file = tmp_path / "warren.toml"
    file.write_text(f"host = {given!r}\n")
    assert load({"config": str(file)}, {}).host == meant


def test_the_watermark_is_a_share_or_a_size() -> None:
    assert Settings(memory_high_watermark="0.6").memory_high_watermark == 0.6  # type: ignore[arg-type]
    assert Settings(memory_high_watermark="2GB").memory_high_watermark == 2_000_000_000  # type: ignore[arg-type]


def test_port_zero_asks_for_a_free_http_port_too_unless_one_is_named() -> None:
    assert load({"port": "0"}, {}).http_port == 0
    assert load({"port": "0", "http_port": "15999"}, {}).http_port == 15999


def test_a_tls_port_needs_its_certificate_and_key() -> None:
    assert refusal(tls_port=5671).startswith("tls_cert: ")
    assert refusal(tls_port=5671, tls_cert="c").startswith("tls_key: ")
    assert refusal(tls_port=5671, tls_cert="c", tls_key="k", tls_verify="require").startswith("tls_ca: ")


def test_every_setting_is_documented_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    for one in TABLE.values():
        assert f"| `{one.name}` |" in page, one.name


@pytest.mark.parametrize("name", TABLE)
def test_every_variable_says_what_the_file_would(name: str) -> None:
    """What the setting does is seen from outside in test_every_setting.py, where files say it."""
    one = TABLE[name]
    for value in (
        "17",
        "5",
        "0.5",
        "/x",
        "text",
        "on",
        "off",
        "require",
        "debug",
        "json",
        "none",
        "1MiB",
        "http://a:1",
        "::1",
        "dns",
        "1.3",
        "AMQPLAIN",
    ):
        try:
            meant = one.kind.parse(value)
        except (ValueError, TypeError, OverflowError):
            continue
        if meant == one.default:
            continue
        beside = {"WARREN_TLS_CERT": "/c", "WARREN_TLS_KEY": "/k", "WARREN_TLS_CA": "/a", "WARREN_HTTPS_PORT": "1"}
        if name.startswith("https_"):
            beside |= {"WARREN_HTTPS_CERT": "/c", "WARREN_HTTPS_KEY": "/k"}
        found = load({}, beside | {one.variable: value})
        assert getattr(found, name) == meant != one.default
        assert found.sources[name] == f"from {one.variable}"
        return
    raise AssertionError(f"no value for {name}")
