"""The slow disk: so many bytes a second, nothing durable before its sync, and a broker that cannot tell."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from warrenmq.client import Connection, Properties
from warrenmq.testing import Broker, SlowDisk


def test_nothing_is_on_the_disk_before_its_sync_and_everything_is_readable_at_once(tmp_path: Path) -> None:
    disk = SlowDisk(1e9)
    path = str(tmp_path / "file")
    descriptor = disk.create(path)
    disk.write(descriptor, [b"hello ", b"world"], 0)
    disk.write(descriptor, [b"W"], 6)
    assert disk.read(descriptor, 100, 0) == b"hello World" and disk.size(descriptor) == 11
    assert disk.read(descriptor, 3, 5) == b" Wo"
    assert os.path.getsize(path) == 0
    disk.sync(descriptor)
    assert Path(path).read_bytes() == b"hello World" and disk.written == 12
    disk.write(descriptor, [b"!"], 13)
    assert disk.read(descriptor, 100, 9) == b"ld\0\0!"
    disk.truncate(descriptor, 5)
    assert disk.read(descriptor, 100, 0) == b"hello"
    disk.write(descriptor, [b"gone"], 0)
    disk.unlink(path)
    assert disk.read(descriptor, 5, 0) == b"hello"
    disk.close(descriptor)


def test_a_sync_takes_as_long_as_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    disk = SlowDisk(1_000_000)
    descriptor = disk.create(str(tmp_path / "file"))
    disk.write(descriptor, [bytes(100_000)], 0)
    disk.sync(descriptor)
    disk.sync(descriptor)
    assert slept == [0.1, 0.0]
    disk.close(descriptor)


def test_a_broker_on_a_slow_disk_keeps_what_it_confirmed(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path, disk=SlowDisk(1_000_000)) as broker, Connection(broker.url) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_select()
        channel.publish_many("", "q", [b"%d" % n for n in range(500)], Properties(delivery_mode=2))
        assert channel.wait_for_confirms(60) == []
    with Broker(data_dir=tmp_path) as broker, Connection(broker.url) as connection:
        assert connection.channel().queue_declare("q", durable=True).int("message_count") == 500
