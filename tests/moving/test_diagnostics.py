"""`warren ctl` has the checks of rabbitmq-diagnostics, with its words and exit statuses.

The expected lines were taken from the real tools of RabbitMQ 3.10, with the node's name and ports put in.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.http.conftest import Api, api  # noqa: F401 (a fixture)
from warrenmq.cli.ctl import command as ctl
from warrenmq.testing import Broker

# ruff: noqa: F811

NODE = "warren@localhost"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(api: Api, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one verb quietly; gives (exit status, standard output, standard error)."""
    url = api.broker.http_url.replace("http://", "http://guest:guest@")

    def run(*arguments: str, quiet: bool = True) -> tuple[int, str, str]:
        status = ctl.main([*(["-q"] if quiet else []), *arguments, "--url", url])
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


@pytest.fixture
def disk_alarm(api: Api, run: Run) -> Iterator[None]:
    run("set_disk_free_limit", "1000000GB")
    yield
    run("set_disk_free_limit", "1MB")


WELL = {
    "check_running": (
        "Checking if RabbitMQ is running on node {} ...",
        "RabbitMQ on node {} is fully booted and running",
    ),
    "is_running": ("Asking node {} for its status ...", "RabbitMQ on node {} is fully booted and running"),
    "is_booting": (
        "Asking node {} for its boot status ...",
        "RabbitMQ on node {} is fully booted (check with is_running), stopped or has not started booting yet",
    ),
    "check_alarms": (
        "Asking node {} to report any local resource alarms ...",
        "Node {} reported no alarms, local or clusterwide",
    ),
    "alarms": (
        "Asking node {} to report any known resource alarms ...",
        "Node {} reported no alarms, local or clusterwide",
    ),
    "check_local_alarms": (
        "Asking node {} to report any local resource alarms ...",
        "Node {} reported no local alarms",
    ),
    "check_virtual_hosts": (
        "Checking if all vhosts are running on node {} ...",
        "Node {} reported all vhosts as running",
    ),
    "check_if_node_is_quorum_critical": (
        "Checking if node {} is critical for quorum of any quorum queues ...",
        "Node {} seems to be the only one in a single node cluster, the check does not apply",
    ),
}


@pytest.mark.parametrize("verb", WELL)
def test_a_well_broker_passes_in_rabbitmqs_words(run: Run, verb: str) -> None:
    banner, text = (one.format(NODE) for one in WELL[verb])
    assert run(verb) == (0, f"{text}\n", "")
    assert run(verb, quiet=False) == (0, f"{banner}\n{text}\n", "")


def test_an_alarm_fails_the_checks_with_69(run: Run, disk_alarm: None) -> None:
    text = f"Free disk space alarm on node {NODE}\n"
    assert run("check_local_alarms") == (69, "", f"Error:\n{text}")
    assert run("check_alarms") == (69, "", text)
    assert run("alarms") == (0, text, "")
    assert run("node_health_check")[0] == 69


def test_ports_are_listed_and_connected_to(api: Api, run: Run) -> None:
    amqp, http = api.broker.port, int(api.broker.http_url.rpartition(":")[2])
    ports = ", ".join(str(port) for port in sorted((amqp, http)))
    assert run("check_port_connectivity") == (0, f"Successfully connected to ports {ports} on node {NODE}.\n", "")
    assert f"Interface: 127.0.0.1, port: {amqp}, protocol: amqp, purpose: AMQP 0-9-1\n" in run("listeners")[1]
    assert run("check_port_listener", str(amqp)) == (0, f"A listener for port {amqp} is running on node {NODE}.\n", "")
    assert run("check_port_listener", "1") == (
        69,
        "",
        f"No listener for port 1 is active on node {NODE}. Found listeners that use the following ports: {ports}\n",
    )
    assert run("check_protocol_listener", "amqp")[0] == 0
    assert run("check_protocol_listener", "mqtt") == (
        69,
        "",
        f"Error:\nNo listener for protocol mqtt is active on node {NODE}. Found listeners for the following "
        "protocols: amqp, http\n",
    )


def test_a_broker_that_takes_no_clients_is_not_running(run: Run) -> None:
    assert run("stop_app")[0] == 0
    try:
        status, _, error = run("check_running")
        assert (status, "is not running" in error) == (69, True)
        assert run("check_port_connectivity")[0] == 69
        assert run("await_startup", "-t", "0.1")[0] == 75
    finally:
        assert run("start_app")[0] == 0
    assert run("check_running")[0] == 0


def test_await_startup_waits_for_a_broker_that_is_not_there_yet() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    url = f"http://guest:guest@127.0.0.1:{port}"
    assert ctl.main(["-q", "await_startup", "-t", "0.1", "--url", url]) == 75
    statuses: list[int] = []
    waiting = threading.Thread(target=lambda: statuses.append(ctl.main(["await_startup", "-t", "60", "--url", url])))
    waiting.start()
    with Broker(http_port=port):
        waiting.join(60)
    assert statuses == [0]


def test_eval_says_what_to_use_instead(run: Run) -> None:
    status, _, error = run("eval", "rabbit_amqqueue:list().")
    assert status == 64
    assert "/api/delayed" in error and "close_all_connections" in error


def test_the_version_is_the_one_whose_behaviour_it_shows(run: Run) -> None:
    assert run("server_version")[1].startswith("3.10.")
