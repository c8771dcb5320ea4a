"""Misuse of what a kind of queue does not have or does in its own way: classic, quorum, stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.conformance.steps import Case, Step, call, case, expect, message, pub, queue, silence, tell

PREFETCH = call("basic.qos", prefetch_count=2)
SYNC = call("basic.qos", prefetch_count=3)
GLOBAL = call("basic.qos", prefetch_count=2, global_=True)


def of(kind: str, **arguments: object) -> Step:
    return queue(
        durable=True,
        arguments={"x-queue-type": kind, **{key.replace("_", "-"): value for key, value in arguments.items()}},
    )


def consume(tag: str = "t", **values: Any) -> Step:
    return call("basic.consume", queue="m.q", consumer_tag=tag, **values)


def ends(kind: str) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """What is done to a delivery, or in its stead."""
    held = (consume(arguments={"x-stream-offset": "first"} if kind == "stream" else {}), pub("", "m.q"), message())
    yield "ack", (*held, tell("basic.ack", delivery_tag=1))
    yield (
        "ack twice",
        (*held, tell("basic.ack", delivery_tag=1), tell("basic.ack", delivery_tag=1), expect("channel.close")),
    )
    yield "ack of what was never delivered", (*held, tell("basic.ack", delivery_tag=9), expect("channel.close"))
    yield "ack of all", (*held, tell("basic.ack", delivery_tag=0, multiple=True))
    yield "ack of all twice", (*held, *(2 * (tell("basic.ack", delivery_tag=0, multiple=True),)))
    yield "nack", (*held, tell("basic.nack", delivery_tag=1), SYNC)
    yield "nack of all", (*held, tell("basic.nack", delivery_tag=0, multiple=True), SYNC)
    yield "nack of what was never delivered", (*held, tell("basic.nack", delivery_tag=9), expect("channel.close"))
    yield "reject", (*held, tell("basic.reject", delivery_tag=1), SYNC)
    yield "reject of what was never delivered", (*held, tell("basic.reject", delivery_tag=9), expect("channel.close"))
    yield "recover without requeue", (*held, call("basic.recover", requeue=False))
    yield (
        "ack in a transaction",
        (call("tx.select"), consume(), tell("basic.ack", delivery_tag=9), expect("channel.close")),
    )
    yield "nack in a transaction", (*held, call("tx.select"), tell("basic.nack", delivery_tag=1), call("tx.commit"))
    if kind == "stream":
        yield "nack to be requeued", (*held, tell("basic.nack", delivery_tag=1, requeue=True), SYNC)
        yield "reject to be requeued", (*held, tell("basic.reject", delivery_tag=1, requeue=True), SYNC)
        yield "recover", (*held, call("basic.recover", requeue=True))
        yield "recover-async", (*held, tell("basic.recover-async", requeue=True), SYNC)


def readers(kind: str) -> Iterator[tuple[str, tuple[Step, ...]]]:
    yield "consume without a prefetch", (consume(),)
    yield "consume without acknowledgements", (PREFETCH, consume(no_ack=True))
    yield "consume with a global prefetch", (GLOBAL, consume())
    yield "consume with both prefetches", (PREFETCH, GLOBAL, consume())
    yield "consume with both prefetches and without acknowledgements", (PREFETCH, GLOBAL, consume(no_ack=True))
    yield "a prefetch for each consumer lifts the global one", (GLOBAL, PREFETCH, consume())
    yield "a global prefetch behind a consumer", (PREFETCH, consume(), GLOBAL)
    yield "an exclusive consumer behind another", (PREFETCH, consume("a"), consume("b", exclusive=True))
    yield "a consumer behind an exclusive one", (PREFETCH, consume("a", exclusive=True), consume("b"))
    yield "two consumers of one tag", (PREFETCH, consume(), consume())
    yield "cancel twice", (PREFETCH, consume(), *(2 * (call("basic.cancel", consumer_tag="t"),)))
    yield "cancel of a tag nobody has", (call("basic.cancel", consumer_tag="nobody"),)
    yield "deletion under a consumer", (PREFETCH, consume(), call("queue.delete", queue="m.q"), silence)
    yield (
        "consume with two wrong arguments",
        (PREFETCH, consume(arguments={"x-priority": "a", "x-stream-offset": "0s"})),
    )
    yield (
        "consume with three good arguments",
        (PREFETCH, consume(arguments={"x-cancel-on-ha-failover": True, "x-priority": 1, "x-stream-offset": "first"})),
    )
    yield (
        "consume with a wrong argument that nobody waits for",
        (
            PREFETCH,
            tell(
                "basic.consume",
                queue="m.q",
                consumer_tag="t",
                nowait=True,
                arguments={"x-priority": "a", "x-stream-offset": "0s"},
            ),
            expect("channel.close"),
        ),
    )
    yield "get", (call("basic.get", queue="m.q"),)
    yield "get without acknowledgements", (call("basic.get", queue="m.q", no_ack=True),)
    yield "purge", (call("queue.purge", queue="m.q"),)
    yield "purge that nobody waits for", (tell("queue.purge", queue="m.q", nowait=True), SYNC)
    yield "delete if unused", (call("queue.delete", queue="m.q", if_unused=True),)
    yield "delete if empty", (call("queue.delete", queue="m.q", if_empty=True),)
    yield "delete if unused and empty", (call("queue.delete", queue="m.q", if_unused=True, if_empty=True),)
    yield (
        "delete if unused under a consumer",
        (PREFETCH, consume(), call("queue.delete", queue="m.q", if_unused=True), silence),
    )


def declarations(kind: str) -> Iterator[tuple[str, tuple[Step, ...]]]:
    yield "without a name", (queue("", durable=True, arguments={"x-queue-type": kind}),)
    yield "declared again as it is", (of(kind),)
    yield "declared again without the type", (queue(durable=True),)
    yield "declared again as transient", (queue(arguments={"x-queue-type": kind}),)
    yield "declared again as exclusive", (queue(durable=True, exclusive=True, arguments={"x-queue-type": kind}),)
    yield "declared again as auto-delete", (queue(durable=True, auto_delete=True, arguments={"x-queue-type": kind}),)
    yield (
        "declared again with an argument of another kind",
        (of(kind, **{"x_max_age" if kind != "stream" else "x_expires": "1h" if kind != "stream" else 5000}),),
    )
    yield "declared again with a wrong value", (of(kind, x_max_length_bytes="a"),)
    yield "declared passively with other flags", (queue(passive=True, exclusive=True, auto_delete=True),)
    yield "bound to the default exchange", (call("queue.bind", queue="m.q", exchange="", routing_key="k"),)
    yield (
        "bound twice and unbound twice",
        tuple(
            call(f"queue.{each}", queue="m.q", exchange="amq.direct", routing_key="k")
            for each in ("bind", "bind", "unbind", "unbind")
        ),
    )
    yield "a mandatory message", (pub("", "m.q", mandatory=True), SYNC)
    yield "a message with a bad expiration", (pub("", "m.q", expiration="soon"), expect("channel.close"))


KIND_CASES: list[Case] = [
    case(f"{kind}: {said}", of(kind), *steps)
    for kind in ("classic", "quorum", "stream")
    for said, steps in [
        *((said, (PREFETCH, *steps)) for said, steps in ends(kind)),
        *readers(kind),
        *declarations(kind),
    ]
]
KIND_CASES += [
    case(
        f"{kind}: consumers that wait for the active one are counted",
        of(kind, x_single_active_consumer=True),
        consume("a"),
        consume("b"),
        queue(passive=True),
        call("basic.cancel", consumer_tag="b"),
        queue(passive=True),
    )
    for kind in ("classic", "quorum")
]
