"""A small commit is written and synced in one call where the system has one; where it has not, or takes a part of it,
it is written and synced as ever. Either way nothing is confirmed before."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from warrenmq.client import Connection, Properties
from warrenmq.testing import Broker

PERSISTENT = Properties(delivery_mode=2)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such call")

WRITE = os.pwritev
SYNC = os.fdatasync
SYNCED = 2  # os.RWF_DSYNC: what is written is on the disk when the call returns


def refuse(descriptor: int, parts: Sequence[bytes], offset: int) -> int:
    raise OSError(errno.EOPNOTSUPP, "not supported here")


def take_a_part(descriptor: int, parts: Sequence[bytes], offset: int) -> int:
    return WRITE(descriptor, [b"".join(parts)[:100]], offset, SYNCED)


def take_it(descriptor: int, parts: Sequence[bytes], offset: int) -> int:
    return WRITE(descriptor, parts, offset, SYNCED)


@pytest.mark.parametrize(
    ("answer", "asked", "synced_apart"),
    [(take_it, True, False), (refuse, False, True), (take_a_part, True, True)],
    ids=["it can", "it cannot", "it takes a part"],
)
def test_a_confirmed_message_is_there_whatever_the_system_can(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    answer: Callable[[int, Sequence[bytes], int], int],
    asked: bool,
    synced_apart: bool,
) -> None:
    together: list[int] = []
    apart: list[int] = []

    def write(descriptor: int, parts: Sequence[bytes], offset: int, flags: int = 0) -> int:
        if not flags:
            return WRITE(descriptor, parts, offset)
        assert flags == SYNCED
        together.append(descriptor)
        return answer(descriptor, parts, offset)

    def sync(descriptor: int) -> None:
        apart.append(descriptor)
        SYNC(descriptor)

    with Broker(data_dir=tmp_path) as broker, Connection(broker.url) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_select()
        monkeypatch.setattr(os, "pwritev", write)
        monkeypatch.setattr(os, "fdatasync", sync)
        for n in range(20):
            channel.basic_publish("", "q", b"%d" % n, PERSISTENT)
            assert channel.wait_for_confirms(60) == []
        assert (len(together) >= 20) == asked and len(together) >= 1
        assert (len(apart) >= 19) == synced_apart
        monkeypatch.undo()
    with Broker(data_dir=tmp_path) as broker, Connection(broker.url) as connection:
        channel = connection.channel()
        channel.basic_consume("q", no_ack=True)
        got: list[bytes] = []
        while len(got) < 20:
            got += [message.body for message in channel.receive(60)]
        assert got == [b"%d" % n for n in range(20)]
