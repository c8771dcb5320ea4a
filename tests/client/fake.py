"""A broker played by the test: a thread that shakes hands and then does what the test wrote."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable

from warrenmq.wire.constants import PROTOCOL_HEADER
from warrenmq.wire.frames import Frame, FrameReader
from warrenmq.wire.methods import Method, decode_method, method_frame


class Peer:
    """The broker's side of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.reader = FrameReader()

    def say(self, channel: int, name: str, **values: object) -> None:
        self.socket.sendall(method_frame(channel, name, **values))

    def frame(self) -> Frame:
        while (frame := self.reader.next()) is None:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self.reader.feed(data)
        return frame

    def method(self, name: str) -> Method:
        method = decode_method(self.frame().payload)
        assert method.name == name, f"expected {name}, got {method}"
        return method

    def greet(self) -> None:
        header = b""
        while len(header) < 8:
            header += self.socket.recv(8 - len(header))
        assert header == PROTOCOL_HEADER

    def shake_hands(self) -> Method:
        """Up to connection.open-ok; gives the client's start-ok."""
        self.greet()
        self.say(0, "connection.start", version_minor=9, mechanisms="PLAIN", locales="en_US")
        start_ok = self.method("connection.start-ok")
        self.say(0, "connection.tune", channel_max=10, frame_max=8192, heartbeat=60)
        self.method("connection.tune-ok")
        self.method("connection.open")
        self.say(0, "connection.open-ok")
        return start_ok

    def open_channel(self) -> None:
        self.method("channel.open")
        self.say(1, "channel.open-ok")


class FakeBroker:
    """``with FakeBroker(play) as port:`` runs ``play(peer)`` for one connection; its failure is the test's failure."""

    def __init__(self, play: Callable[[Peer], None], context: ssl.SSLContext | None = None) -> None:
        self.play = play
        self.context = context
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            connection, _ = self.listener.accept()
            connection.settimeout(60)
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection:
                self.play(Peer(connection))
        except BaseException as failure:
            self.failure = failure

    def __enter__(self) -> int:
        self.thread.start()
        port = self.listener.getsockname()[1]
        assert isinstance(port, int)
        return port

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.thread.join(60)
        self.listener.close()
        if error is None:
            assert not self.thread.is_alive(), "the played broker did not finish"
            if self.failure is not None:
                raise self.failure
