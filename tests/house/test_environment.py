"""Settings in environment variables: ours, those of RabbitMQ's image, and what an orchestrator puts there."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.server.config import Settings, SettingsError, load

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
