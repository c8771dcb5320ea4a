"""A Python worker of Spark's reports as soon as Python runs, before it imports anything.

Spark gives the runner of a streaming source ten seconds to connect and to show its secret, which no setting changes,
and the runner does so after its imports: seconds of work, more than ten on a machine that is busy with other tests.
Python imports this module when it starts, because the folder is in PYTHONPATH; only a worker that was started by
itself, not forked from the daemon, is told of a port. The connection waits until Spark's own code asks for one.
"""

import os
import socket
import sys
from typing import Any

PORT = os.environ.get("PYTHON_WORKER_FACTORY_PORT", "")


def report(port: int, secret: bytes) -> None:
    waiting = socket.create_connection(("127.0.0.1", port))
    waiting.sendall(len(secret).to_bytes(4, "big") + secret)
    answer = waiting.recv(6, socket.MSG_WAITALL)
    assert answer == b"\x00\x00\x00\x02ok", answer
    connect = socket.socket.connect

    def connect_or_take(self: socket.socket, address: Any) -> None:
        if address != ("127.0.0.1", port):
            connect(self, address)
            return
        socket.socket.connect = connect  # type: ignore[method-assign]
        waiting.settimeout(self.gettimeout())
        os.dup2(waiting.fileno(), self.fileno(), inheritable=False)
        waiting.close()
        sys.modules["pyspark.util"]._do_server_auth = lambda *_: None  # type: ignore[attr-defined]

    socket.socket.connect = connect_or_take  # type: ignore[assignment, method-assign]


if PORT.isdecimal():
    report(int(PORT), os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode())
