"""The broker's HTTP API, as far as the connector needs it: which queues there are, and leases.

Duty: calls with clear errors. ``/api/queues`` is the same on RabbitMQ (with its management plug-in); leases are
Warren's. Not here: when to lease and when to settle (``leased.py``).

    POST   /api/queues/{vhost}/{name}/leases   {"count": n | "bytes": n, "ttl_ms": n, "owner": text, "key": text}
           -> {"id": text, "count": n}         count 0: the queue had nothing, no lease was made
    GET    …/leases?owner=text                 -> [{"id", "owner", "key", "count"}]
    POST   …/leases/{id}/settle                {"ack": [[first, last]], "reject": …, "requeue": …, "delay": …}
    POST   …/leases/{id}/ack | /nack | /renew  -> 204; 410 when the lease has expired, 404 when it is settled or unknown
    DELETE …/leases/{id}                       -> 204, its messages are back in the queue
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from warrenmq.client.http_api import HttpAddress, HttpAnswer, HttpClient
from warrenmq.spark.addresses import Address, answered, in_turn
from warrenmq.spark.connect import STALLED, BrokerLost, tls_context
from warrenmq.spark.options import OptionError, Options
from warrenmq.spark.patience import Patience
from warrenmq.spark.secret import password


class LeaseExpired(RuntimeError):
    """The lease ran out: its messages went back to the queue and may come again. The text names it."""


@dataclass(frozen=True)
class Lease:
    """A lease: ``count`` messages are left in it, ``settled`` were acted upon; others went with a crash of the
    broker."""

    id: str
    count: int
    key: str = ""
    settled: int = 0
    open: tuple[tuple[int, int], ...] = ()  # slots that are left, as runs; of a lease that was asked for alone

    @property
    def known(self) -> int:
        """Messages of which one knows what became of them."""
        return self.count + self.settled

    def slots(self) -> list[int]:
        return [slot for first, last in self.open for slot in range(first, last + 1)]


def _lease_of(answer: dict[str, Any]) -> Lease:
    return Lease(
        str(answer["id"]),
        int(answer.get("left", answer.get("count", 0))),
        str(answer.get("key", "")),
        int(answer.get("settled", 0)),
        tuple((int(first), int(last)) for first, last in answer.get("open", ())),
    )


NOT_LEADER = "this node does not lead its cluster"


class HttpApi:
    """A client of the broker's HTTP API that tries the next address when one does not answer."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and decoded JSON; tries again when nobody listens."""
        patience = Patience(self.options)
        while True:
            try:
                return self._call(method, path, body)
            except OSError as error:
                if not patience.again():
                    raise BrokerLost(
                        f"no answer from the HTTP API at {self.options.http_address} "
                        f"(options httpHost, httpPort) {patience.tried}: {error}"
                    ) from None

    def _call(self, method: str, path: str, body: object, timeout: float = 30) -> tuple[int, Any]:
        """One address after the other, until one answers."""
        addresses = self.options.http_hosts
        failures: list[str] = []
        for address in in_turn(addresses):
            try:
                answer = self._ask(address, method, path, body, timeout)
            except OSError as error:
                if len(addresses) == 1:
                    raise
                failures.append(f"{address}: {error or type(error).__name__}")
            else:
                answered(addresses, address)
                return answer
        raise OSError("; ".join(failures))

    def _ask(self, address: Address, method: str, path: str, body: object, timeout: float) -> tuple[int, Any]:
        payload = None if body is None else json.dumps(body).encode()
        try:
            answer = self._client(address, timeout).ask(method, path, payload)
        except ssl.SSLCertVerificationError as error:
            raise _no_certificate(address, error) from None
        if answer.status == 503 and _follows(answer):
            raise ConnectionRefusedError(NOT_LEADER)
        if answer.status in (401, 403):
            raise BrokerLost(f"the HTTP API at {address} refused user '{self.options.username}'")
        try:
            return answer.status, answer.json()
        except ValueError:
            return answer.status, None

    def _client(self, address: Address, timeout: float) -> HttpClient:
        options = self.options
        tls = options.http_tls
        where = HttpAddress(address.host, address.port, tls, "", options.username, password(options))
        return HttpClient(where, timeout, tls_context(options) if tls else None, options.tls_server_name or "")

    # --- queues

    def names(self, stream: bool) -> list[str]:
        """The names in the option, patterns replaced by the queues that match them."""
        wanted = self.options.queues
        if all(name.pattern is None for name in wanted):
            return [name.text for name in wanted]
        status, queues = self.call("GET", f"/api/queues/{quote(self.options.virtual_host, safe='')}")
        if status != 200 or not isinstance(queues, list):
            raise BrokerLost(f"the HTTP API at {self.options.http_address} did not list queues ({status})")
        there = [
            str(queue["name"])
            for queue in queues
            if (str(queue.get("type", queue.get("arguments", {}).get("x-queue-type", ""))) == "stream") == stream
        ]
        found: dict[str, None] = {}
        for name in wanted:
            matches = [name.text] if name.pattern is None else [one for one in there if name.matches(one)]
            found.update(dict.fromkeys(sorted(matches)))
        if not found:
            kind = "stream" if stream else "queue"
            texts = ", ".join(name.text for name in wanted)
            raise OptionError(f"no {kind} in vhost '{self.options.virtual_host}' matches {texts}")
        return list(found)

    def stream_id(self, stream: str) -> str | None:
        """Which stream has this name; None when nobody answers or this user may not ask: streams need no HTTP."""
        path = f"/api/queues/{quote(self.options.virtual_host, safe='')}/{quote(stream, safe='')}/stream"
        try:
            status, answer = self._call("GET", path, None, timeout=5)
        except (OSError, BrokerLost):
            return None
        return str(answer["id"]) if status == 200 and isinstance(answer, dict) and "id" in answer else None

    # --- looking

    def _peek(self, queue: str) -> str:
        return f"/api/queues/{quote(self.options.virtual_host, safe='')}/{quote(queue, safe='')}/peek"

    def can_peek(self) -> bool:
        """False for a Warren older than peeking, or where there is no such queue."""
        name = next(iter(self.names(stream=False)))
        status, answer = self.call("GET", f"{self._peek(name)}?count=0")
        if status not in (200, 404):
            raise BrokerLost(f"queue '{name}' cannot be looked at: {status} {_reason(answer)}")
        return status == 200

    def positions(self, queue: str) -> tuple[int, int, int]:
        """First position, one behind the last, and how many messages wait."""
        status, answer = self.call("GET", f"{self._peek(queue)}?count=0&state=waiting")
        if status != 200 or not isinstance(answer, dict):
            raise BrokerLost(f"queue '{queue}' cannot be looked at: {status} {_reason(answer)}")
        return int(answer["first"]), int(answer["end"]), int(answer["messages"])

    @contextmanager
    def peek(self, queue: str, first: int, end: int) -> Iterator[http.client.HTTPResponse]:
        """The messages at these positions, as octets (``peeked.py`` reads them)."""
        address = in_turn(self.options.http_hosts)[0]
        path = f"{self._peek(queue)}?first={first}&end={end}"
        octets = {"Accept": "application/octet-stream"}
        try:
            connection, response = self._client(address, STALLED).begin("GET", path, headers=octets)
        except ssl.SSLCertVerificationError as error:
            raise _no_certificate(address, error) from None
        try:
            if response.status == 503:
                raise ConnectionRefusedError(NOT_LEADER)  # whoever reads asks the next address
            if response.status != 200:
                raise BrokerLost(f"queue '{queue}' cannot be looked at: {response.status} {response.reason}")
            yield response
        finally:
            connection.close()

    # --- leases

    def _leases(self, queue: str) -> str:
        return f"/api/queues/{quote(self.options.virtual_host, safe='')}/{quote(queue, safe='')}/leases"

    def has_leases(self) -> bool:
        """False for a Warren older than leases. No answer, or another, is an error: to go on would lose a promise."""
        name = next(iter(self.names(stream=False)))
        status, answer = self.call("GET", self._leases(name))
        if status not in (200, 404):
            raise BrokerLost(f"the leases of queue '{name}' cannot be listed: {status} {_reason(answer)}")
        return status == 200

    def lease(self, queue: str, count: int, owner: str, key: str, size: int | None = None) -> Lease | None:
        """Hold up to ``count`` messages; None when the queue has none. The same key gives the same lease."""
        body: dict[str, object] = {"count": count, "ttl_ms": self.options.lease_ttl_ms, "owner": owner, "key": key}
        if size is not None:
            body["bytes"] = size
        status, answer = self.call("POST", self._leases(queue), body)
        if status not in (200, 201) or not isinstance(answer, dict):
            raise BrokerLost(f"queue '{queue}' gave no lease: {status} {_reason(answer)}")
        lease = _lease_of(answer)
        return lease if lease.count else None

    def leases(self, queue: str, owner: str) -> list[Lease]:
        status, answer = self.call("GET", f"{self._leases(queue)}?owner={quote(owner, safe='')}")
        if status != 200 or not isinstance(answer, list):
            raise BrokerLost(f"the leases of queue '{queue}' cannot be listed: {status} {_reason(answer)}")
        return [_lease_of(one) for one in answer]

    def state(self, queue: str, lease: str) -> Lease | None:
        """None when it is gone."""
        status, answer = self.call("GET", f"{self._leases(queue)}/{quote(lease)}")
        return self._found(queue, lease, status, answer)

    def renew(self, queue: str, lease: str) -> Lease | None:
        """Live on for ``leaseTtl`` from now; None when there is nothing left to renew."""
        body = {"ttl_ms": self.options.lease_ttl_ms}
        status, answer = self.call("POST", f"{self._leases(queue)}/{quote(lease)}/renew", body)
        return self._found(queue, lease, status, answer)

    def _found(self, queue: str, lease: str, status: int, answer: Any) -> Lease | None:
        if status in (404, 410):
            return None
        if status != 200 or not isinstance(answer, dict):
            raise BrokerLost(f"lease {lease} on queue '{queue}' cannot be asked for: {status} {_reason(answer)}")
        return _lease_of(answer)

    def ack(self, queue: str, lease: str) -> None:
        """Settle all its messages. Settled already is fine (a commit may be repeated); expired is not."""
        self._settle(queue, lease, "ack")

    def settle(self, queue: str, lease: str, actions: dict[str, Any]) -> int:
        """Act on slots; how many of them were not settled already."""
        status, answer = self.call("POST", f"{self._leases(queue)}/{quote(lease)}/settle", actions)
        if status in (404, 410):
            raise LeaseExpired(
                f"rows of lease {lease} on queue '{queue}' cannot be acted upon any more: {_reason(answer)}; they can "
                "while their batch is the current one and its lease lives (option leaseTtl)"
            )
        if status != 200 or not isinstance(answer, dict):
            raise BrokerLost(f"rows of lease {lease} on queue '{queue}' cannot be settled: {status} {_reason(answer)}")
        return int(answer["settled"])

    def release(self, queue: str, lease: str) -> None:
        """Its messages go back to their place; nothing happens when it is gone already."""
        self.call("DELETE", f"{self._leases(queue)}/{quote(lease)}")

    def _settle(self, queue: str, lease: str, verb: str) -> None:
        status, answer = self.call("POST", f"{self._leases(queue)}/{quote(lease)}/{verb}", {})
        if status == 410:
            raise LeaseExpired(
                f"lease {lease} on queue '{queue}' expired before it was settled: its messages went back to the queue "
                f"and will be delivered again (option leaseTtl is {self.options.lease_ttl_ms} ms)"
            )
        if status not in (200, 204, 404):
            raise BrokerLost(f"lease {lease} on queue '{queue}' could not be settled: {status} {_reason(answer)}")


def _no_certificate(address: Address, error: ssl.SSLCertVerificationError) -> BrokerLost:
    """Nothing to try again: it will be the same certificate next time."""
    return BrokerLost(f"the HTTP API at {address} has no certificate for us: {error}")


def _reason(answer: Any) -> str:
    return str(answer.get("reason", answer)) if isinstance(answer, dict) else ""


def _follows(answer: HttpAnswer) -> bool:
    """Whether a node of a cluster says that another one leads, or will."""
    try:
        said = answer.json()
    except ValueError:
        return False
    return isinstance(said, dict) and said.get("error") == "not_leader"
