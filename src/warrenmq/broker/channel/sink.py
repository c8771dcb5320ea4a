"""Where a connection's bytes go: what the broker asks of a transport. The server and the tests subclass it."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from warrenmq.broker.channel.body_frames import BodyFrames

AT_ONCE: Final = 1 << 20  # octets of a long body that are cut for a transport which takes all it gets


@mypyc_attr(allow_interpreted_subclasses=True)
class Sink:
    """The transport of one connection: bytes out, reading paused and resumed, the end."""

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    def write_all(self, parts: list[bytes]) -> None:
        """The parts one behind the other; a transport that can gather them copies nothing."""
        self.write(b"".join(parts))

    def write_body(self, frames: BodyFrames) -> None:
        """A long body, behind what was written. A transport may take the frames when its client does."""
        while frames.left:
            self.write_all(frames.next(AT_ONCE))

    def pending(self) -> int:
        """Octets that were written and that the system has not taken yet."""
        return 0

    def close(self) -> None:
        """Close after what was written has gone out."""
        raise NotImplementedError

    def pause_reading(self) -> None:
        """Stop reading from the client (flow control, alarms)."""

    def resume_reading(self) -> None:
        pass
