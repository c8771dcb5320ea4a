"""What may become a name, and what fits where AMQP has a short string.

RabbitMQ refuses a queue's name over 255 octets in these words, and takes others that no AMQP client could then use, or
crashes. Here they are refused, and so is a NUL: names go into paths, logs and C libraries that end there. What was
declared over AMQP with a NUL in its name is still found by it.
"""

from __future__ import annotations

from warrenmq.http.errors import bad_request

LONGEST = 255  # octets
KINDS = {"queues": "queue", "exchanges": "exchange", "policies": "policy", "operator-policies": "policy"}
FREE = frozenset({"props", "password"})  # parameters of paths that are no names: an encoded key, a password


def check_path(method: str, kind: str, path: dict[str, str]) -> None:
    """The names in the path of a request that makes something, or tells them to AMQP; ``kind`` is what it is about."""
    if method in ("PUT", "POST"):
        for parameter, value in path.items():
            if parameter not in FREE:
                what = KINDS.get(kind, "name") if parameter == "name" else parameter
                check_length(what, value)
                if method == "PUT":
                    check_nul(what, value)


def check_name(what: str, value: str) -> None:
    check_length(what, value)
    check_nul(what, value)


def check_length(what: str, value: str) -> None:
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > LONGEST:
        raise bad_request(f"{what} should be less than 255 bytes, actually was {size}\n")


def check_nul(what: str, value: str) -> None:
    if "\0" in value:
        raise bad_request(f"{what} should not contain a NUL")
