"""/healthz and /readyz: what an orchestrator asks, without login and with an answer that tells nothing else.

`healthz`: the process turns its loop; who fails it is restarted, so it never fails for a reason that a restart does not
cure. `readyz`: clients are taken and answered; who fails it gets no new ones. An alarm is no reason: it holds up
publishers, and the consumers who would end it must get in.
"""

from __future__ import annotations

from starlette.responses import PlainTextResponse, Response

from warrenmq.http.bridge import Bridge


def healthz() -> Response:
    return PlainTextResponse("ok\n")


def readyz(bridge: Bridge) -> Response:
    if bridge.server.stopping:
        return PlainTextResponse("stopping\n", status_code=503)
    starting = bridge.server.starting
    if starting is not None:
        done, total = starting.progress
        return PlainTextResponse(f"starting: {done} of {total} octets of the log are read\n", status_code=503)
    if not bridge.listening:
        return PlainTextResponse("takes no clients (stop_app or suspend_listeners)\n", status_code=503)
    return PlainTextResponse("ok\n")
