"""warren publish, get and consume print what the broker said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
import typer
from typer.testing import CliRunner, Result

from tests.support.brokers import RunningBroker
from warrenmq.cli.messages import register
from warrenmq.client import Channel, Connection


@pytest.fixture
def durable_queue(broker: RunningBroker) -> Iterator[tuple[Channel, str]]:
    """A queue other connections may use, as the commands are ones."""
    with Connection(broker.url) as connection:
        channel = connection.channel()
        name = channel.queue_declare(durable=True).str("queue")
        yield channel, name
        connection.channel().queue_delete(name)


@pytest.fixture
def run(broker: RunningBroker) -> Callable[..., Result]:
    app = typer.Typer()
    register(app)

    def run(*arguments: str, input: bytes | None = None) -> Result:
        return CliRunner().invoke(app, [*arguments, "--url", broker.url], input=input)

    return run


def test_a_returned_message_is_reported_before_its_ack(run: Callable[..., Result]) -> None:
    result = run("publish", "no-such-queue", "hello", "--mandatory", "--confirm")
    assert result.stdout == "returned 312 NO_ROUTE\nacked\n"
    assert result.exit_code == 1


def test_without_confirms_a_return_is_still_waited_for(run: Callable[..., Result]) -> None:
    result = run("publish", "no-such-queue", "hello", "--mandatory")
    assert (result.stdout, result.exit_code) == ("returned 312 NO_ROUTE\n", 1)


@pytest.mark.parametrize("confirm", [[], ["--confirm"]])
def test_what_no_queue_takes_and_what_is_refused_is_said_with_or_without_confirms(
    run: Callable[..., Result], confirm: list[str]
) -> None:
    result = run("publish", "no-such-queue", "hello", *confirm)
    assert result.stdout.splitlines()[0] == "not routed: no queue took it" and result.exit_code == 1
    result = run("publish", "k", "hello", "--exchange", "no-such-exchange", *confirm)
    assert result.stdout == "refused 404 NOT_FOUND - no exchange 'no-such-exchange' in vhost '/'\n"
    assert result.exit_code == 1


@pytest.mark.parametrize("command", [["publish", "k", "x"], ["get", "q"], ["consume", "q"]])
def test_an_address_of_another_kind_is_one_line(command: list[str]) -> None:
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, [*command, "--url", "http://127.0.0.1:15672"])
    assert result.exit_code == 2
    assert result.stderr == (
        f"warren {command[0]}: --url http://127.0.0.1:15672: this command speaks AMQP, and an address of AMQP "
        "begins with amqp:// or amqps://\n"
    )


def test_a_refusal_is_printed_in_the_brokers_words(run: Callable[..., Result]) -> None:
    result = run("publish", "k", "hello", "--exchange", "no-such-exchange", "--confirm")
    assert result.stdout == "refused 404 NOT_FOUND - no exchange 'no-such-exchange' in vhost '/'\n"
    assert result.exit_code == 1


def test_what_is_published_can_be_fetched_with_everything_about_it(
    run: Callable[..., Result], durable_queue: tuple[Channel, str]
) -> None:
    _, queue = durable_queue
    sent = run(
        "publish",
        queue,
        "hello",
        "--confirm",
        "--persistent",
        "-H",
        "a=text",
        "-H",
        "n:=5",
        "-H",
        'l:=["x"]',
        "-P",
        "message-id=m",
        "-P",
        "priority=3",
    )
    assert (sent.stdout, sent.exit_code) == ("acked\n", 0)
    looked = run("get", queue, "--requeue", "--json")
    assert json.loads(looked.stdout) == {
        "exchange": "",
        "routing_key": queue,
        "redelivered": False,
        "properties": {
            "headers": {"a": "text", "n": 5, "l": ["x"]},
            "delivery_mode": 2,
            "priority": 3,
            "message_id": "m",
        },
        "payload": "hello",
        "payload_encoding": "string",
    }
    taken = run("get", queue)
    assert (taken.stdout, taken.exit_code) == ("hello\n", 0)
    empty = run("get", queue)
    assert (empty.stdout, empty.stderr, empty.exit_code) == ("", "empty\n", 1)


def test_a_body_may_come_from_standard_input(run: Callable[..., Result], durable_queue: tuple[Channel, str]) -> None:
    channel, queue = durable_queue
    assert run("publish", queue, "--confirm", input=b"\x00\xff").exit_code == 0
    message = channel.basic_get(queue, no_ack=True)
    assert message is not None and message.body == b"\x00\xff"


def test_consume_stops_after_count_and_leaves_the_rest_untouched(
    run: Callable[..., Result], durable_queue: tuple[Channel, str]
) -> None:
    channel, queue = durable_queue
    channel.confirm_select()
    channel.publish_many("", queue, [b"1", b"2", b"3"])
    channel.wait_for_confirms(60)
    result = run("consume", queue, "--count", "2")
    assert (result.stdout, result.exit_code) == ("1\n2\n", 0)
    message = channel.basic_get(queue, no_ack=True)
    assert message is not None and (message.body, message.redelivered) == (b"3", False)
    channel.publish_many("", queue, [b"4", b"5"])
    channel.wait_for_confirms(60)
    for expected in ("4\n5\n", ""):
        result = run("consume", queue, "--timeout", "0.5")
        assert (result.stdout, result.exit_code) == (expected, 0)


def test_a_count_without_acknowledgements_is_refused_as_it_would_lose_messages(run: Callable[..., Result]) -> None:
    assert run("consume", "q", "--no-ack", "--count", "1").exit_code == 2


@pytest.mark.parametrize(
    "wrong", [["-H", "novalue"], ["-H", "n:=not json"], ["-P", "colour=red"], ["-P", "priority=high"]]
)
def test_headers_and_properties_that_make_no_sense_are_refused(run: Callable[..., Result], wrong: list[str]) -> None:
    result = run("publish", "q", "x", *wrong)
    assert result.exit_code == 2


def test_no_broker_is_one_line_and_status_3() -> None:
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["get", "q", "--url", "amqp://127.0.0.1:1"])
    assert result.exit_code == 3
    assert result.stderr.startswith("warren get: cannot connect to 127.0.0.1:1")
    assert len(result.stderr.splitlines()) == 1
