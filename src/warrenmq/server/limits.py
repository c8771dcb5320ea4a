"""The settings that the broker is given at the start and that a reload may change while it runs."""

from __future__ import annotations

from warrenmq.broker.broker import Broker
from warrenmq.broker.services.alarms import Alarms
from warrenmq.server.config import Settings

OFFERS = (
    "max_message_size",
    "channel_max",
    "frame_max",
    "heartbeat",
    "handshake_timeout",
    "connection_max",
    "consumer_timeout",
    "auth_mechanisms",
    "loopback_users",
)


def set_offers(broker: Broker, settings: Settings) -> None:
    """What clients are offered and allowed. What was negotiated with a connected client stays as it was."""
    limits = broker.services.limits
    limits.max_message_size = settings.max_message_size
    limits.channel_max = settings.channel_max
    limits.frame_max = settings.frame_max
    limits.heartbeat = settings.heartbeat
    limits.handshake_timeout = int(settings.handshake_timeout * 1000)
    limits.connection_max = settings.connection_max
    limits.consumer_timeout = int(settings.consumer_timeout * 1000)
    limits.auth_mechanisms = list(settings.auth_mechanisms)
    limits.loopback_users = list(settings.loopback_users)


def set_memory_limit(alarms: Alarms, settings: Settings) -> None:
    if settings.memory_high_watermark <= 1:
        alarms.set_memory_watermark(float(settings.memory_high_watermark))
    else:
        alarms.set_memory_limit(int(settings.memory_high_watermark))
