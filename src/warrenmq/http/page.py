"""``/``: one page that says what runs here and how to connect, with its style and its script in files beside it.

Names of queues are shown to those who may see them: on the page itself to a request with credentials, otherwise the
page asks for them and fetches the list from the API. Nothing is loaded from anywhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from html import escape
from importlib import resources

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from warrenmq.broker.access.access import User
from warrenmq.http.auth import LoginRequired, authenticate
from warrenmq.http.bridge import Bridge
from warrenmq.http.errors import ApiError
from warrenmq.server.listening import shown

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
FILES = {"page.css": "text/css", "page.js": "text/javascript"}
SHOWN = 500


def file(name: str) -> Callable[[Request], Awaitable[Response]]:
    """The handler of one of the files that belong to the page."""
    content = resources.files("warrenmq.http").joinpath(name).read_bytes()

    async def show(request: Request) -> Response:
        return Response(content, media_type=FILES[name], headers={"cache-control": "no-cache"})

    return show


async def render(request: Request, bridge: Bridge) -> Response:
    user = None
    try:
        user = await authenticate(request, bridge)
    except LoginRequired:
        pass
    except ApiError as error:
        return Response(error.args[0], status_code=error.status)
    template = resources.files("warrenmq.http").joinpath("page.html").read_text()
    vhosts = bridge.broker.vhosts.values()
    values = {
        "version": bridge.broker.node.version,
        "rabbitmq": bridge.broker.node.rabbitmq_version,
        "node": bridge.node,
        "address": shown(bridge.server.amqp_address),
        "connections": str(len(bridge.open_connections())),
        "queues": str(sum(len(vhost.queues) for vhost in vhosts)),
        "messages": str(sum(int(queue.ready + queue.unacked) for vhost in vhosts for queue in vhost.queues.values())),
    }
    for name, value in values.items():
        template = template.replace("{{" + name + "}}", escape(value))
    template = template.replace("{{login_hidden}}", " hidden" if user else "")
    template = template.replace("{{table_hidden}}", "" if user else " hidden")
    template = template.replace("{{rows}}", rows(bridge, user) if user else "")
    headers = {"content-security-policy": POLICY, "cache-control": "no-store"}
    return HTMLResponse(template, headers=headers)


def rows(bridge: Bridge, user: User) -> str:
    """The longest queues this user may see."""
    queues = [queue for vhost in bridge.visible_vhosts(user) for queue in vhost.queues.values()]
    queues.sort(key=lambda queue: -int(queue.ready + queue.unacked))
    lines = []
    for queue in queues[:SHOWN]:
        cells = [queue.name.name, queue.name.virtual_host, int(queue.ready), int(queue.unacked)]
        cells += [int(queue.ready + queue.unacked), queue.consumer_count()]
        lines.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>")
    return "\n".join(lines)
