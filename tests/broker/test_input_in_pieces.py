"""Input cut anywhere gives what it gives whole, and large bodies go out as they came in."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient, Got
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.methods import method_frame

SIZES = (0, 1, 16, 1000, 5000, 8191, 8192, 16384, 70_000, 200_000)


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return bytes((kind,)) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + b"\xce"


def published(channel: int, body: bytes) -> bytes:
    parts = [
        method_frame(channel, "basic.publish", exchange="", routing_key="q"),
        frame(2, channel, encode_header(Properties(), len(body))),
    ]
    parts += [frame(3, channel, body[at : at + 100_000]) for at in range(0, len(body), 100_000)]
    return b"".join(parts)


def bodies(rng: random.Random) -> list[bytes]:
    return [bytes((n % 251,)) * rng.choice(SIZES) for n in range(60)]


def opened(folder: Path) -> CoreClient:
    client = Core(folder).client()
    client.call("queue.declare", queue="q")
    client.take()
    return client


def deliveries(client: CoreClient) -> list[Got]:
    return [got for got in client.received if got.name == "basic.deliver"]


@pytest.mark.parametrize("seed", range(8))
def test_publishes_cut_at_any_place_arrive_whole_and_in_order(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    client = opened(tmp_path)
    sent = bodies(rng)
    data = b"".join(published(1, body) for body in sent)
    while data:
        cut = rng.choice((1, 7, 8, 100, 4095, 4096, 4097, 30_000, 262_144))
        client.feed(data[:cut])
        data = data[cut:]
    client.call("basic.consume", queue="q", no_ack=True)
    assert [got.body for got in deliveries(client)] == sent


@pytest.mark.parametrize("number", [1, 2])
def test_large_bodies_are_delivered_whole_on_the_channel_of_the_consumer(tmp_path: Path, number: int) -> None:
    client = opened(tmp_path)
    sent = bodies(random.Random(99))
    client.feed(b"".join(published(1, body) for body in sent))
    if number != 1:
        client.open(number)
    client.call("basic.consume", channel=number, queue="q", no_ack=True)
    assert [got.body for got in deliveries(client)] == sent
    assert {got.channel for got in deliveries(client)} == {number}
