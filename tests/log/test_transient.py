"""Spilled transient messages come back as they went, and leave nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warrenmq.log.files import Files
from warrenmq.log.transient import TransientStore


def test_a_spilled_message_comes_back_as_it_was(tmp_path: Path) -> None:
    store = TransientStore(str(tmp_path), Files())
    bodies = [os.urandom(size) for size in (0, 1, 1000, 3000, 400_000, 10)]
    handles = [store.put(7, b"header", body, "exchange", b"keys", 3) for body in bodies]
    assert 0 not in handles and len(set(handles)) == len(handles)
    for handle, body in zip(handles, bodies, strict=True):
        found = store.get(handle)
        assert (found.message_id, found.header, found.body) == (7, b"header", body)
        assert (found.exchange, found.routing_keys, found.flags) == ("exchange", b"keys", 3)
    store.close()


def test_a_file_goes_when_the_last_of_its_messages_does(tmp_path: Path) -> None:
    store = TransientStore(str(tmp_path), Files(), file_bytes=10_000)
    handles = [store.put(n, b"", b"x" * 1000, "", b"", 0) for n in range(100)]
    assert len(os.listdir(tmp_path)) >= 9
    for handle in handles[::2]:
        store.free(handle)
    assert len(os.listdir(tmp_path)) >= 9
    assert store.get(handles[1]).message_id == 1
    for handle in handles[1::2]:
        store.free(handle)
    assert len(os.listdir(tmp_path)) <= 1 and store.disk_bytes() <= 11_000
    store.close()
    assert os.listdir(tmp_path) == []


def test_what_an_earlier_process_spilled_is_removed_at_the_start(tmp_path: Path) -> None:
    store = TransientStore(str(tmp_path), Files())
    store.put(1, b"", b"body", "", b"", 0)
    store.flush()
    (tmp_path / "manifest").write_bytes(b"not a spill file")
    again = TransientStore(str(tmp_path), Files())
    assert os.listdir(tmp_path) == ["manifest"]
    again.close()


class Full(Files):
    def __init__(self) -> None:
        self.full = False

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().write(descriptor, parts, offset)


def test_a_full_disk_refuses_the_message_and_keeps_the_others(tmp_path: Path) -> None:
    files = Full()
    store = TransientStore(str(tmp_path), files)
    kept = store.put(1, b"", b"kept", "", b"", 0)
    files.full = True
    with pytest.raises(OSError):
        store.put(2, b"", bytes(300_000), "", b"", 0)
    files.full = False
    later = store.put(3, b"", b"later", "", b"", 0)
    assert store.get(kept).body == b"kept" and store.get(later).body == b"later"
    store.close()
