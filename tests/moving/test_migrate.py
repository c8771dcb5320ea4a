"""`warren migrate`: everything of a real RabbitMQ comes over, in order, once; and what happens when it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import warrenmq
from tests.cli.conftest import Run, warren  # noqa: F401 (fixture)
from tests.support.brokers import RunningBroker, rabbitmq  # noqa: F401 (fixture)
from warrenmq.cli.migrate.command import _Stopping
from warrenmq.cli.migrate.messages import STEPS, Moved, Mover, door
from warrenmq.client import Channel, ChannelClosed, Connection, Properties
from warrenmq.testing import Broker
from warrenmq.wire.fields import from_python

PERSISTENT = Properties(delivery_mode=2)


class Killed(BaseException):
    """The tool ends here and now."""


@pytest.fixture
def target() -> Iterator[Broker]:
    with Broker() as one:
        yield one


@pytest.fixture
def vhost(rabbitmq: RunningBroker) -> Iterator[str]:  # noqa: F811
    """One of the old broker's own, for a test alone."""
    name = f"move {uuid.uuid4().hex[:8]}"
    assert rabbitmq.http("PUT", f"/api/vhosts/{quote(name)}", {})[0] == 201
    assert rabbitmq.http("PUT", f"/api/permissions/{quote(name)}/guest", EVERYTHING)[0] in (201, 204)
    yield name
    assert rabbitmq.http("DELETE", f"/api/vhosts/{quote(name)}")[0] == 204


EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
Migrate = Callable[..., tuple[int, str, str]]


@pytest.fixture
def migrate(warren: Run, rabbitmq: RunningBroker, vhost: str, target: Broker) -> Migrate:  # noqa: F811
    http = rabbitmq.http_url.replace("://", "://guest:guest@")

    def run(*options: str) -> tuple[int, str, str]:
        place = ("--source-http", http, "-p", vhost, "--idle", "0.2")
        return warren("migrate", rabbitmq.url, target.url, *place, *options)

    return run


def at(broker: RunningBroker | Broker, vhost: str) -> str:
    return broker.url.rstrip("/").removesuffix("/%2F") + "/" + quote(vhost, safe="")


def fill(channel: Channel, queue: str, bodies: list[bytes], exchange: str = "", key: str = "") -> None:
    channel.confirm_select()
    channel.publish_many(exchange, key or queue, bodies, PERSISTENT)
    assert channel.wait_for_confirms(60) == []


def bodies(broker: Broker, vhost: str, queue: str) -> list[bytes]:
    found = []
    with Connection(at(broker, vhost)) as connection:
        channel = connection.channel()
        while (message := channel.basic_get(queue, no_ack=True)) is not None:
            found.append(message.body)
    return found


def waiting(url: str, queue: str) -> int:
    with Connection(url) as connection:
        return connection.channel().queue_declare(queue, passive=True).int("message_count")


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def test_everything_of_a_rabbitmq_comes_over_and_a_second_run_finds_nothing_to_do(
    rabbitmq: RunningBroker,  # noqa: F811
    vhost: str,
    target: Broker,
    migrate: Migrate,
) -> None:
    policy = {"pattern": "^or", "definition": {"max-length": 100000}, "apply-to": "queues"}
    assert rabbitmq.http("PUT", f"/api/policies/{quote(vhost)}/long", policy)[0] == 201
    with Connection(at(rabbitmq, vhost)) as connection:
        channel = connection.channel()
        channel.exchange_declare("events", "topic", durable=True)
        channel.queue_declare("orders", durable=True, arguments={"x-max-priority": 3})
        channel.queue_declare("bids", durable=True, arguments={"x-queue-type": "quorum"})
        channel.queue_declare("passing", auto_delete=True)
        channel.queue_declare("soft")
        channel.queue_declare("copies", durable=True)
        channel.queue_bind("orders", "events", "order.#")
        channel.confirm_select()
        headers = from_python({"n": 5, "deep": {"list": [1, "two", None]}, "CC": ["copies"]})
        special = Properties(headers=headers, delivery_mode=2, message_id="m", timestamp=7, priority=2)
        channel.basic_publish("events", "order.eu", b"\x00\xff", special)
        channel.publish_many("events", "order.us", numbered(1200), PERSISTENT)
        assert channel.wait_for_confirms(60) == []
        fill(connection.channel(), "bids", numbered(30))
    status, out, err = migrate("--dry-run")
    assert (status, err) == (0, "") and "queues: 5 would be copied, 0 there already\n" in out
    assert "stays: queue passing" in out
    assert waiting(at(rabbitmq, vhost), "orders") == 1201

    status, out, err = migrate("--json")
    assert (status, err) == (0, ""), (out, err)
    report = json.loads(out)
    assert report["different"] == [] and report["new"]["queues"] == 5 and report["new"]["policies"] == 1
    moved = {one["queue"]: (one["moved"], one["left"], one["checked"], one["problem"]) for one in report["queues"]}
    nothing = (0, 0, "even", "")
    assert moved == {
        **dict.fromkeys(("copies", "soft"), nothing),
        "orders": (1201, *nothing[1:]),
        "bids": (30, *nothing[1:]),
    }
    with Connection(at(target, vhost)) as connection:
        message = connection.channel().basic_get("orders")
        assert message is not None
        assert (message.body, message.routing_key) == (b"\x00\xff", "order.eu")
        assert message.properties.present() == special.present()
        assert message.headers == {"n": 5, "deep": {"list": [1, "two", None]}, "CC": ["copies"]}
    assert bodies(target, vhost, "orders")[-1200:] == numbered(1200)
    assert bodies(target, vhost, "bids") == numbered(30)
    assert waiting(at(rabbitmq, vhost), "orders") == waiting(at(rabbitmq, vhost), "bids") == 0

    status, out, _ = migrate()
    assert status == 0 and "queues: 0 copied, 5 there already\n" in out and "bindings: 0 copied" in out
    assert [line.split("\t")[2] for line in out.splitlines() if line.startswith(vhost)] == ["0"] * 4
    with Connection(at(target, vhost)) as connection, pytest.raises(ChannelClosed, match="NOT_FOUND"):
        connection.channel().exchange_declare(door("orders"), passive=True)  # nothing of the tool's is left


def test_publishers_may_go_on_at_the_source_and_nothing_is_lost_doubled_or_out_of_order(
    rabbitmq: RunningBroker,  # noqa: F811
    vhost: str,
    target: Broker,
    migrate: Migrate,
) -> None:
    with Connection(at(rabbitmq, vhost)) as connection:
        connection.channel().queue_declare("busy", durable=True)
        fill(connection.channel(), "busy", numbered(500))

        def publish() -> None:
            channel = connection.channel()
            for first in range(500, 3000, 50):
                fill(channel, "busy", numbered(50, first))

        load = threading.Thread(target=publish)
        load.start()
        statuses = [migrate("--batch", "64")[0]]
        load.join()
        statuses.append(migrate("--batch", "64")[0])
    assert statuses == [0, 0]
    assert bodies(target, vhost, "busy") == numbered(3000)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("occurrence", [1, 3])
def test_a_tool_that_is_killed_at_any_step_loses_nothing_and_goes_on(
    step: str,
    occurrence: int,
    rabbitmq: RunningBroker,  # noqa: F811
    vhost: str,
    target: Broker,
    migrate: Migrate,
) -> None:
    batch, count = 20, 200
    with Connection(at(rabbitmq, vhost)) as connection:
        connection.channel().queue_declare("q", durable=True)
        fill(connection.channel(), "q", numbered(count))
    assert migrate("--no-messages")[0] == 0
    left = [occurrence]
    moved = Moved(vhost, "q")

    def die(where: str) -> None:
        left[0] -= where == step
        if left[0] == 0 and where == step:
            raise Killed

    old, new = Connection(at(rabbitmq, vhost)), Connection(at(target, vhost))
    try:
        with pytest.raises(Killed):
            Mover(old, new, moved, batch, 0.2, lambda: False, die).run()
    finally:
        old.abort()
        new.abort()
    # RabbitMQ puts back what the dead connection held when it sees its end
    deadline = time.monotonic() + 60
    while waiting(at(rabbitmq, vhost), "q") != count - moved.moved:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert migrate("--batch", str(batch))[0] == 0
    found = bodies(target, vhost, "q")
    assert list(dict.fromkeys(found)) == numbered(count)  # all of them, in order
    assert len(found) - count <= (batch if step in ("published", "confirmed") else 0)


def test_a_tool_that_is_ended_by_signals_under_load_loses_nothing_and_doubles_a_batch_at_most(
    rabbitmq: RunningBroker,  # noqa: F811
    vhost: str,
    target: Broker,
    migrate: Migrate,
) -> None:
    """The command as a process of its own, killed and stopped while publishers go on."""
    batch, count, more = 10, 3000, 1000
    with Connection(at(rabbitmq, vhost)) as connection:
        connection.channel().queue_declare("q", durable=True)
        fill(connection.channel(), "q", numbered(count))
        assert migrate("--no-messages")[0] == 0

        def publish() -> None:
            channel = connection.channel()
            for first in range(count, count + more, 20):
                fill(channel, "q", numbered(20, first))

        load = threading.Thread(target=publish)
        load.start()
        http = rabbitmq.http_url.replace("://", "://guest:guest@")
        words = [sys.executable, "-m", "warrenmq", "migrate", rabbitmq.url, target.url, "--source-http", http]
        words += ["-p", vhost, "--idle", "0.2", "--batch", str(batch)]
        environment = {**os.environ, "PYTHONPATH": str(Path(warrenmq.__file__).parents[1])}
        ends = []
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
            before = waiting(at(target, vhost), "q")
            tool = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while tool.poll() is None and waiting(at(target, vhost), "q") < before + 5 * batch:
                time.sleep(0.01)
            tool.send_signal(number)
            _, complaints = tool.communicate(timeout=300)
            assert b"Traceback" not in complaints, complaints
            ends.append(tool.returncode)
        load.join()
    assert -signal.SIGKILL in ends
    assert migrate("--batch", str(batch))[0] == 0
    found = bodies(target, vhost, "q")
    assert list(dict.fromkeys(found)) == numbered(count + more)  # all of them, in order
    assert len(found) - count - more <= batch * ends.count(-signal.SIGKILL)
    assert waiting(at(rabbitmq, vhost), "q") == 0


def test_a_tool_that_is_stopped_between_batches_doubles_nothing(
    rabbitmq: RunningBroker,  # noqa: F811
    vhost: str,
    target: Broker,
    migrate: Migrate,
) -> None:
    with Connection(at(rabbitmq, vhost)) as connection:
        connection.channel().queue_declare("q", durable=True)
        fill(connection.channel(), "q", numbered(200))
    assert migrate("--no-messages")[0] == 0
    moved = Moved(vhost, "q")
    with Connection(at(rabbitmq, vhost)) as old, Connection(at(target, vhost)) as new, _Stopping() as stopping:

        def stop(where: str) -> None:
            if where == "acknowledged":
                os.kill(os.getpid(), signal.SIGTERM)

        Mover(old, new, moved, 20, 0.2, stopping, stop).run()
    assert 0 < moved.moved < 200 and moved.checked == "even"
    assert migrate()[0] == 0
    assert bodies(target, vhost, "q") == numbered(200)


def test_what_the_target_has_otherwise_is_named_and_left_alone(
    rabbitmq: RunningBroker,  # noqa: F811
    vhost: str,
    migrate: Migrate,
) -> None:
    with Connection(at(rabbitmq, vhost)) as connection:
        connection.channel().queue_declare("q", durable=True)
        assert migrate()[0] == 0
        connection.channel().queue_delete("q")
        connection.channel().queue_declare("q", durable=True, arguments={"x-max-length": 5})
    status, out, _ = migrate()
    assert status == 1
    assert (
        f"differs, left alone: queues: q in vhost '{vhost}': arguments: {{\"x-max-length\": 5}} there, {{}} here" in out
    )


def test_what_the_target_refuses_stays_at_the_source(
    warren: Run,  # noqa: F811
    rabbitmq: RunningBroker,  # noqa: F811
    vhost: str,
    target: Broker,
    migrate: Migrate,
) -> None:
    with Connection(at(rabbitmq, vhost)) as connection:
        connection.channel().queue_declare("q", durable=True)
        fill(connection.channel(), "q", numbered(50))
    assert migrate("--no-messages")[0] == 0
    full = ("policy", "set", "full", "q", "-a", "max-length=10", "-a", "overflow=reject-publish")
    assert warren(*full, "-u", at(target, vhost))[0] == 0
    status, out, _ = migrate()
    assert status == 1 and "is the queue full?" in out
    kept = bodies(target, vhost, "q")
    assert kept == numbered(len(kept)) and len(kept) + waiting(at(rabbitmq, vhost), "q") == 50


def test_users_come_over_with_their_passwords(warren: Run, target: Broker) -> None:  # noqa: F811
    with Broker() as old:
        assert warren("user", "add", "ann", "s3cret", "--tag", "administrator", WARREN_URL=old.url)[0] == 0
        assert warren("permission", "set", "ann", WARREN_URL=old.url)[0] == 0
        status, out, err = warren("migrate", old.url, target.url)
        assert (status, err) == (0, "") and "users: 1 copied, 1 there already" in out
    assert warren("user", "list", "-u", target.url.replace("guest:guest", "ann:s3cret"))[0] == 0


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["amqp://127.0.0.1:1/", "TARGET"], 3, "no broker answers at 127.0.0.1:1"),
        (["TARGET", "amqp://127.0.0.1:1/"], 3, "no broker answers at 127.0.0.1:1"),
        (["TARGET", "nobody"], 2, "no context 'nobody'"),
        (["TARGET", "TARGET", "-p", "nowhere"], 2, "no vhost 'nowhere' at the source (it has /)"),
        (["TARGET"], 2, "Missing argument 'TARGET'"),
        (["TARGET", "TARGET", "--batch", "0"], 2, "--batch"),
    ],
)
def test_what_is_wrong_is_one_line(
    options: list[str],
    status: int,
    said: str,
    warren: Run,  # noqa: F811
    target: Broker,
) -> None:
    given = [target.url if one == "TARGET" else one for one in options]
    found, out, err = warren("migrate", *given)
    assert (found, out) == (status, "") and said in err and len(err.splitlines()) == 1
