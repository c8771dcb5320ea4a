"""Twenty and more wrong functions, each of which the differential test must notice.

Duty: the list, and a broker with one of them. What is wrong is said in terms of the right function (the first argument)
wherever that is possible, so that it stays wrong in the same way when that is rewritten. Not here: the proof
(test_planted_faults.py), how a fault is planted (tests/support/planting.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import planting
from warrenmq.broker import dead_letter, expiration
from warrenmq.broker.channel.acks import Unacked
from warrenmq.broker.channel.committing import Commit
from warrenmq.broker.channel.outstanding import Outstanding
from warrenmq.broker.channel.transaction import REJECT, REQUEUE, BufferedAck, Transaction
from warrenmq.broker.delivering import deaths
from warrenmq.broker.delivering.delivering import ACCEPTED, REFUSED
from warrenmq.broker.exchange import topic, walk
from warrenmq.broker.exchange.headers import Rule
from warrenmq.broker.message import with_properties
from warrenmq.broker.publish import outcomes, path, stages
from warrenmq.broker.publish.confirms import Confirms
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.dispatch import Dispatch
from warrenmq.broker.queue.limits import Limits
from warrenmq.broker.queue.order import Order
from warrenmq.broker.queue.queue import Consumer
from warrenmq.broker.records import Content, Exchange
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.wire import methods
from warrenmq.wire.fields import Field
from warrenmq.wire.replies import AmqpError


@dataclass(frozen=True)
class Fault(planting.Fault):
    scenario: str


def nothing(right: Any, *arguments: Any) -> None:
    """Instead of whatever is done or checked."""


def bcc_stays(right: Any, publishing: Any, route: Any, message: Any, seen: Any) -> Any:
    came = Content(message.header(), b"").properties
    goes = right(publishing, route, message, seen)
    return goes if goes is message else with_properties(goes, came)


def sign_is_left_out(right: Any, text: str | None) -> Any:
    return right(None if text is None else text.lstrip("-"))


def nothing_is_mandatory(
    right: Any, publishing: Any, exchange: Any, message: Any, queues: Any, outcome: int, mandatory: bool, *rest: Any
) -> None:
    right(publishing, exchange, message, queues, outcome, False, *rest)


def refused_is_accepted(
    right: Any, publishing: Any, exchange: Any, message: Any, queues: Any, outcome: int, *rest: Any
) -> None:
    right(publishing, exchange, message, queues, ACCEPTED if outcome == REFUSED else outcome, *rest)


def never_multiple(right: Any, self: Any, writer: Any, channel: int, method: int, tag: int, multiple: bool) -> None:
    right(self, writer, channel, method, tag, False)


def alternate_as_well(right: Any, self: Any, exchange: Any, found: Any) -> None:
    right(self, exchange, found)
    alternate = self.exchanges.get(exchange.alternate)
    if alternate is not None:
        self.reach(alternate)


def queue_again(right: Any, self: Any, destination: Any) -> None:
    if not isinstance(destination, Exchange):
        self.seen.pop(destination, None)
    right(self, destination)


def star_is_no_word(right: Any, key: str) -> list[str]:
    return ["no such word" if word == "*" else word for word in right(key)]


def hash_is_star(right: Any, key: str) -> list[str]:
    return ["*" if word == "#" else word for word in right(key)]


def always(right: Any, *arguments: Any) -> bool:
    return True


def up_to_the_one_before(right: Any, self: Any, tag: int) -> Any:
    return [] if tag == 1 else right(self, max(0, tag - 1))


def requeued_unflagged(right: Any, self: Any, entries: Any) -> None:
    right(self, entries)
    for entry in entries:
        entry.redelivered = False


def errors_are_ignored(right: Any, *arguments: Any) -> None:
    with contextlib.suppress(AmqpError):
        right(*arguments)


def full_with_one_more(right: Any, self: Any) -> bool:
    return bool(right(self)) and self.unacked > self.prefetch


def one_more_is_left(right: Any, channel: int, name: str, **values: Any) -> Any:
    if name == "basic.get-ok":
        values["message_count"] += 1
    return right(channel, name, **values)


def requeue_is_reject(right: Any, self: Any, ack: Any) -> Any:
    return right(self, BufferedAck(REJECT if ack.what == REQUEUE else ack.what, ack.taken))


def exclusive_only_when_declared(right: Any, self: Any, queue: Any, connection: Any, strict: bool) -> None:
    if strict:
        right(self, queue, connection, strict)


def had_no_consumer(right: Any, self: Any, consumer: Any) -> None:
    self._had_consumer = False
    right(self, consumer)
    self._had_consumer = True


def one_is_not_counted(right: Any, self: Any, *least: Any) -> Any:
    self.queue.ready -= 1
    try:
        return right(self, *least)
    finally:
        self.queue.ready += 1


def expiration_stays(right: Any, broker: Any, queue: Any, message: Any, reason: str, exchange: str) -> Any:
    dead = right(broker, queue, message, reason, exchange)
    properties = Content(dead.header(), b"").properties.copy()
    properties.expiration = Content(message.header(), b"").properties.expiration
    return with_properties(dead, properties)


def from_nowhere(right: Any, *arguments: Any) -> Any:
    return {**right(*arguments), "exchange": Field("S", "")}


def above_is_lowest(right: Any, self: Any, priority: int) -> Any:
    return right(self, 0 if priority > self.max_priority else priority)


FAULTS = (
    Fault("an internal exchange takes publishes", stages.refuse_internal, nothing, "publishing"),
    Fault("BCC stays visible", path._with_routing_keys, bcc_stays, "publishing"),
    Fault("a negative expiration is accepted", expiration.read_expiration, sign_is_left_out, "publishing"),
    Fault("anybody may claim any user-id", stages.check_user_id, nothing, "publishing"),
    Fault("a mandatory message is not returned", outcomes.tell, nothing_is_mandatory, "publishing"),
    Fault("a refused message is acked", outcomes.tell, refused_is_accepted, "publishing"),
    Fault("a run of confirms loses its multiple flag", Confirms._write, never_multiple, "publishing"),
    Fault(
        "the alternate exchange is asked although a queue was found", walk._Walk.spread, alternate_as_well, "routing"
    ),
    Fault("a queue reached twice gets two copies", walk._Walk.reach, queue_again, "routing"),
    Fault("* matches no word", topic.words_of, star_is_no_word, "routing"),
    Fault("# matches only one word", topic.words_of, hash_is_star, "routing"),
    Fault("one matching header of several is enough for x-match all", Rule.holds, always, "routing"),
    Fault("ack multiple leaves out the tag itself", Unacked.take_up_to, up_to_the_one_before, "settling"),
    Fault("a requeued message is not flagged redelivered", ClassicQueue.requeue, requeued_unflagged, "settling"),
    Fault("an unknown delivery tag is ignored", Outstanding.ack, errors_are_ignored, "settling"),
    Fault("prefetch allows one more", Consumer.is_full, full_with_one_more, "settling"),
    Fault("get counts itself among what is left", methods.method_frame, one_more_is_left, "settling"),
    Fault("rollback forgets the acknowledged deliveries", Transaction.put_back, nothing, "transactions"),
    Fault("commit rejects what was to be requeued", Commit._begin, requeue_is_reject, "transactions"),
    Fault("an exclusive queue is everybody's", VHost.check_exclusive, exclusive_only_when_declared, "topology"),
    Fault("the one served is served again", Dispatch.served, nothing, "topology"),
    Fault("an auto-delete queue stays", ClassicQueue.unsubscribe, had_no_consumer, "topology"),
    Fault("drop-head keeps one more", Limits.trimmed, one_is_not_counted, "limits"),
    Fault("a dead letter keeps its expiration", dead_letter.dead_message, expiration_stays, "limits"),
    Fault("x-death names the wrong exchange", deaths.death_of, from_nowhere, "limits"),
    Fault("priorities above the maximum wrap to the lowest", Order.of, above_is_lowest, "limits"),
)


@dataclass
class FaultyBroker:
    """A Warren with a fault, without its HTTP API."""

    name: str
    port: int

    def http(self, method: str, path: str, body: object = None, user: str = "guest:guest") -> tuple[int, object]:
        raise AssertionError("no scenario for planted faults uses HTTP")


@contextlib.contextmanager
def start_faulty(fault: Fault) -> Iterator[FaultyBroker]:
    folder = Path(tempfile.mkdtemp(prefix="warren-fault-"))
    try:
        ready = folder / "ready.json"
        where = ["--port", "0", "--http-port", "0", "--ready-file", str(ready), "--data-dir", str(folder / "data")]
        with open(folder / "log", "wb") as output:
            process = subprocess.Popen(
                [*planting.command(fault), "serve", "--journal", "off", *where],
                env=planting.environment(dict(os.environ)),
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        try:
            while not ready.exists():
                assert process.poll() is None, f"'{fault.name}' does not start:\n{(folder / 'log').read_text()[-2000:]}"
                time.sleep(0.02)
            yield FaultyBroker("warren", int(json.loads(ready.read_text())["amqp"].rpartition(":")[2]))
        finally:
            process.kill()
            process.wait(60)
        said = (folder / "log").read_text()
        assert "Traceback" not in said, f"'{fault.name}' is not wrong but breaks down:\n{said[-3000:]}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
