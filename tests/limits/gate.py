"""Coming to the broker's gate step by step, on the virtual clock.

Duty: a client that does as much of the handshake as a test wants, and time that moves for the wire's timers too.
"""

from __future__ import annotations

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.constants import PROTOCOL_HEADER
from warrenmq.wire.fields import Field, Table


def advance(core: Core, milliseconds: int) -> None:
    """Fire what becomes due of both kinds: the rules' timers and the wire's."""
    broker = core.broker
    end = core.clock.now_ms() + milliseconds
    while True:
        clocks = (broker.services.timers, broker.services.io_timers)
        dues = [due for due in (timers.next_due() for timers in clocks) if 0 <= due <= end]
        if not dues:
            break
        core.clock.set_ms(max(min(dues), core.clock.now_ms()))
        broker.begin_turn()
        broker.run_timers()
        broker.end_turn()
    core.clock.set_ms(end)
    core.turn()


def arrive(core: Core, loopback: bool = True) -> CoreClient:
    """Connected, and nothing said yet."""
    client = CoreClient(core)
    client.connection.peer.is_loopback = loopback
    return client


def log_in(
    client: CoreClient,
    user: str = "guest",
    password: str = "guest",
    mechanism: str = "PLAIN",
    response: bytes | None = None,
    capabilities: tuple[str, ...] = ("authentication_failure_close",),
) -> CoreClient:
    """Up to start-ok."""
    table: Table = {name: Field("t", True) for name in capabilities}
    client.feed(PROTOCOL_HEADER)
    client.send(
        "connection.start-ok",
        0,
        client_properties={"capabilities": Field("F", table)},
        mechanism=mechanism,
        response=b"\0" + user.encode() + b"\0" + password.encode() if response is None else response,
        locale="en_US",
    )
    return client


def tune(client: CoreClient, channel_max: int = 2047, frame_max: int = 131072, heartbeat: int = 0) -> CoreClient:
    client.send("connection.tune-ok", 0, channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)
    return client


def enter(client: CoreClient, vhost: str = "/") -> CoreClient:
    client.send("connection.open", 0, virtual_host=vhost)
    return client


def connect(core: Core, user: str = "guest", password: str = "guest", vhost: str = "/", **tuning: int) -> CoreClient:
    """The whole handshake; what was said is kept."""
    return enter(tune(log_in(arrive(core), user, password), **tuning), vhost)


def refusal(client: CoreClient) -> str:
    """Code and text of the connection.close that came, "" when none did."""
    closes = [got for got in client.take() if got.name == "connection.close"]
    assert len(closes) <= 1
    return f"{closes[0]['reply_code']} {closes[0]['reply_text']}" if closes else ""
