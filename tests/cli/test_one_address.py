"""Where a command finds its broker: --url, WARREN_URL, a saved context, this machine; and its HTTP port."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.brokers import RunningBroker, rabbitmq  # noqa: F401 (fixture)
from warrenmq.testing import Broker
from warrenmq.wire.methods import method_frame


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


COMMANDS = [
    ["get", "q"],
    ["peek", "q"],
    ["ctl", "list_queues"],
    ["explain", "", "q"],
    ["ledger"],
    ["transfers", "list"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_one_address_serves_commands_of_amqp_and_of_http(warren: Run, broker: Broker, command: list[str]) -> None:
    assert warren("publish", "q", "x", "-u", broker.url)[0] in (0, 1)
    answered = (0, 1, 2)  # whatever it says: the broker was found
    assert warren(*command, WARREN_URL=broker.url)[0] in answered
    assert warren(*command, *(["--url"] if command[0] == "ctl" else ["-u"]), broker.url)[0] in answered
    assert warren("context", "save", "here", broker.url, "--use")[0] == 0
    assert warren(*command)[0] in answered
    assert warren(*command, "--url", "here")[0] in answered


def test_without_any_address_the_broker_of_this_machine_is_meant(warren: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = "amqp://guest:guest@127.0.0.1:1/"
    monkeypatch.setattr("warrenmq.cli._address.DEFAULT_URL", nobody)
    for command in COMMANDS:
        status, out, err = warren(*command)
        assert (status, out) == (69 if command[0] == "ctl" else 3, "") and "127.0.0.1:1" in err


def test_what_is_given_wins_over_the_variable_and_the_variable_over_the_context(warren: Run, broker: Broker) -> None:
    nobody = "amqp://guest:guest@127.0.0.1:1/"
    assert warren("context", "save", "dead", nobody, "--use")[0] == 0
    assert warren("ledger")[0] == 3
    assert warren("ledger", WARREN_URL=broker.url)[0] == 0
    assert warren("ledger", "-u", broker.url, WARREN_URL=nobody)[0] == 0
    assert warren("ledger", WARREN_URL=nobody, WARREN_HTTP_URL=with_login(broker.http_url))[0] == 0


def with_login(url: str) -> str:
    return url.replace("://", "://guest:guest@")


def test_the_vhost_of_the_address_is_the_vhost_of_the_command(warren: Run, broker: Broker) -> None:
    url = with_login(broker.http_url)
    assert warren("ctl", "-q", "add_vhost", "shop", "--url", url)[0] == 0
    assert warren("ctl", "-q", "set_permissions", "-p", "shop", "guest", ".*", ".*", ".*", "--url", url)[0] == 0
    shop = broker.url.rstrip("/").removesuffix("/%2F") + "/shop"
    assert "in vhost 'shop'" in warren("get", "q", "-u", shop)[2]
    assert "in vhost '/'" in warren("get", "q", "-u", shop, "-p", "/")[2]
    assert warren("transfers", "list", "-u", shop)[0] == 0
    assert warren("peek", "q", "-u", shop, "-p", "gone")[0] == 2


def test_rabbitmq_is_found_where_it_is_by_default_or_is_given(warren: Run, rabbitmq: RunningBroker) -> None:  # noqa: F811
    """It says nothing of its HTTP port: ten thousand above, which this private one is not."""
    status, _, err = warren("explain", "", "q", "-u", rabbitmq.url)
    assert status == 3 and f":{rabbitmq.port + 10000}" in err
    given = {"WARREN_URL": rabbitmq.url, "WARREN_HTTP_URL": with_login(rabbitmq.http_url)}
    assert warren("explain", "", "no-such-queue", **given)[0] == 1
    assert warren("context", "save", "old", rabbitmq.url, "--http-url", given["WARREN_HTTP_URL"])[0] == 0
    assert warren("explain", "", "no-such-queue", "-u", "old")[0] == 1


def test_a_broker_says_its_http_port_before_any_login(broker: Broker) -> None:
    from warrenmq.cli._address import http_url

    assert http_url(broker.url.replace("guest:guest", "no%40body:p%3Aw")) == broker.http_url.replace(
        "://", "://no%40body:p%3Aw@"
    )


def test_a_broker_without_an_http_port_is_named_with_the_cure(warren: Run) -> None:
    start = method_frame(
        0,
        "connection.start",
        version_minor=9,
        server_properties={"warren_version": "1"},
        mechanisms=b"PLAIN",
        locales=b"en_US",
    )
    status, _, err = asking_somebody_who_says(start, warren)
    assert status == 2 and "has no HTTP port" in err and "WARREN_HTTP_URL" in err


BAD = {
    "http://x:y": 2,
    "amqp://h:99999/": 2,
    "ftp://h/": 2,
    "amqp://": 2,
    "nobody-saved-this": 2,
    "://": 2,
    "amqp://guest:guest@127.0.0.1:1/": 3,
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("address", BAD)
def test_an_address_that_is_wrong_is_one_line_without_its_password(
    warren: Run, command: list[str], address: str
) -> None:
    status, out, err = warren(*command, "--url", address)
    assert out == "" and "Traceback" not in err and "Errno" not in err.splitlines()[0][:10]
    if command[0] == "ctl":
        assert status == (69 if BAD[address] == 3 else 64) and len(err.splitlines()) == 2
    else:
        assert status == BAD[address] and len(err.splitlines()) == 1 and err.startswith("warren ")
    secret = "s3cret"
    assert secret not in warren(*command, "--url", f"ftp://user:{secret}@host")[2]


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"AMQP\x00\x00\x09\x01", b"\x01" * 300])
def test_what_does_not_speak_amqp_is_said_to_be_so(warren: Run, said: bytes) -> None:
    status, _, err = asking_somebody_who_says(said, warren)
    assert status == 3 and "does not speak AMQP 0-9-1" in err and len(err.splitlines()) == 1


def asking_somebody_who_says(said: bytes, warren: Run) -> tuple[int, str, str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connected, _ = listener.accept()
            with connected:
                connected.recv(8)
                connected.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        answered = warren("ledger", "-u", f"amqp://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()
    return answered


# --- contexts


def test_contexts_are_saved_listed_used_and_forgotten_and_their_file_is_private(warren: Run, tmp_path: Path) -> None:
    assert warren("context", "save", "one", "amqp://u:s3cret@h1/") == (0, "saved one: amqp://u@h1/\n", "")
    assert warren("context", "save", "two", "amqps://u:s3cret@h2/v") == (0, "saved two: amqps://u@h2/v\n", "")
    assert warren("context", "use", "two") == (0, "using two: amqps://u@h2/v\n", "")
    status, out, _ = warren("context", "list")
    assert status == 0 and "s3cret" not in out
    assert out.splitlines()[1:] == ["one\tamqp://u@h1/\t\t", "two\tamqps://u@h2/v\t\t*"]
    assert [one["in_use"] for one in json.loads(warren("context", "list", "--json")[1])] == [False, True]
    file = tmp_path / "warren" / "contexts.json"
    assert os.stat(file).st_mode & 0o777 == 0o600 and "s3cret" in file.read_text()
    assert warren("context", "forget", "two") == (0, "forgot two\n", "")
    assert warren("context", "list")[1].splitlines()[1:] == ["one\tamqp://u@h1/\t\t"]
    assert os.listdir(file.parent) == ["contexts.json"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["use", "prud"], r"no context 'prud' \(did you mean prod\?\)"),
        (["forget", "zzz"], r"no context 'zzz' \(saved: prod\)"),
        (["save", "x", "host:5672"], "host:5672 is no address: an address looks like amqp://"),
        (["save", "x", "amqp://h/", "--http-url", "amqp://h"], "amqp://h is no address"),
        (["save", "a://b", "amqp://h/"], "'a://b' is no name"),
        (["save", "", "amqp://h/"], "'' is no name"),
    ],
)
def test_what_is_wrong_with_a_context_is_one_line(warren: Run, arguments: list[str], said: str) -> None:
    assert warren("context", "save", "prod", "amqp://h/")[0] == 0
    status, out, err = warren("context", *arguments)
    assert (status, out) == (2, "") and re.search(said, err) and len(err.splitlines()) == 1


def test_a_file_of_contexts_that_others_can_read_or_that_is_broken_is_refused_with_the_cure(
    warren: Run, tmp_path: Path
) -> None:
    assert warren("context", "save", "prod", "amqp://h/", "--use")[0] == 0
    file = tmp_path / "warren" / "contexts.json"
    file.chmod(0o640)
    for command in (["context", "list"], ["ledger"], ["get", "q"]):
        status, _, err = warren(*command)
        assert status == 2 and f"chmod 600 {file}" in err and len(err.splitlines()) == 1
    file.chmod(0o600)
    for broken in ("{", "[]", '{"contexts": {"a": {}}, "in_use": ""}', '{"contexts": 5, "in_use": ""}'):
        file.write_text(broken)
        status, _, err = warren("ledger")
        assert status == 2 and "is no file of contexts" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "scheme", "said"),
    [
        ("get", "amqps", "cannot connect to {amqp}: the other side speaks no TLS"),
        ("queues", "amqps", "no broker answers at {amqp}: the other side speaks no TLS"),
        ("queues", "https", "unable to reach the broker at https://{amqp}: the other side speaks no TLS"),
        (
            "queues",
            "http",
            "unable to reach the broker at http://{amqp}: this is a port for AMQP, not the one of the HTTP API",
        ),  # noqa: E501
    ],
)
def test_a_port_that_speaks_something_else_is_told_in_one_line(
    command: str, scheme: str, said: str, warren: Run, broker: Broker
) -> None:
    words = [command, "x"] if command == "get" else [command]
    status, out, err = warren(*words, "-u", f"{scheme}://127.0.0.1:{broker.port}")
    assert (status, out) == (3, "")
    assert err == f"warren {command}: {said.format(amqp=f'127.0.0.1:{broker.port}')}\n"
