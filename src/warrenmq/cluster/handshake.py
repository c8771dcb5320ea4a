"""The proof that the other side of a connection is a node of the cluster, before anything else is said; no I/O.

Duty: the versions both sides speak, and a challenge each way. With a shared secret each side proves that it knows it by
HMAC-SHA-256 over both openings, random numbers included; the secret itself never goes over the wire, and a proof is
good for one connection and one direction. What comes afterwards is neither hidden nor signed: a secret is for a private
network. Over TLS with certificates on both sides (``mode`` "tls") the proof is the certificate, which ``glue/link.py``
looks at. Mode "none" proves nothing; who may use it, ``glue/security.py`` decides.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, final

from warrenmq.cluster import wire
from warrenmq.cluster.wire import Fields, Frame, WireError

SECRET: Final = "secret"
TLS: Final = "tls"
NONE: Final = "none"
NONCE: Final = 32
LEAST_SECRET: Final = 16
"""Octets of a secret: a shorter one is a word that somebody can try."""


class Refused(Exception):
    """The other side is not let in, or does not let us in; the text is for the log and for the other side."""


@final
class Handshake:
    """One side of it. ``begin`` and ``take`` say what is to be sent; ``done`` says that the other side is a node."""

    def __init__(self, calls: bool, mode: str, secret: bytes, nonce: bytes) -> None:
        self.calls: Final = calls  # whether this side opened the connection
        self.mode: Final = mode
        self.done = False
        self._secret: Final = secret
        self._own: Final = wire.said(
            wire.OPEN, {"lowest": wire.LOWEST, "highest": wire.HIGHEST, "mode": mode, "nonce": nonce.hex()}
        )
        self._other = b""

    def begin(self) -> bytes:
        """What the side that calls says first. The other one waits until somebody speaks."""
        return self._own if self.calls else b""

    def take(self, frame: Frame) -> bytes:
        if frame.kind == wire.REFUSE:
            raise Refused(f"the other side refuses: {Fields(frame).text('reason')[:400]}")
        if frame.kind == wire.OPEN and not self._other:
            return self._opened(frame)
        if frame.kind == wire.PROOF and self._other and self.mode == SECRET:
            return self._proven(frame)
        raise Refused(f"{frame} where the other side has to prove what it is")

    def _opened(self, frame: Frame) -> bytes:
        fields = Fields(frame)
        lowest, highest, mode = fields.number("lowest"), fields.number("highest"), fields.text("mode")
        if highest < wire.LOWEST or lowest > wire.HIGHEST:
            raise Refused(
                f"the other side speaks versions {lowest} to {highest} of the protocol between nodes, "
                f"this one {wire.LOWEST} to {wire.HIGHEST}"
            )
        if mode != self.mode:
            raise Refused(f"the other side proves who it is by {mode[:20]!r}, this one by {self.mode!r}")
        if len(fields.text("nonce")) != 2 * NONCE:
            raise WireError("open: nonce is not as long as it has to be")
        self._other = frame.payload
        answer = b"" if self.calls else self._own
        if self.mode != SECRET:
            self.done = True
            return answer
        return self._proof(self.calls) if self.calls else answer

    def _proven(self, frame: Frame) -> bytes:
        """The one who calls proves first: nobody learns a proof from a node by asking."""
        if not hmac.compare_digest(wire.frame(frame.kind, frame.payload), self._proof(not self.calls)):
            raise Refused("the other side does not know the secret of this cluster")
        self.done = True
        return b"" if self.calls else self._proof(False)

    def _proof(self, of_caller: bool) -> bytes:
        own = self._own[wire.HEADER.size :]
        called, answered = (own, self._other) if self.calls else (self._other, own)
        label = b"warren, who calls" if of_caller else b"warren, who is called"
        covered = b"".join(len(part).to_bytes(4, "little") + part for part in (label, called, answered))
        return wire.frame(wire.PROOF, hmac.new(self._secret, covered, hashlib.sha256).digest())
