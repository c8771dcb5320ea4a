"""A very long body goes to the log as it comes, whatever interceptors do to its message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.test_long_bodies import BODY, MIB
from tests.rules.test_long_letters import Traffic
from warrenmq.broker.extensions.interceptor import amended, load_interceptors
from warrenmq.broker.records import BasicMessage, Content
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import FRAME_MAX
from warrenmq.wire.content import encode_header

pytestmark = pytest.mark.pure


class Reads:
    """Looks into the body, and lets it be."""

    name = "reads"

    def amend(self, message: BasicMessage) -> BasicMessage:
        properties = message.content.properties.copy()
        properties.app_id = str(message.content.body.count(b" "))
        return amended(message, properties)


class Shortens:
    """Makes another body of it."""

    name = "shortens"

    def amend(self, message: BasicMessage) -> BasicMessage:
        body = message.content.body[: 2 * MIB]
        content = Content(encode_header(message.content.properties, len(body)), body)
        return BasicMessage(message.exchange_name, message.routing_keys, content, message.id, True)


reads, shortens = Reads(), Shortens()


@pytest.mark.parametrize("name", ["timestamp", f"{__name__}:reads", f"{__name__}:shortens"])
def test_it_is_logged_as_it_comes_and_delivered_as_amended(tmp_path: Path, name: str) -> None:
    files = Traffic()
    core = Core(tmp_path, files)
    core.broker.interceptors = load_interceptors([name], "node", core.clock)
    client = core.client(persistent=True)
    client.declare("q")
    frames = client.published("", "q", BODY)
    files.take()
    written = []
    for start in range(0, len(frames), FRAME_MAX):
        client.feed(frames[start : start + FRAME_MAX])
        core.log.flush()
        written.append(files.take()[1])
    assert sum(written) > len(BODY) and max(written) < 4 * MIB
    got = client.call("basic.get", queue="q", no_ack=True)
    assert got.properties is not None
    if name == "timestamp":
        assert "timestamp_in_ms" in got.headers
    elif name.endswith("reads"):
        assert got.properties.app_id == str(len(BODY) // 8)
    assert got.body == (BODY[: 2 * MIB] if name.endswith("shortens") else BODY)
