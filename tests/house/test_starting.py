"""A start that takes long: clients log in at once, and nobody is answered before all messages are known."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.support import web
from warrenmq.client import Connection
from warrenmq.http.web import WebServer
from warrenmq.server.app import Server
from warrenmq.server.config import Settings
from warrenmq.testing import Broker
from warrenmq.wire.content import Properties

if TYPE_CHECKING:
    from warrenmq.client.channel import Channel

MESSAGES = 500


def in_a_loop(test: Callable[[Path], Coroutine[None, None, None]]) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))

    run.__name__ = test.__name__
    return run


def killed(folder: Path, arguments: dict[str, object] | None = None) -> Path:
    """The data folder of a broker with messages that was killed."""
    running, left = folder / "running", folder / "killed"
    with Broker(data_dir=running) as broker, Connection(broker.url) as connection:
        channel = connection.channel()
        channel.confirm_select()
        channel.queue_declare("work", durable=True, arguments=arguments)
        channel.publish_many("", "work", [b"x"] * MESSAGES, Properties(delivery_mode=2))
        channel.wait_for_confirms()
        shutil.copytree(running, left, ignore=shutil.ignore_patterns("lock", "journal", "*.new"))
    return left


@asynccontextmanager
async def begun(folder: Path, **settings: object) -> AsyncIterator[Server]:
    """A server that listens, and knows nothing yet but its definitions."""
    server = Server(Settings(port=0, http_port=0, journal="off", data_dir=folder, **settings), web=WebServer)  # type: ignore[arg-type]
    await server.open(patience=0)
    try:
        yield server
    finally:
        await server.stop("over")


def url(server: Server) -> str:
    host, port = server.amqp_address
    return f"amqp://guest:guest@{host}:{port}/"


async def page(server: Server, path: str) -> httpx.Response:
    host, port = server.http_address
    return await asyncio.to_thread(_get, f"http://{host}:{port}{path}")


def _get(place: str) -> httpx.Response:
    with web.Client() as client:
        return client.get(place, auth=("guest", "guest"))


@in_a_loop
async def test_a_client_logs_in_while_the_messages_are_read_and_is_answered_when_they_are_known(tmp_path: Path) -> None:
    async with begun(killed(tmp_path)) as server:
        connection = await asyncio.to_thread(Connection, url(server))
        assert server.starting is not None
        asked = asyncio.ensure_future(asyncio.to_thread(_messages, connection))
        listed = asyncio.ensure_future(page(server, "/api/queues/%2F/work"))
        assert (await page(server, "/healthz")).status_code == 200  # the others were sent before, and are held
        ready = await page(server, "/readyz")
        assert ready.status_code == 503 and ready.text.startswith("starting: ")
        assert not asked.done() and not listed.done()
        await server.complete()
        assert await asked == MESSAGES
        assert (await listed).json()["messages"] == MESSAGES
        assert (await page(server, "/readyz")).status_code == 200
        await asyncio.to_thread(connection.close)


def _messages(connection: Connection) -> int:
    channel: Channel = connection.channel()
    return channel.queue_declare("work", passive=True).int("message_count")


@in_a_loop
async def test_what_is_published_meanwhile_comes_behind_what_was_there(tmp_path: Path) -> None:
    async with begun(killed(tmp_path)) as server:
        connection = await asyncio.to_thread(Connection, url(server))
        published = asyncio.ensure_future(asyncio.to_thread(_publish, connection))
        await page(server, "/healthz")
        assert not published.done()
        await server.complete()
        channel = await published
        bodies = [await asyncio.to_thread(_get_one, channel) for _ in range(MESSAGES + 1)]
        assert bodies == [b"x"] * MESSAGES + [b"later"]
        await asyncio.to_thread(connection.close)


def _publish(connection: Connection) -> Channel:
    channel: Channel = connection.channel()
    channel.confirm_select()
    channel.basic_publish("", "work", b"later", Properties(delivery_mode=2))
    channel.wait_for_confirms()
    return channel


def _get_one(channel: Channel) -> bytes:
    message = channel.basic_get("work", no_ack=True)
    assert message is not None
    return bytes(message.body)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "lock"}


@in_a_loop
async def test_a_stop_before_that_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    folder = killed(tmp_path)
    before = files(folder)
    async with begun(folder) as server:
        await asyncio.to_thread(Connection, url(server))
        held = asyncio.ensure_future(page(server, "/api/overview"))
        await page(server, "/healthz")
        await server.stop("a signal")
        assert (await held).status_code == 503
        await server.complete()
        assert server._periodic == [], "work began although the broker had stopped"
    assert {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "lock"
    } == before
    with Broker(data_dir=folder) as broker, Connection(broker.url) as connection:
        assert _messages(connection) == MESSAGES


@in_a_loop
async def test_a_queue_does_not_expire_before_its_messages_are_known(tmp_path: Path) -> None:
    async with begun(killed(tmp_path, {"x-expires": 60_000})) as server:
        timers = server.broker.services.timers
        assert timers.next_due() >= 0
        server.begin()
        services = server.broker.services
        services.turn.now += 3_600_000
        assert server.turns._run_timer(services.io_now()) is None and "work" in server.broker.vhosts["/"].queues


@in_a_loop
async def test_with_definitions_to_load_nobody_is_taken_before_they_are(tmp_path: Path) -> None:
    definitions = tmp_path / "definitions.json"
    definitions.write_text('{"users": [{"name": "late", "password": "secret", "tags": ""}], "permissions": []}')
    async with begun(killed(tmp_path), load_definitions=definitions) as server:
        assert server.starting is None and server.whole.is_set()


@in_a_loop
async def test_damage_that_is_found_later_ends_the_start_with_its_reason(tmp_path: Path) -> None:
    folder = killed(tmp_path)
    segment = max(folder.glob("segment-*.log"))
    data = bytearray(segment.read_bytes())
    server = Server(Settings(port=0, http_port=0, journal="off", data_dir=folder), web=WebServer)
    await server.open(patience=0)
    assert server.starting is not None
    segment.write_bytes(bytes(len(data)))
    with pytest.raises(Exception, match="segment"):
        await server.complete()
    assert server.stopping
