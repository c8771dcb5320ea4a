"""Who asks and whether they may: Basic authentication and the levels of ``endpoint.py``.

Answers are RabbitMQ 3.10's: 401 for everything, with its reasons. Tags decide what the API shows and lets change;
what a user may do with queues and exchanges is decided by permissions, in the broker (``direct.py``).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress

from starlette.requests import Request

from warrenmq.broker.access import User
from warrenmq.http import endpoint
from warrenmq.http.bridge import ADMINISTRATOR, MANAGEMENT_TAGS, MONITORING, POLICYMAKER, Bridge
from warrenmq.http.errors import ApiError, not_authorised

REALM = 'Basic realm="RabbitMQ Management"'
FAILED_LOGIN_WAIT = 0.25  # seconds; guessing takes its time, the loop does not wait


class LoginRequired(Exception):
    """No credentials at all: 401 without a body, so that browsers ask."""


async def authenticate(request: Request, bridge: Bridge) -> User:
    header = request.headers.get("authorization", "")
    scheme, _, encoded = header.partition(" ")
    if not encoded:
        raise LoginRequired
    username, password = _credentials(scheme, encoded)
    peer = request.client.host if request.client is not None else ""
    user = bridge.access.authenticate(username, password)
    if user is None:
        bridge.broker.notes.event("warning", "http_login_refused", {"peer": peer, "user": username})
        await asyncio.sleep(FAILED_LOGIN_WAIT)
        raise ApiError(401, "not_authorized", "Login failed")
    if username in bridge.server.settings.loopback_users and not is_loopback(peer):
        bridge.broker.notes.event("warning", "http_login_refused", {"peer": peer, "user": username})
        raise not_authorised("User can only log in via localhost")
    if not MANAGEMENT_TAGS.intersection(user.tags):
        raise not_authorised("Not management user")
    return user


def _credentials(scheme: str, encoded: str) -> tuple[str, str]:
    try:
        if scheme.lower() != "basic":
            raise ValueError
        name, separator, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        if not separator:
            raise ValueError
    except (binascii.Error, ValueError):
        raise ApiError(401, "not_authorized", "Login failed") from None
    return name, password


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.split("%")[0]).is_loopback
    except ValueError:
        return False


def authorise(level: str, user: User, vhost: str | None, bridge: Bridge) -> None:
    """Raise unless this user may use an endpoint of this level, in this vhost if the path names one."""
    if level == endpoint.MANAGEMENT or ADMINISTRATOR in user.tags:
        return
    if level == endpoint.ADMINISTRATOR:
        raise not_authorised("Not administrator user")
    if level == endpoint.MONITORING:
        if MONITORING not in user.tags:
            raise not_authorised("Not monitor user")
        return
    if level in (endpoint.POLICYMAKER, endpoint.POLICYMAKER_VHOST) and POLICYMAKER not in user.tags:
        raise not_authorised("User not authorised to access object")
    if level == endpoint.POLICYMAKER:
        return
    if level == endpoint.VHOST_VISIBLE and MONITORING in user.tags:
        return
    if vhost is not None and not bridge.access.vhost_allowed(user.name, vhost):
        # a vhost that does not exist looks the same as one that is somebody else's
        raise not_authorised("User not authorised to access virtual host")
