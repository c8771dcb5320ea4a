"""Queue arguments, every one with every kind of value for every kind of queue: the questions.

Duty: the table of arguments and values, how one is asked, and in which order a broker looks at several.
Not here: the answers. RabbitMQ 3.10 gives them (recorded/arguments.json, made by record_arguments.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.support.brokers import RunningBroker
from tests.support.rawclient import RawClient, Typed

NEVER = "no answer, ever"
KINDS = ("classic", "quorum", "stream")

#: Every argument that RabbitMQ 3.10 knows for some kind of queue, some that it only passes on, and one nobody knows.
ARGUMENTS = (
    "x-consumer-timeout",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-delivery-limit",
    "x-expires",
    "x-ha-policy",
    "x-initial-cluster-size",
    "x-max-age",
    "x-max-in-memory-bytes",
    "x-max-in-memory-length",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-message-ttl",
    "x-overflow",
    "x-queue-leader-locator",
    "x-queue-master-locator",
    "x-queue-mode",
    "x-queue-type",
    "x-queue-version",
    "x-quorum-initial-group-size",
    "x-single-active-consumer",
    "x-stream-max-segment-size-bytes",
    "x-unheard-of",
)

VALUES: dict[str, object] = {
    "negative": -1,
    "very negative": -(2**62),
    "zero": 0,
    "one": 1,
    "two": 2,
    "a byte": Typed("b", 7),
    "an unsigned byte": Typed("B", 200),
    "a short": Typed("s", 300),
    "an unsigned short": Typed("u", 300),
    "an unsigned long": Typed("i", 300),
    "256": 256,
    "ten years": 315_360_000_000,
    "ten years and 1 ms": 315_360_000_001,
    "2**32": 2**32,
    "three billion": 3_000_000_000,
    "three billion and one": 3_000_000_001,
    "huge": 2**63 - 1,
    "a float": 1.5,
    "a round float": 2.0,
    "a large float": 1e30,
    "a short float": Typed("f", 0.5),
    "true": True,
    "false": False,
    "nothing": None,
    "a timestamp": Typed("T", 5),
    "an array": [1],
    "a table": {"a": 1},
    "bytes": Typed("x", b"drop-head"),
    "an empty text": "",
    "a text": "a",
    "a number as text": "5",
    "drop-head": "drop-head",
    "reject-publish": "reject-publish",
    "reject-publish-dlx": "reject-publish-dlx",
    "at-most-once": "at-most-once",
    "at-least-once": "at-least-once",
    "lazy": "lazy",
    "default": "default",
    "classic": "classic",
    "quorum": "quorum",
    "stream": "stream",
    "client-local": "client-local",
    "random": "random",
    "least-leaders": "least-leaders",
    "balanced": "balanced",
    "min-masters": "min-masters",
    "first": "first",
    "last": "last",
    "next": "next",
    "1h": "1h",
    "1Y": "1Y",
    "7M": "7M",
    "1D": "1D",
    "90s": "90s",
    "10m": "10m",
    "0s": "0s",
    "-1s": "-1s",
    "+1s": "+1s",
    "1.5h": "1.5h",
    "1H": "1H",
    "1 h": "1 h",
    "h": "h",
    "1hh": "1hh",
    "1w": "1w",
    "1h30m": "1h30m",
    "other digits": "\u0661h",
    "long ago": "99999999999999999999Y",
}


#: The same for basic.consume (without x-credit, which is RabbitMQ's own and lets a classic queue die for good).
CONSUMER_ARGUMENTS = ("x-cancel-on-ha-failover", "x-priority", "x-stream-offset", "x-unheard-of")

#: a value no argument takes
WRONG = [1]

#: two values that a queue may have, and that are not the same
RIGHT: dict[str, tuple[object, object]] = {
    "x-dead-letter-exchange": ("a", "b"),
    "x-dead-letter-routing-key": ("a", "b"),
    "x-dead-letter-strategy": ("at-most-once", "at-least-once"),
    "x-delivery-limit": (1, 2),
    "x-expires": (100_000, 200_000),
    "x-initial-cluster-size": (1, 2),
    "x-max-age": ("1h", "2h"),
    "x-max-in-memory-bytes": (1, 2),
    "x-max-in-memory-length": (1, 2),
    "x-max-length": (1, 2),
    "x-max-length-bytes": (1, 2),
    "x-max-priority": (1, 2),
    "x-message-ttl": (1, 2),
    "x-overflow": ("drop-head", "reject-publish"),
    "x-queue-leader-locator": ("client-local", "balanced"),
    "x-queue-master-locator": ("client-local", "random"),
    "x-queue-mode": ("lazy", "default"),
    "x-queue-version": (1, 2),
    "x-quorum-initial-group-size": (1, 2),
    "x-single-active-consumer": (True, False),
    "x-stream-max-segment-size-bytes": (1000, 2000),
    "x-unheard-of": (1, 2),
    "x-consumer-timeout": (1, 2),
    "x-ha-policy": ("a", "b"),
}

#: Values as they read in texts, beside those above.
READ: dict[str, object] = {
    "1000.0": 1000.0,
    "100.0": 100.0,
    "1e16": 1e16,
    "fifteen digits": 123456789012345.0,
    "0.1": 0.1,
    "0.00001": 1e-5,
    "0.001": 0.001,
    "0.0123": 0.0123,
    "1230000.0": 1.23e6,
    "1e22": 1e22,
    "1.5e300": 1.5e300,
    "-2.5": -2.5,
    "0.0": 0.0,
    "-0.0": -0.0,
    "1.1 as float": Typed("f", 1.1),
    "an umlaut": "ä",
    "quotes": 'it\'s "q"',
    "two lines": "a\nb",
    "octets": Typed("x", b"\xff\x00"),
    "no UTF-8": b"\xff\xfe",
    "a table of two": {"b": 1.5, "a": "x"},
    "an empty array": [],
    "an empty table": {},
    "300 letters": "x" * 300,
}

FLAGS: tuple[dict[str, bool], ...] = (
    {},
    {"auto_delete": True},
    {"exclusive": True},
    {"durable": False},
    {"auto_delete": True, "exclusive": True},
    {"auto_delete": True, "durable": False},
    {"exclusive": True, "durable": False},
    {"auto_delete": True, "exclusive": True, "durable": False},
)

Answers = dict[str, str]


class Asker:
    """One connection that is opened again when the broker closed it."""

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker
        self.client: RawClient | None = None

    def ask(self, name: str, *declarations: dict[str, object], **flags: bool) -> str:
        """The answer to the last of these declarations of a new queue; the queue is removed again."""
        answer = ""
        for arguments in declarations:
            answer = self.declare(name, arguments, **flags)
        if answer != NEVER and self.delete(name):
            answer += " (and it cannot be deleted)"
        return answer

    def declare(self, name: str, arguments: dict[str, object], **flags: bool) -> str:
        return self._call("queue.declare", queue=name, arguments=arguments, **{"durable": True, **flags})

    def delete(self, name: str) -> str:
        return self._call("queue.delete", queue=name)

    def consume(self, name: str, arguments: dict[str, object]) -> str:
        """The answer to a consumer with these arguments; it is cancelled again."""
        self._connected().call(1, "basic.qos", prefetch_count=1)
        answer = self._call("basic.consume", queue=name, consumer_tag="t", arguments=arguments)
        if not answer:
            self._connected().call(1, "basic.cancel", consumer_tag="t")
        return answer

    def _call(self, method: str, **values: object) -> str:
        """'' or the code and text of the close; a close of the whole connection says so."""
        client = self._connected()
        try:
            got = client.call(1, method, **values)
        except TimeoutError:
            client.ended = True
            return NEVER
        if got.name == f"{method}-ok":
            return ""
        if not got.name.endswith(".close"):
            return "the connection ended without a word"
        scope = "" if got.name == "channel.close" else "connection "
        return f"{scope}{got.number('reply_code')} {got.text('reply_text')}"

    def _connected(self) -> RawClient:
        client = self.client
        if client is None or client.ended or any(each.name == "connection.close" for each in client.frames):
            if client is not None:
                client.socket.close()
            client = self.client = RawClient(self.broker.port, timeout=30).handshake()
        if 1 not in client.open_channels:
            client.open(1)
        client.frames.clear()
        return client


def value_answers(broker: RunningBroker, kind: str, values: tuple[str, ...] = tuple(VALUES)) -> dict[str, Answers]:
    """{argument: {value: answer}}: one argument at a time."""

    def of(argument: str) -> Answers:
        asker = Asker(broker)
        name = f"arguments.{kind}.{argument}"
        return {value: asker.ask(name, {"x-queue-type": kind, argument: VALUES[value]}) for value in values}

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(ARGUMENTS, pool.map(of, ARGUMENTS), strict=True))


def consumer_answers(broker: RunningBroker, kind: str) -> dict[str, Answers]:
    """{argument: {value: answer}}, one argument at a time, of consumers of a queue of this kind."""
    name = f"consumers.{kind}"
    asker = Asker(broker)
    asker.declare(name, {"x-queue-type": kind})
    found = {
        argument: {value: asker.consume(name, {argument: VALUES[value]}) for value in VALUES}
        for argument in CONSUMER_ARGUMENTS
    }
    asker.delete(name)
    return found


def order_answers(broker: RunningBroker, kind: str) -> list[str]:
    """Every argument is wrong; what is complained of is taken away, until nothing is left to complain of."""
    arguments: dict[str, object] = {**dict.fromkeys(reversed(ARGUMENTS), WRONG), "x-queue-type": kind}
    del arguments["x-queue-master-locator"]  # what is wrong there does not get an answer
    return _until_accepted(
        broker, arguments, lambda asker: asker.ask(f"order.{kind}", arguments), lambda named: arguments.pop(named)
    )


def again_answers(broker: RunningBroker, kind: str, other: bool) -> list[str]:
    """Declared with all arguments, then again with none of them or with other values of all of them, and also with
    arguments that this kind does not have; what is complained of is mended, until nothing is left."""
    has = [
        each
        for each in RIGHT
        if f"of queue type rabbit_{kind}"
        not in Asker(broker).ask(f"again.{kind}", {"x-queue-type": kind, each: RIGHT[each][0]})
    ]
    first: dict[str, object] = {"x-queue-type": kind, **{each: RIGHT[each][0] for each in has}}
    second: dict[str, object] = {each: values[1] for each, values in RIGHT.items()} if other else {}
    second["x-queue-type"] = kind if not other else "quorum" if kind == "classic" else "classic"

    def mend(named: str) -> None:
        second[named] = first[named]

    return _until_accepted(broker, second, lambda asker: asker.ask(f"again.{kind}", first, second), mend)


def _until_accepted(
    broker: RunningBroker, arguments: dict[str, object], ask: Callable[[Asker], str], mend: Callable[[str], object]
) -> list[str]:
    asker = Asker(broker)
    answers = []
    while answer := ask(asker):
        answers.append(answer)
        named = re.search(r"'(x-[a-z-]+)'", answer)
        assert named is not None and named[1] in arguments or "received none" in answer, answers
        assert named is not None and len(answers) < 50, answers
        mend(named[1])
    return answers


def text_answers(broker: RunningBroker) -> dict[str, list[str]]:
    """{value: answers}: how a value reads that was declared and is not any more, was not, and was another one.
    The delivery limit of a quorum queue may be anything."""
    asker = Asker(broker)
    name, plain = "texts", {"x-queue-type": "quorum"}

    def ask(first: dict[str, object], second: dict[str, object]) -> str:
        return asker.ask(name, {**plain, **first}, {**plain, **second})

    return {
        said: [
            ask({}, {"x-delivery-limit": value}),
            ask({"x-delivery-limit": value}, {}),
            ask({"x-delivery-limit": 77}, {"x-delivery-limit": value}),
        ]
        for said, value in {**VALUES, **READ}.items()
    }


def flag_answers(broker: RunningBroker, kind: str) -> Answers:
    """Flags that a kind of queue does not have, alone and beside an argument that is wrong."""
    asker = Asker(broker)
    beside: dict[str, dict[str, object]] = {
        "no argument": {},
        "a wrong value": {"x-max-length-bytes": WRONG},
        "one of another kind": {"x-max-age" if kind != "stream" else "x-expires": "1h" if kind != "stream" else 5},
        "a wrong queue type": {"x-queue-type": WRONG},
        "an unknown queue type": {"x-queue-type": "magic"},
        "a large segment": {"x-stream-max-segment-size-bytes": 2**40},
        "a wrong type and a wrong value": {"x-queue-type": WRONG, "x-expires": WRONG, "x-max-age": WRONG},
        "an unknown type and a wrong value": {"x-queue-type": "magic", "x-expires": WRONG, "x-max-age": WRONG},
    }
    return {
        f"{' '.join(flags) or 'no flag'} beside {said}": asker.ask(
            f"flags.{kind}", {"x-queue-type": kind, **arguments}, **flags
        )
        for flags in FLAGS
        for said, arguments in beside.items()
    }
