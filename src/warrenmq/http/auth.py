"""Who asks and whether they may: Basic authentication, the console's sessions, and the levels of ``endpoint.py``.

Answers are RabbitMQ 3.10's: 401 for everything, with its reasons. Tags decide what the API shows and lets change;
what a user may do with queues and exchanges is decided by permissions, in the broker (``direct.py``).
"""

from __future__ import annotations

import base64
import binascii

from starlette.requests import Request

from warrenmq.broker.access.access import User
from warrenmq.broker.access.failed_logins import REFUSED
from warrenmq.broker.connection.reports import cut
from warrenmq.broker.vhost.totals import HTTP
from warrenmq.http import endpoint
from warrenmq.http.bridge import ADMINISTRATOR, MANAGEMENT_TAGS, MONITORING, POLICYMAKER, Bridge
from warrenmq.http.console import cookie
from warrenmq.http.errors import ApiError, not_authorised
from warrenmq.http.protocol.peer import Peer, peer_of

REALM = 'Basic realm="RabbitMQ Management"'


class LoginRequired(Exception):
    """The answer to no credentials at all: 401 without a body, so that browsers ask."""


async def authenticate(request: Request, bridge: Bridge) -> User:
    header = request.headers.get("authorization", "")
    scheme, _, encoded = header.partition(" ")
    if encoded:
        return await log_in(request, bridge, *_credentials(scheme, encoded))
    user = by_session(request, bridge)
    if user is None:
        raise LoginRequired
    return user


def by_session(request: Request, bridge: Bridge) -> User | None:
    """Who is logged in at the console that sends this, and may still come; None where nobody is."""
    token = cookie.token_of(request)
    user = bridge.sessions.user(token, bridge.now()) if token else None
    if user is not None:
        _admit(user, peer_of(request, bridge.server.settings.http_proxies), bridge)
    return user


async def log_in(request: Request, bridge: Bridge, username: str, password: str) -> User:
    """The user whose password this is, who may use the API from where the request comes."""
    peer = peer_of(request, bridge.server.settings.http_proxies)
    user = await _judged(bridge, peer.address, username, password)
    bridge.broker.registry.totals.login(user is not None, HTTP)
    if user is None:
        _log_refusal(bridge, peer.address, username)
        raise ApiError(401, "not_authorized", "Login failed")
    _admit(user, peer, bridge)
    return user


def _admit(user: User, peer: Peer, bridge: Bridge) -> None:
    if user.name in bridge.server.settings.loopback_users and not peer.local:
        _log_refusal(bridge, peer.address, user.name)
        raise not_authorised("User can only log in via localhost")
    if not MANAGEMENT_TAGS.intersection(user.tags):
        raise not_authorised("Not management user")


async def _judged(bridge: Bridge, address: str, username: str, password: str) -> User | None:
    """The user, if the password is theirs; looked at when it is this pair's turn."""
    failed = bridge.access.failed_logins
    wait = int(failed.wait(username, address, bridge.broker.services.io_now()))
    if wait == REFUSED:
        _log_refusal(bridge, address, username)
        reason = "too many failed logins from this address: the password was not looked at"
        raise ApiError(429, "too_many_requests", reason)
    if wait > 0:
        await bridge.wait(wait)
    user = bridge.access.authenticate(username, password)
    failed.over(username, address, wait > 0, user is not None, bridge.broker.services.io_now())
    return user


def _log_refusal(bridge: Bridge, address: str, username: str) -> None:
    bridge.broker.services.notes.event("warning", "http_login_refused", {"peer": address, "user": cut(username)})


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
    # what is not there is 404 for everybody, which its handler says
    if vhost in bridge.broker.vhosts and not bridge.access.vhost_allowed(user.name, vhost):
        raise not_authorised("User not authorised to access virtual host")
