"""Settings in environment variables: ours, those of RabbitMQ's image, and what an orchestrator puts there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warrenmq
from warrenmq.server.config import TABLE, Settings, SettingsError, load
from warrenmq.server.environment import OTHER_VARIABLES, variable

pytestmark = pytest.mark.pure

SERVICE_LINKS = {
    "WARREN_SERVICE_HOST": "10.0.0.7",
    "WARREN_SERVICE_PORT": "5672",
    "WARREN_SERVICE_PORT_AMQP": "5672",
    "WARREN_SERVICE_PORT_HTTP_METRICS": "15672",
    "WARREN_PORT": "tcp://10.0.0.7:5672",
    "WARREN_PORT_5672_TCP": "tcp://10.0.0.7:5672",
    "WARREN_PORT_5672_TCP_PROTO": "tcp",
    "WARREN_PORT_5672_TCP_PORT": "5672",
    "WARREN_PORT_5672_TCP_ADDR": "10.0.0.7",
    "WARREN_PORT_53_UDP_ADDR": "10.0.0.7",
}


def refusal(environment: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        load({}, environment)
    return str(caught.value)


@pytest.mark.parametrize("service", ["WARREN", "WARREN_HTTP", "WARREN_TLS", "WARREN_HEADLESS_0"])
def test_what_kubernetes_sets_for_a_service_called_warren_is_no_setting(service: str) -> None:
    """Also that of a Service `warren-http`, one of whose variables is called as a setting is."""
    links = {name.replace("WARREN", service, 1): value for name, value in SERVICE_LINKS.items()}
    assert load({}, links) == Settings()


def test_a_port_that_somebody_set_beside_them_counts() -> None:
    links = {name: value for name, value in SERVICE_LINKS.items() if name != "WARREN_PORT"}
    assert load({}, {**links, "WARREN_PORT": "5673"}).port == 5673


@pytest.mark.parametrize(
    "variable", ["WARREN_SERVICE", "WARREN_PORT_5672", "WARREN_PROT", "WARREN_SERVICES_HOST", "WARREN_LOG_FILE_FILE"]
)
def test_what_only_resembles_them_is_refused_as_ever(variable: str) -> None:
    assert variable in refusal({variable: "10.0.0.7"})


def test_a_port_with_another_value_is_refused_as_a_value() -> None:
    assert "whole number" in refusal({"WARREN_PORT": "tcp//10.0.0.7:5672"})


def test_the_variables_of_rabbitmqs_image_count_unless_ours_are_there() -> None:
    theirs = {"RABBITMQ_DEFAULT_USER": "u", "RABBITMQ_DEFAULT_PASS": "p", "RABBITMQ_DEFAULT_VHOST": "v"}
    settings = load({}, {**theirs, "RABBITMQ_NODENAME": "rabbit@somewhere"})
    assert (settings.default_user, settings.default_pass, settings.default_vhost) == ("u", "p", "v")
    settings = load({}, {**theirs, "WARREN_DEFAULT_USER": "ours"})
    assert (settings.default_user, settings.default_pass) == ("ours", "p")


def test_an_empty_variable_of_rabbitmqs_image_is_as_good_as_none() -> None:
    assert load({}, {"RABBITMQ_DEFAULT_USER": "", "RABBITMQ_DEFAULT_PASS": ""}) == Settings()


@pytest.mark.parametrize("prefix", ["WARREN", "RABBITMQ"])
@pytest.mark.parametrize("name", ["default_user", "default_pass", "default_vhost"])
def test_a_secret_may_stand_in_a_file(prefix: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3 cret\n")
    variable = f"{prefix}_{name.upper()}"
    assert getattr(load({}, {f"{variable}_FILE": str(file)}), name) == "s3 cret"
    assert f"{variable}_FILE" in refusal({f"{variable}_FILE": str(tmp_path / "missing")})
    assert "both set" in refusal({f"{variable}_FILE": str(file), variable: "x"})


def test_a_secret_that_is_refused_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("\n")
    assert refusal({"WARREN_DEFAULT_PASS_FILE": str(file)}) == (
        "default_pass: a value is not allowed (from WARREN_DEFAULT_PASS_FILE); allowed: a text that is not empty"
    )
    file.write_bytes(b"\xff")
    assert "UTF-8" in refusal({"WARREN_DEFAULT_PASS_FILE": str(file)})


READ = re.compile(r"[\"'](WARREN_[A-Z][A-Z_]*[A-Z])[\"']")
SOURCE = Path(warrenmq.__file__).parent
REPOSITORY = Path(__file__).parents[2]


def test_every_variable_that_anything_reads_is_a_setting_or_one_that_the_broker_passes_over() -> None:
    files = [*SOURCE.rglob("*.py"), REPOSITORY / "setup.py", *(REPOSITORY / "scripts").glob("*.py")]
    read = {name for path in files for name in READ.findall(path.read_text())}
    assert {"WARREN_URL", "WARREN_PURE", "WARREN_OPT_LEVEL"} <= read
    settings = {variable(name) for name in TABLE}
    assert read - settings - OTHER_VARIABLES == set()
    assert load({}, dict.fromkeys(OTHER_VARIABLES - {"WARREN_CONFIG"}, "x")) == Settings()


def test_every_variable_that_is_no_setting_is_explained() -> None:
    pages = (REPOSITORY / "docs" / "configuration.md").read_text()
    assert sorted(name for name in OTHER_VARIABLES if f"`{name}" not in pages) == []
