"""A body goes out in frames as large as the consumer takes, however it came in; RabbitMQ does the same."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.support.rawclient import BODY, HEADER, frame, header, method
from warrenmq.testing.core import Core

pytestmark = pytest.mark.pure


SIZES = [10, 5000, 8191, 8192, 40_000, 131_064, 131_065, 300_000]
PIECES = [(size, piece) for piece in (7, 101, 4088, 100_000) for size in SIZES if size < 2000 * piece]


@pytest.mark.parametrize(("size", "piece"), PIECES)
@pytest.mark.parametrize("kept", [False, True])
def test_a_body_goes_out_in_full_frames_however_it_came(tmp_path: Path, size: int, piece: int, kept: bool) -> None:
    core = Core(tmp_path)
    client = core.client()
    client.call("queue.declare", queue="q", durable=kept)
    body = bytes(number % 251 for number in range(size))
    client.feed(method(1, "basic.publish", routing_key="q") + frame(HEADER, 1, header(size, delivery_mode=1 + kept)))
    for at in range(0, size, piece):
        client.feed(frame(BODY, 1, body[at : at + piece]))
    if kept:
        core.restart()
        client = core.client()
    core.broker.begin_turn()
    client.connection.feed(method(1, "basic.get", queue="q"))
    core.broker.end_turn()
    octets = bytes(client.sink.data)
    sizes, at = [], 0
    while at < len(octets):
        kind, _, length = struct.unpack_from(">BHI", octets, at)
        if kind == BODY:
            sizes.append(length)
        at += length + 8
    assert sizes == [131_064] * (size // 131_064) + [size % 131_064] * (size % 131_064 > 0)
    client._collect()
    assert client.received[-1].body == body
