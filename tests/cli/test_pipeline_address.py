"""A Spark job finds its broker as every command does: --url, WARREN_URL, a saved context; what is said apart counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tests.cli.conftest import Run
from warrenmq.cli.pipeline.job import FromBroker, ToBroker
from warrenmq.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("WARREN_URL", "WARREN_HTTP_URL"):
        monkeypatch.delenv(name, raising=False)


def where(broker: Broker, **more: str) -> dict[str, str]:
    http_port = broker.http_url.rpartition(":")[2]
    found = {"host": "127.0.0.1", "port": str(broker.port), "virtualHost": "/"}
    return {**found, "httpHost": "127.0.0.1", "httpPort": http_port, "username": "guest", "password": "guest", **more}


def test_url_variable_and_context_all_lead_to_the_broker_and_its_http_port(
    broker: Broker, warren: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FromBroker(broker.url).options() == where(broker)
    assert warren("context", "save", "here", broker.url)[0] == 0
    assert FromBroker("here").options() == where(broker)
    monkeypatch.setenv("WARREN_URL", "here")
    assert FromBroker().options() == where(broker)
    monkeypatch.setenv("WARREN_URL", broker.url)
    assert FromBroker().options() == where(broker)
    monkeypatch.delenv("WARREN_URL")
    assert FromBroker().options() == {}  # the format's own defaults
    assert warren("context", "use", "here")[0] == 0
    assert FromBroker().options() == where(broker)


def test_what_is_said_apart_counts_over_the_address(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_URL", broker.url)
    said = FromBroker(http_port=1, password_env="PASSWORD", option=["virtualHost=shop"]).options()
    wanted = where(broker, httpPort="1", passwordEnv="PASSWORD", virtualHost="shop")
    assert said == {name: value for name, value in wanted.items() if name not in ("password", "httpHost")}
    assert FromBroker(host="elsewhere").options() == {"host": "elsewhere"}
    assert FromBroker(option=["url=amqp://elsewhere"]).options() == {"url": "amqp://elsewhere"}


def test_a_job_that_asks_nothing_over_http_asks_no_broker_where_that_is() -> None:
    said = ToBroker("amqps://u:p%20w@[::1]:1/a%2Fb").options()
    assert said == {
        "host": "[::1]",
        "port": "1",
        "virtualHost": "a/b",
        "username": "u",
        "password": "p w",
        "tls": "true",
    }


def test_several_hosts_go_to_the_format_as_they_are() -> None:
    url = "amqp://u@a:5672,b:5673/v"
    assert FromBroker(url).options() == {"url": url}


@pytest.mark.parametrize(
    ("url", "status", "said"),
    [
        ("amqp://127.0.0.1:1/", 3, "no broker answers at 127.0.0.1:1"),
        ("nowhere", 2, "no context 'nowhere'"),
        ("http://127.0.0.1:15672", 2, "this command speaks AMQP"),
        ("amqp://h:99999/", 2, "is no address"),
    ],
)
def test_what_is_wrong_with_an_address_is_one_line_before_spark_starts(
    url: str, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        FromBroker(url).options()
    told = capsys.readouterr()
    assert ended.value.exit_code == status and told.out == ""
    assert told.err.startswith("warren pipeline: ") and said in told.err and len(told.err.splitlines()) == 1
