"""The first frames a client gets, ``connection.start`` and ``.tune``: for all alike, until what they say changes.

Duty: those octets. Each connection begins with them, and a table of a dozen fields is slow to encode.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.node import Node
from warrenmq.broker.services.limits import Limits
from warrenmq.wire.fields import Field, Table
from warrenmq.wire.methods import method_frame

CAPABILITIES: Final = [
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
]


@final
class Greeting:
    """The facts that a node tells of itself before it knows who is there."""

    def __init__(self, node: Node) -> None:
        self._node: Final = node
        self._frame: bytes = b""
        # what the frame was made from, beside what never changes
        self._mechanisms: str = ""
        self._cluster_name: str = ""
        self._http_port: i64 = 0
        self._https_port: i64 = 0
        self._tune: bytes = b""
        self._channel_max: i64 = -1
        self._frame_max: i64 = -1
        self._heartbeat: i64 = -1

    def frame(self, mechanisms: str) -> bytes:
        node = self._node
        if (
            mechanisms != self._mechanisms
            or node.cluster_name != self._cluster_name
            or node.http_port != self._http_port
            or node.https_port != self._https_port
        ):
            self._mechanisms = mechanisms
            self._cluster_name = node.cluster_name
            self._http_port = node.http_port
            self._https_port = node.https_port
            self._frame = method_frame(
                0,
                "connection.start",
                version_major=0,
                version_minor=9,
                server_properties=self._properties(),
                mechanisms=mechanisms.encode(),
                locales=b"en_US",
            )
        return self._frame

    def tune(self, limits: Limits) -> bytes:
        if (
            limits.channel_max != self._channel_max
            or limits.frame_max != self._frame_max
            or limits.heartbeat != self._heartbeat
        ):
            self._channel_max = limits.channel_max
            self._frame_max = limits.frame_max
            self._heartbeat = limits.heartbeat
            self._tune = method_frame(
                0,
                "connection.tune",
                channel_max=limits.channel_max,
                frame_max=limits.frame_max,
                heartbeat=limits.heartbeat,
            )
        return self._tune

    def _properties(self) -> Table:
        node = self._node
        capabilities: Table = {name: Field("t", True) for name in CAPABILITIES}
        properties: Table = {
            "capabilities": Field("F", capabilities),
            "cluster_name": Field("S", node.cluster_name),
            "copyright": Field("S", "Copyright the Warren authors"),
            "information": Field("S", "Licensed under the Apache License 2.0"),
            "platform": Field("S", node.platform),
            "product": Field("S", "RabbitMQ"),
            "version": Field("S", node.rabbitmq_version),
            "warren_version": Field("S", node.version),
        }
        if node.http_port:
            properties["warren_http_port"] = Field("I", int(node.http_port))
        if node.https_port:
            properties["warren_https_port"] = Field("I", int(node.https_port))
        return properties
