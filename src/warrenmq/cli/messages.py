"""`warren publish`, `warren get` and `warren consume`: the client on the command line.

Duty: do one thing with a queue or exchange of any AMQP 0-9-1 broker and print what the broker said, in its order.
Not here: anything about the broker itself; these commands work against RabbitMQ too. The client is imported by what
speaks to a broker: help does not.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from warrenmq.cli._command import Json, Url, Vhost, speaking_amqp, stop
from warrenmq.cli._status import DONE, NO, NO_BROKER, WRONG

if TYPE_CHECKING:
    from warrenmq.client import ClientError, Connection, Event, Message, Properties

NOT_ROUTED = "not routed: no queue took it"


def register(app: typer.Typer) -> None:
    app.command("publish")(publish)
    app.command("get")(get)
    app.command("consume")(consume)


def publish(
    routing_key: Annotated[str, typer.Argument(help="The queue's name, unless --exchange is given.")],
    body: Annotated[str, typer.Argument(help="The message; - reads it from standard input.")] = "-",
    exchange: Annotated[str, typer.Option("--exchange", "-e", help="The exchange; the default one if left out.")] = "",
    mandatory: Annotated[
        bool, typer.Option("--mandatory", help="Print the broker's words when no queue takes it.")
    ] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Wait for the broker's ack or nack.")] = False,
    persistent: Annotated[bool, typer.Option("--persistent", help="Shorthand for --property delivery_mode=2.")] = False,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="name=text, or name:=JSON for other types. Repeatable.")
    ] = None,
    property: Annotated[
        list[str] | None, typer.Option("--property", "-P", help="content_type=..., priority=... Repeatable.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Send it that many times.")] = 1,
    as_json: Json = False,
    vhost: Vhost = None,
    url: Url = None,
) -> None:
    """Publish a message and print what the broker said. Status 1 when no queue took it, or it was nacked or refused."""
    from warrenmq.client import Acked, ChannelClosed, ClientError, Returned

    properties = _properties(header or [], property or [], persistent)
    # Whoever types a command wants to know. A delayed message is returned although it is kept, so it is not asked for.
    asked = mandatory or "x-delay" not in (properties.headers or {})
    payload = sys.stdin.buffer.read() if body == "-" else body.encode("utf-8", "surrogateescape")
    try:
        with _connected("publish", url, vhost) as connection:
            channel = connection.channel()
            if confirm:
                channel.confirm_select()
            channel.publish_many(exchange, routing_key, [payload] * count, properties, asked)
            failed = False
            refused: ClientError | None = None
            try:
                if confirm:
                    channel.wait_for_confirms(connection.timeout)
                # Answered in order: whatever the broker had to say about the messages comes before this. (A close of
                # our own would cross the broker's, which says why a message was refused.)
                channel.basic_qos(0)
            except ChannelClosed as error:
                refused = error
            for event in channel.take_events():
                _tell(NOT_ROUTED if isinstance(event, Returned) and not mandatory else _words(event), as_json)
                failed = failed or not isinstance(event, Acked)
            if refused is not None:
                _tell(f"refused {refused}", as_json)
                raise typer.Exit(NO)
            if not confirm and not failed:
                _tell("sent", as_json)
            if failed:
                raise typer.Exit(NO)
    except ClientError as failure:
        _stop("publish", failure)


def get(
    queue: Annotated[str, typer.Argument()],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="At most that many messages.")] = 1,
    requeue: Annotated[bool, typer.Option("--requeue", help="Put them back: look, do not take.")] = False,
    as_json: Json = False,
    vhost: Vhost = None,
    url: Url = None,
) -> None:
    """Fetch messages from a queue with basic.get. Status 1 when it is empty."""
    from warrenmq.client import ClientError

    try:
        with _connected("get", url, vhost) as connection:
            channel = connection.channel()
            last: Message | None = None
            for _ in range(count):
                message = channel.basic_get(queue)
                if message is None:
                    break
                _show(message, as_json)
                last = message
            if last is None:
                typer.echo("empty", err=True)
                raise typer.Exit(NO)
            if requeue:
                channel.basic_nack(last.delivery_tag, multiple=True, requeue=True)
            else:
                channel.basic_ack(last.delivery_tag, multiple=True)
    except ClientError as error:
        _stop("get", error)


def consume(
    queue: Annotated[str, typer.Argument()],
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="Stop after that many messages; 0: never.")] = 0,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Stop when none came for SECONDS; 0: never.")] = 0,
    prefetch: Annotated[int, typer.Option("--prefetch", min=0, max=65535)] = 100,
    no_ack: Annotated[bool, typer.Option("--no-ack", help="Let the broker forget a message once it is sent.")] = False,
    as_json: Json = False,
    vhost: Vhost = None,
    url: Url = None,
) -> None:
    """Print messages as they come and acknowledge them. Ctrl-C ends it."""
    from warrenmq.client import ClientError

    if no_ack and count:
        raise typer.BadParameter("--no-ack with --count would lose what the broker had sent beyond the count")
    try:
        with _connected("consume", url, vhost) as connection:
            channel = connection.channel()
            if count:
                prefetch = min(prefetch or count, count, 65535)
            channel.basic_qos(prefetch)
            consumer_tag = channel.basic_consume(queue, no_ack=no_ack)
            taken = last = acked = 0
            for message in channel.messages(timeout or None):
                _show(message, as_json)
                taken += 1
                last = message.delivery_tag
                if taken == count:
                    break
                # Every ack lets the broker send one more. The last ones wait until the consumer is cancelled, so that
                # no message is fetched only to go back marked redelivered.
                if not no_ack and (not count or taken <= count - prefetch):
                    channel.basic_ack(last, multiple=True)
                    acked = last
            if consumer_tag in channel.consumers:
                channel.basic_cancel(consumer_tag)
            if last > acked and not no_ack:
                channel.basic_ack(last, multiple=True)
    except KeyboardInterrupt:
        raise typer.Exit(DONE) from None
    except ClientError as error:
        _stop("consume", error)


def _connected(name: str, url: str | None, vhost: str | None) -> Connection:
    from warrenmq.client import ConnectError, Connection

    try:
        return Connection(speaking_amqp(name, url, vhost), connection_name=f"warren {name}")
    except ConnectError as error:
        stop(name, str(error), NO_BROKER)


def _tell(words: str, as_json: bool) -> None:
    typer.echo(json.dumps({"broker": words}, ensure_ascii=False) if as_json else words)


def _words(event: Event) -> str:
    from warrenmq.client import Acked, Nacked, Returned

    if isinstance(event, Returned):
        return f"returned {event.reply_code} {event.reply_text}"
    if isinstance(event, Acked):
        return f"acked up to {event.tag}" if event.multiple else "acked"
    if isinstance(event, Nacked):
        return f"nacked up to {event.tag}" if event.multiple else "nacked"
    return f"cancelled {event.consumer_tag}"


def _show(message: Message, as_json: bool) -> None:
    if not as_json:
        sys.stdout.buffer.write(message.body + b"\n")
        sys.stdout.buffer.flush()
        return
    known = message.properties.present()
    if "headers" in known:
        known["headers"] = message.headers
    try:
        payload, encoding = message.body.decode("utf-8"), "string"
    except UnicodeDecodeError:
        payload, encoding = base64.b64encode(message.body).decode("ascii"), "base64"
    typer.echo(
        json.dumps(
            {
                "exchange": message.exchange,
                "routing_key": message.routing_key,
                "redelivered": message.redelivered,
                "properties": known,
                "payload": payload,
                "payload_encoding": encoding,
            }
        )
    )


def _properties(headers: list[str], pairs: list[str], persistent: bool) -> Properties:
    from warrenmq.client import Properties
    from warrenmq.wire.fields import from_python
    from warrenmq.wire.properties import NUMBERS, TEXTS

    properties = Properties(delivery_mode=2) if persistent else Properties()
    if headers:
        properties.headers = from_python(dict(_header(pair) for pair in headers))
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in (*NUMBERS, *TEXTS):
            raise typer.BadParameter(f"{pair!r}: one of {', '.join(sorted(NUMBERS + TEXTS))}, then = and a value")
        if name in NUMBERS:
            if not value.isdecimal():
                raise typer.BadParameter(f"{pair!r}: {name} is a number")
            setattr(properties, name, int(value))
        else:
            setattr(properties, name, value)
    return properties


def _header(pair: str) -> tuple[str, object]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise typer.BadParameter(f"{pair!r}: a header is name=text or name:=JSON")
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], json.loads(value)
    except ValueError:
        raise typer.BadParameter(f"{pair!r}: {value!r} is not JSON") from None


def _stop(name: str, error: ClientError) -> NoReturn:
    """The broker closed the channel over what was asked, or went away."""
    from warrenmq.client import ChannelClosed

    stop(name, str(error), WRONG if isinstance(error, ChannelClosed) else NO_BROKER)
