"""The page of the HTTP API, made from its OpenAPI description. The examples are real: a broker inside this process is
asked, and what it answers is shown, shortened.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from typing import Any

import warrenmq
from warrenmq.client import Connection
from warrenmq.http.description.openapi import description
from warrenmq.http.table import ENDPOINTS
from warrenmq.testing import Broker

HEAD = """# The HTTP API, endpoint by endpoint

Every endpoint with who may call it, what it takes and what it answers. The page is made from the OpenAPI description,
which a broker also serves at `/api/openapi.json`. The answers shown are a broker's own, taken when the site was built:
of a list the first item, of a long object the first members. [The HTTP API](http-api.md) tells how to log in, how to
page through lists and how errors look. Where "vhost" may call, the caller needs permissions in the vhost of the path,
or the tag `administrator`.

"""
#: what stands for a placeholder of a path, for a part of the API and else
PLACES = {
    "vhost": "%2F",
    "user": "ann",
    "destination": "orders",
    "source": "events",
    "type": "q",
    "props": "order.%23",
    "name": "orders",
    "node": "",
    "exchange": "events",
    "component": "federation",
    "password": "s3cret",
    "port": "",
    "protocol": "amqp",
    "within": "1",
    "unit": "weeks",
    "exchanges.name": "events",
    "policies.name": "short",
    "operator-policies.name": "short",
    "vhosts.vhost": "shop",
    "global-parameters.name": "colour",
    "vhost-limits.name": "max-queues",
    "user-limits.name": "max-channels",
}
#: bodies that are sent, in this order: whatever is asked for afterwards is there
SENT: dict[tuple[str, str], Any] = {
    ("put", "/api/vhosts/{vhost}"): {"description": "the shop", "tags": "production"},
    ("put", "/api/users/{user}"): {"password": "s3cret", "tags": "monitoring"},
    ("put", "/api/permissions/{vhost}/{user}"): {"configure": "^ann[.]", "write": ".*", "read": ".*"},
    ("put", "/api/topic-permissions/{vhost}/{user}"): {"exchange": "events", "write": "^order[.]", "read": ".*"},
    ("put", "/api/exchanges/{vhost}/{name}"): {"type": "topic", "durable": True},
    ("put", "/api/queues/{vhost}/{name}"): {"durable": True, "arguments": {"x-max-length": 100000}},
    ("post", "/api/bindings/{vhost}/e/{source}/{type}/{destination}"): {"routing_key": "order.#"},
    ("post", "/api/exchanges/{vhost}/{name}/publish"): {
        "routing_key": "order.new",
        "payload": "an order",
        "payload_encoding": "string",
        "properties": {"delivery_mode": 2, "message_id": "order-4711"},
    },
    ("put", "/api/policies/{vhost}/{name}"): {
        "pattern": "^tmp[.]",
        "definition": {"message-ttl": 60000},
        "apply-to": "queues",
        "priority": 1,
    },
    ("put", "/api/operator-policies/{vhost}/{name}"): {
        "pattern": "^tmp[.]",
        "definition": {"max-length": 1000000},
        "apply-to": "queues",
    },
    ("put", "/api/vhost-limits/{vhost}/{name}"): {"value": 1000},
    ("put", "/api/user-limits/{user}/{name}"): {"value": 50},
    ("put", "/api/global-parameters/{name}"): {"value": "green"},
    ("put", "/api/cluster-name"): {"name": "warren@example"},
    ("post", "/api/queues/{vhost}/{name}/get"): {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"},
    ("post", "/api/queues/{vhost}/{name}/leases"): {"count": 10, "ttl": 60},
}
#: not asked: they change what later examples need, or need something that is not there
SHOWN = ("get",)
MOST = 12  # members of an object that are shown


class Asker:
    """Asks a broker and keeps its answers."""

    def __init__(self, broker: Broker, connection: str) -> None:
        self._url = broker.http_url
        self._places = {**PLACES, "port": str(broker.port), "connections.name": connection, "channels.name": ""}

    def path(self, tag: str, path: str) -> str:
        for name in (word[1:-1] for word in path.split("/") if word.startswith("{")):
            path = path.replace(f"{{{name}}}", self._places.get(f"{tag}.{name}", self._places.get(name, "")))
        return path

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            self._url + path, method=method.upper(), data=None if body is None else json.dumps(body).encode()
        )
        request.add_header("Authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def page() -> str:
    api = description(ENDPOINTS, warrenmq.__version__)
    schemas = api["components"]["schemas"]
    with Broker() as broker, Connection(broker.url) as connection:
        connection.channel()
        probe = Asker(broker, "")
        _, connections = probe.ask("GET", "/api/connections")
        asker = Asker(broker, urllib.request.quote(connections[0]["name"]) if connections else "")
        asked = {key: _send(asker, key, body) for key, body in SENT.items()}
        parts: dict[str, list[str]] = {}
        for path, operations in sorted(api["paths"].items()):
            for method, operation in operations.items():
                tag = operation["tags"][0]
                answer = asked.get((method, path))
                if answer is None and method in SHOWN:
                    status, found = asker.ask(method, asker.path(tag, path))
                    answer = found if status == 200 else None
                parts.setdefault(tag, []).append(
                    _operation(method, path, asker.path(tag, path), operation, schemas, answer)
                )
    return HEAD + "".join(f"## {tag}\n\n" + "".join(shown) for tag, shown in sorted(parts.items()))


def _send(asker: Asker, key: tuple[str, str], body: Any) -> Any:
    method, path = key
    status, answer = asker.ask(method, asker.path(path.split("/")[2], path), body)
    if status >= 300:
        raise ValueError(f"the example {method} {path} was refused: {status} {answer}")
    return answer


def _operation(method: str, path: str, real: str, operation: dict[str, Any], schemas: Any, answer: Any) -> str:
    lines = [f"### {method.upper()} {path} {{ #{operation['operationId']} }}", "", f"{operation['summary']}."]
    lines += ["", f"Who may: {operation['x-allowed-to']}.", ""]
    if any(parameter["in"] == "query" for parameter in operation["parameters"]):
        lines += ["Takes the parameters of [lists](http-api.md#rules).", ""]
    body = operation.get("requestBody")
    if body is not None:
        lines += _fields(body["content"]["application/json"]["schema"], schemas)
    sent = SENT.get((method, path))
    if sent is not None or (method in SHOWN and answer is not None):
        command = "curl -u guest:guest" + (f" -X {method.upper()}" if method != "get" else "")
        lines += ["```text", f"{command} http://127.0.0.1:15672{real}" + (f" -d '{json.dumps(sent)}'" if sent else "")]
        lines += ["```", ""]
    if answer is not None:
        lines += ["```json", json.dumps(shortened(answer), indent=2, ensure_ascii=False), "```", ""]
    return "\n".join(lines) + "\n"


def _fields(schema: Any, schemas: Any) -> list[str]:
    if "$ref" not in schema:
        return []
    model = schemas[schema["$ref"].rpartition("/")[2]]
    lines = ["| member | type | |", "|---|---|---|"]
    for name, field in model.get("properties", {}).items():
        default = f"default `{json.dumps(field['default'])}`" if "default" in field else ""
        needed = "required" if name in model.get("required", ()) else default
        lines.append(f"| `{name}` | {_type(field)} | {needed} |")
    return [*lines, ""] if len(lines) > 2 else []


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(one) for one in field["anyOf"]))
    if "enum" in field:
        return ", ".join(f"`{one}`" for one in field["enum"])
    if "$ref" in field:
        return "object"
    return str(field.get("type", "any"))


def shortened(value: Any, depth: int = 0) -> Any:
    """So much of an answer that its form can be seen."""
    if isinstance(value, list):
        return [shortened(item, depth + 1) for item in value[:1]]
    if isinstance(value, dict):
        most = MOST if depth < 2 else 4
        return {name: shortened(member, depth + 1) for name, member in list(value.items())[:most]}
    return value[:80] + "…" if isinstance(value, str) and len(value) > 80 else value
