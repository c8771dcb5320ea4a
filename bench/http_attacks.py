"""Attacks over HTTP: long lists, long bodies, long requests. How they are measured is ``stalls.py``'s."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import urllib.error
import urllib.request
from urllib.parse import quote

from bench.bulk_attacks import ATTACKS as ATTACKS  # all there are, these among them
from bench.bulk_attacks import waiting
from bench.stalls import Attack, Target, attack, queues
from warrenmq.client import Properties
from warrenmq.wire.fields import from_python

AS_OCTETS = "application/octet-stream"
LARGEST = 16 << 20  # octets of most requests


def ask(target: Target, path: str, method: str = "GET", body: bytes | None = None, accept: str = "*/*") -> None:
    """What is answered is read as fast as it comes, and thrown away; a refusal is an answer, also one that comes
    while the request is being sent."""
    request = urllib.request.Request(target.http + path, method=method, data=body, headers={"accept": accept})
    request.add_header("authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
    with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(request, timeout=600) as answer:
        while answer.read(1 << 20):
            pass


def many_queues(target: Target) -> None:
    """In an order that is not that of their names."""
    found = queues(target.count(80_000))
    random.Random(1).shuffle(found)
    target.import_definitions(queues=found)


@attack("80,000 queues are listed, sorted, exported and measured")
def lists(target: Target) -> Attack:
    many_queues(target)
    paths = (
        "/api/queues",
        "/api/queues?sort=messages",
        "/api/queues?sort=idle_since&sort_reverse=true&page=1",
        "/api/bindings?sort=destination",
        "/api/definitions",
        "/api/policies-in-force",
        "/api/flow/%2F",
        "/metrics/per-object",
        "/metrics/detailed?family=queue_coarse_metrics&family=exchange_bindings",
    )

    def strike() -> None:
        for path in paths:
            ask(target, path)

    return strike


@attack("100,000 users and permissions are listed")
def users(target: Target) -> Attack:
    names = [f"u{number}" for number in range(target.count(100_000))]
    random.Random(1).shuffle(names)
    accounts = [{"name": name, "password_hash": "", "tags": ""} for name in names]
    rights = [{"user": name, "vhost": "/", "configure": "", "write": "", "read": ""} for name in names]
    target.import_definitions(users=accounts, permissions=rights)

    def strike() -> None:
        for path in ("/users", "/users/without-permissions", "/permissions", "/vhosts/%2F/permissions", "/user-limits"):
            ask(target, f"/api{path}")

    return strike


@attack("a queue with 20,000 consumers is asked for, and its channel")
def consumers(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q")
    for number in range(target.count(20_000)):
        channel.basic_consume("q", f"c{number}")

    def strike() -> None:
        ask(target, "/api/queues/%2F/q")
        ask(target, "/api/consumers?sort=consumer_tag")
        for one in target.api.get("/channels?columns=name"):
            ask(target, "/api/channels/" + quote(one["name"], safe=""))

    return strike


@attack("1,000,000 messages are read as octets, grouped, and got over HTTP")
def octets(target: Target) -> Attack:
    target.connect()
    target.fill("q", target.count(1_000_000), durable=True, delivery_mode=2)
    get = json.dumps({"count": target.count(100_000), "ackmode": "ack_requeue_true", "encoding": "auto"}).encode()

    def strike() -> None:
        ask(target, "/api/queues/%2F/q/peek", accept=AS_OCTETS)
        ask(target, "/api/queues/%2F/q/deaths")
        ask(target, "/api/queues/%2F/q/get", "POST", get)

    return strike


@attack("a body of 256 MB is saved from the console")
def saved(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q")
    channel.confirm_select()
    channel.basic_publish("", "q", bytes(target.count(256 << 20)))
    channel.wait_for_confirms(600)

    def strike() -> None:
        ask(target, "/api/queues/%2F/q/body?position=1")
        ask(target, "/api/queues/%2F/q/peek", accept=AS_OCTETS)

    return strike


@attack("a lease of 300,000 messages of which every other one is settled is looked at")
def runs(target: Target) -> Attack:
    count = target.count(300_000)
    target.connect()
    target.fill("q", count, durable=True, delivery_mode=2)
    lease = target.api.checked("POST", "/queues/%2F/q/leases", {"count": count})["id"]
    for start in range(0, count, 20_000):
        some = [[slot, slot] for slot in range(start, min(count, start + 20_000), 2)]
        target.api.checked("POST", f"/queues/%2F/q/leases/{lease}/settle", {"ack": some})
    return lambda: ask(target, f"/api/queues/%2F/q/leases/{lease}")


@attack("300,000 messages wait at a delayed exchange, which is listed, sorted and drawn")
def delayed_listed(target: Target) -> Attack:
    waiting(target, target.count(300_000), True)

    def strike() -> None:
        for path in ("/delayed", "/delayed/%2F/d", "/delayed/%2F/d/messages?count=1000", "/exchanges/%2F/d"):
            ask(target, f"/api{path}")

    return strike


@attack("requests as long as they may be")
def requests(target: Target) -> Attack:
    size = target.count(LARGEST)
    members = b"{" + b",".join(b'"a%d":1' % number for number in range(size // 13)) + b"}"
    since = b'{"since":[' + b",".join([b"1"] * (size // 2 - 20)) + b"]}"
    text = b'{"value":"' + b"," * (size - 100) + b'"}'
    tags = b'{"password":"x","tags":"' + b"a," * (size // 2 - 100) + b'"}'
    pattern = b'{"pattern":"' + b"a|" * (size // 2 - 100) + b'","definition":{"max-length":1}}'

    def strike() -> None:
        for path in ("/whatif", "/definitions", "/exchanges/%2F/amq.default/publish"):
            ask(target, f"/api{path}", "POST", members)
        ask(target, "/api/whatif", "POST", since)
        for path in ("/global-parameters/x", "/parameters/shovel/%2F/x", "/queues/%2F/x"):
            ask(target, f"/api{path}", "PUT", text)
        ask(target, "/api/users/x", "PUT", tags)
        ask(target, "/api/vhosts/x", "PUT", tags)
        ask(target, "/api/policies/%2F/x", "PUT", pattern)
        ask(
            target,
            "/api/permissions/%2F/guest",
            "PUT",
            b'{"configure":"","write":"","read":"' + b"a" * (size - 100) + b'"}',
        )

    return strike


@attack("routing is explained for 1,000 keys and 5,000 bindings")
def explained(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q")
    for number in range(target.count(5_000)):
        channel.queue_bind("q", "amq.topic", f"#.{number}.*")
    query = quote(json.dumps({"CC": [f"a.{number}.b" for number in range(1_000)]}))
    return lambda: ask(target, f"/api/exchanges/%2F/amq.topic/explain?routing_key=a&headers={query}")


@attack("300 messages, each with headers that 20,000 bindings ask for")
def headers(target: Target) -> Attack:
    exchange = {"name": "h", "vhost": "/", "type": "headers", "durable": False, "auto_delete": False, "internal": False}
    bindings = [
        {
            "source": "h",
            "vhost": "/",
            "destination": "q000000",
            "destination_type": "queue",
            "routing_key": "",
            "arguments": {"x-match": "any", "a": 1, "k": number},
        }
        for number in range(target.count(20_000))
    ]
    target.import_definitions(exchanges=[{**exchange, "arguments": {}}], queues=queues(1), bindings=bindings)
    channel = target.connect().channel()
    channel.confirm_select()

    def strike() -> None:
        channel.publish_many("h", "", [b"x"] * 300, Properties(headers=from_python({"a": 1})))
        channel.wait_for_confirms(600)

    return strike


@attack("300 messages, each with a key that can be at 16,384 nodes of a topic exchange")
def topics(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q")
    words = max(2, 13 + (target.scale >= 1))
    for number in range(min(1 << words, target.count(1 << words))):
        key = ".".join("*a"[number >> word & 1] for word in range(words))
        channel.queue_bind("q", "amq.topic", key + ".#")
    channel.confirm_select()
    beginning = ".".join("a" * words)

    def strike() -> None:
        for number in range(300):
            channel.basic_publish("amq.topic", f"{beginning}.{number}", b"x")
        channel.wait_for_confirms(600)

    return strike


@attack("300 messages, each with another key, to an exchange to which 2,000 are bound")
def spread(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.exchange_declare("top", "fanout")
    for number in range(target.count(2_000)):
        channel.exchange_declare(f"e{number}", "fanout")
        channel.exchange_bind(f"e{number}", "top")
    channel.confirm_select()

    def strike() -> None:
        for number in range(300):
            channel.basic_publish("top", str(number), b"x")
        channel.wait_for_confirms(600)

    return strike
