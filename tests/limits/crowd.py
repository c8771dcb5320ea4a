"""Many lean clients at once: sockets that pipeline a whole conversation and read as much as they were promised."""

from __future__ import annotations

import contextlib
import os
import socket

from tests.support import rawclient
from tests.support.brokers import RunningBroker

GREETING = rawclient.PROTOCOL_HEADER + b"".join(
    [
        rawclient.method(
            0,
            "connection.start-ok",
            mechanism="PLAIN",
            response="\0guest\0guest",
            locale="en_US",
            client_properties={"capabilities": {"consumer_cancel_notify": True}},
        ),
        rawclient.method(0, "connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0),
        rawclient.method(0, "connection.open", virtual_host="/"),
    ]
)
FAREWELL = rawclient.method(0, "connection.close", reply_code=200, reply_text="bye")
CLOSE_OK = rawclient.method(0, "connection.close-ok")
OPEN_OK = rawclient.method(0, "connection.open-ok")


class Member:
    """One connection of the crowd."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)

    def greet(self, channels: int) -> None:
        opens = b"".join(rawclient.method(n + 1, "channel.open") for n in range(channels))
        self.socket.sendall(GREETING + opens)

    def read_until(self, end: bytes) -> bytes:
        data = bytearray()
        while not data.endswith(end):
            chunk = self.socket.recv(65536)
            assert chunk, f"ended: {bytes(data)!r}"
            data += chunk
        return bytes(data)

    def close(self) -> None:
        self.socket.close()


def come_and_go(port: int) -> None:
    """Connect, open a channel, close properly."""
    member = Member(port)
    member.socket.sendall(GREETING + rawclient.method(1, "channel.open") + FAREWELL)
    member.read_until(CLOSE_OK)
    member.close()


def resident(broker: RunningBroker) -> int:
    """Bytes of memory the broker's process has."""
    with open(f"/proc/{broker.process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def sockets(broker: RunningBroker) -> int:
    """Sockets of the broker's process, without its files: the log opens and closes those as it likes."""
    count = 0
    for number in os.listdir(f"/proc/{broker.process.pid}/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/{broker.process.pid}/fd/{number}").startswith("socket:")
    return count
