"""Every method of AMQP 0-9-1 with RabbitMQ's extensions, from one table.

    method-payload = class-id(short) method-id(short) *argument
    argument = octet / short / long / longlong / shortstr / longstr / timestamp / table / bits
    bits     = consecutive bit arguments share octets, the first one lowest

Duty: the table, and payloads <-> ``Method``. Not here: which method is allowed when, or what it does.

What RabbitMQ 3.10 answers to bad payloads (asked, except where marked):
- fewer than 4 octets: 501 ``type 1, all octets = <<0,50,0>>: unknown_frame``
- arguments too short, too long or with a wrong table length: 501 ``cannot decode <<0,0,1>>``
- a short string that is no UTF-8: 501 ``Malformed UTF-8 in shortstr``, naming the method only on channel 0; but in
  basic.publish (and what comes of it) exchange and routing key may be any octets, which surrogate escapes stand for
- an unknown method, or a table with an unknown type letter: 3.10's reader crashes and the socket is reset without a
  word. We say 503 ``unimplemented method`` and 501 ``cannot decode`` instead.
- 3.10 lets encoded surrogates (ED A0 80) pass as UTF-8; we do not, as such names cannot be written in JSON.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from warrenmq.wire.constants import CLASS_CONNECTION, FRAME_METHOD
from warrenmq.wire.content import frame
from warrenmq.wire.erlang import plain, pretty
from warrenmq.wire.fields import Table, check_entries, decode_table, from_python, write_table
from warrenmq.wire.octets import (
    Malformed,
    longstr_end,
    read_long,
    read_longlong,
    read_octet,
    read_short,
    shortstr_end,
    write_long,
    write_longlong,
    write_longstr,
    write_octet,
    write_short,
    write_shortstr,
)
from warrenmq.wire.replies import COMMAND_INVALID, FRAME_ERROR, AmqpError

# class-id method-id name [+content] argument:type ...    Names as in RabbitMQ's machine-readable specification.
METHOD_TABLE: Final = """
10 10  connection.start            version_major:octet version_minor:octet server_properties:table mechanisms:longstr locales:longstr
10 11  connection.start-ok         client_properties:table mechanism:shortstr response:longstr locale:shortstr
10 20  connection.secure           challenge:longstr
10 21  connection.secure-ok        response:longstr
10 30  connection.tune             channel_max:short frame_max:long heartbeat:short
10 31  connection.tune-ok          channel_max:short frame_max:long heartbeat:short
10 40  connection.open             virtual_host:shortstr capabilities:shortstr insist:bit
10 41  connection.open-ok          known_hosts:shortstr
10 50  connection.close            reply_code:short reply_text:shortstr class_id:short method_id:short
10 51  connection.close-ok
10 60  connection.blocked          reason:shortstr
10 61  connection.unblocked
10 70  connection.update-secret    new_secret:longstr reason:shortstr
10 71  connection.update-secret-ok
20 10  channel.open                out_of_band:shortstr
20 11  channel.open-ok             channel_id:longstr
20 20  channel.flow                active:bit
20 21  channel.flow-ok             active:bit
20 40  channel.close               reply_code:short reply_text:shortstr class_id:short method_id:short
20 41  channel.close-ok
30 10  access.request              realm:shortstr exclusive:bit passive:bit active:bit write:bit read:bit
30 11  access.request-ok           ticket:short
40 10  exchange.declare            ticket:short exchange:shortstr type:shortstr passive:bit durable:bit auto_delete:bit internal:bit nowait:bit arguments:table
40 11  exchange.declare-ok
40 20  exchange.delete             ticket:short exchange:shortstr if_unused:bit nowait:bit
40 21  exchange.delete-ok
40 30  exchange.bind               ticket:short destination:shortstr source:shortstr routing_key:shortstr nowait:bit arguments:table
40 31  exchange.bind-ok
40 40  exchange.unbind             ticket:short destination:shortstr source:shortstr routing_key:shortstr nowait:bit arguments:table
40 51  exchange.unbind-ok
50 10  queue.declare               ticket:short queue:shortstr passive:bit durable:bit exclusive:bit auto_delete:bit nowait:bit arguments:table
50 11  queue.declare-ok            queue:shortstr message_count:long consumer_count:long
50 20  queue.bind                  ticket:short queue:shortstr exchange:shortstr routing_key:shortstr nowait:bit arguments:table
50 21  queue.bind-ok
50 30  queue.purge                 ticket:short queue:shortstr nowait:bit
50 31  queue.purge-ok              message_count:long
50 40  queue.delete                ticket:short queue:shortstr if_unused:bit if_empty:bit nowait:bit
50 41  queue.delete-ok             message_count:long
50 50  queue.unbind                ticket:short queue:shortstr exchange:shortstr routing_key:shortstr arguments:table
50 51  queue.unbind-ok
60 10  basic.qos                   prefetch_size:long prefetch_count:short global:bit
60 11  basic.qos-ok
60 20  basic.consume               ticket:short queue:shortstr consumer_tag:shortstr no_local:bit no_ack:bit exclusive:bit nowait:bit arguments:table
60 21  basic.consume-ok            consumer_tag:shortstr
60 30  basic.cancel                consumer_tag:shortstr nowait:bit
60 31  basic.cancel-ok             consumer_tag:shortstr
60 40  basic.publish      +content ticket:short exchange:shortstr routing_key:shortstr mandatory:bit immediate:bit
60 50  basic.return       +content reply_code:short reply_text:shortstr exchange:shortstr routing_key:shortstr
60 60  basic.deliver      +content consumer_tag:shortstr delivery_tag:longlong redelivered:bit exchange:shortstr routing_key:shortstr
60 70  basic.get                   ticket:short queue:shortstr no_ack:bit
60 71  basic.get-ok       +content delivery_tag:longlong redelivered:bit exchange:shortstr routing_key:shortstr message_count:long
60 72  basic.get-empty             cluster_id:shortstr
60 80  basic.ack                   delivery_tag:longlong multiple:bit
60 90  basic.reject                delivery_tag:longlong requeue:bit
60 100 basic.recover-async         requeue:bit
60 110 basic.recover               requeue:bit
60 111 basic.recover-ok
60 120 basic.nack                  delivery_tag:longlong multiple:bit requeue:bit
85 10  confirm.select              nowait:bit
85 11  confirm.select-ok
90 10  tx.select
90 11  tx.select-ok
90 20  tx.commit
90 21  tx.commit-ok
90 30  tx.rollback
90 31  tx.rollback-ok
"""  # noqa: E501


@final
class MethodSpec:
    """One row of the table."""

    def __init__(
        self, class_id: int, method_id: int, name: str, arguments: list[tuple[str, str]], content: bool
    ) -> None:
        self.class_id: Final = class_id
        self.method_id: Final = method_id
        self.name: Final = name
        self.arguments: Final = arguments  # (name, type) in wire order
        self.content: Final = content  # followed by a content header and body

    def __repr__(self) -> str:
        return f"<{self.name} {self.class_id}.{self.method_id}>"


def _read_table(text: str) -> list[MethodSpec]:
    specs: list[MethodSpec] = []
    for line in text.strip().splitlines():
        words = line.split()
        content = "+content" in words
        arguments: list[tuple[str, str]] = []
        for word in words[3:]:
            if word != "+content":
                name, type = word.split(":")
                arguments.append((name, type))
        specs.append(MethodSpec(int(words[0]), int(words[1]), words[2], arguments, content))
    return specs


SPECS: Final[list[MethodSpec]] = _read_table(METHOD_TABLE)
SPECS_BY_NAME: Final[dict[str, MethodSpec]] = {spec.name: spec for spec in SPECS}
SPECS_BY_ID: Final[dict[tuple[int, int], MethodSpec]] = {(spec.class_id, spec.method_id): spec for spec in SPECS}

PUBLISH: Final[MethodSpec] = SPECS_BY_NAME["basic.publish"]


def refused_publish(code: int, explanation: str) -> AmqpError:
    """The error of a basic.publish."""
    return AmqpError(code, explanation, PUBLISH.class_id, PUBLISH.method_id)


# Inside Method the names str, int and bytes mean its getters.
_Str: TypeAlias = str
_Int: TypeAlias = int
_Bytes: TypeAlias = bytes


@final
class Method:
    """A decoded method. shortstr: str; longstr: bytes; bit: bool; table: Table; all else int."""

    def __init__(self, spec: MethodSpec, values: dict[_Str, object]) -> None:
        self.spec: Final = spec
        self.values: Final = values

    @property
    def name(self) -> _Str:
        return self.spec.name

    def str(self, name: _Str) -> _Str:
        value = self.values[name]
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        assert isinstance(value, str)
        return value

    def bytes(self, name: _Str) -> _Bytes:
        value = self.values[name]
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        assert isinstance(value, bytes)
        return value

    def int(self, name: _Str) -> _Int:
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def bit(self, name: _Str) -> bool:
        value = self.values[name]
        assert isinstance(value, bool)
        return value

    def table(self, name: _Str) -> Table:
        value = self.values[name]
        assert isinstance(value, dict)
        return value

    def set(self, name: _Str, value: object) -> None:
        self.values[name] = value

    def payload(self) -> _Bytes:
        return _encode(self.spec, self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Method):
            return False
        return self.spec.name == other.spec.name and self.values == other.values

    def __hash__(self) -> _Int:
        return hash(self.spec.name)

    def __repr__(self) -> _Str:
        inside = ", ".join([f"{name}={value!r}" for name, value in self.values.items()])
        return f"{self.spec.name}({inside})"


# --- reading


def decode_method(payload: bytes) -> Method:
    """A method frame's payload; raises what RabbitMQ answers (see the top of this file)."""
    size: i64 = len(payload)
    if size < 4:
        raise AmqpError(FRAME_ERROR, pretty("type 1, all octets = ", payload) + ": unknown_frame")
    class_id = int(read_short(payload, 0, size))
    method_id = int(read_short(payload, 2, size))
    spec = SPECS_BY_ID.get((class_id, method_id))
    if spec is None:
        raise AmqpError(COMMAND_INVALID, "unimplemented method", class_id, method_id)
    values: dict[str, object] = {}
    try:
        readable = _decode(spec, payload, values)
    except Malformed:
        raise AmqpError(FRAME_ERROR, f"cannot decode {plain(payload[4:260])}", class_id, method_id) from None
    if not readable:
        if class_id == CLASS_CONNECTION:
            raise AmqpError(FRAME_ERROR, "Malformed UTF-8 in shortstr", class_id, method_id)
        raise AmqpError(FRAME_ERROR, "Malformed UTF-8 in shortstr")
    return Method(spec, values)


def _decode(spec: MethodSpec, payload: bytes, values: dict[str, object]) -> bool:
    """Fill ``values``; False when the structure is sound but a short string is no UTF-8.

    A ladder, the frequent types first: readers called by way of a table would cost more than the comparisons.
    """
    end: i64 = len(payload)
    at: i64 = 4
    stop: i64 = 0
    bits: i64 = 0
    bit: i64 = 8  # next bit of the current octet of bits; 8 = there is none
    readable = True
    for name, type in spec.arguments:
        if type == "bit":
            if bit == 8:
                bits = read_octet(payload, at, end)
                at += 1
                bit = 0
            values[name] = (bits >> bit) & 1 == 1
            bit += 1
            continue
        bit = 8
        if type == "shortstr":
            stop = shortstr_end(payload, at, end)
            if spec.content:
                values[name] = payload[at + 1 : stop].decode("utf-8", "surrogateescape")
            else:
                try:
                    values[name] = payload[at + 1 : stop].decode("utf-8")
                except UnicodeDecodeError:
                    readable = False
            at = stop
        elif type == "short":
            values[name] = int(read_short(payload, at, end))
            at += 2
        elif type == "longlong" or type == "timestamp":
            values[name] = read_longlong(payload, at, end)
            at += 8
        elif type == "table":
            table, stop = decode_table(payload, at)
            check_entries(payload, at + 4, stop)
            values[name] = table
            at = stop
        elif type == "long":
            values[name] = int(read_long(payload, at, end))
            at += 4
        elif type == "longstr":
            stop = longstr_end(payload, at, end)
            values[name] = payload[at + 4 : stop]
            at = stop
        else:
            values[name] = int(read_octet(payload, at, end))
            at += 1
    if at != end:
        raise Malformed("arguments longer than the method")
    return readable


# --- writing


def method_payload(name: str, /, **values: object) -> bytes:
    """The payload of the method ``name``; arguments left out are 0, "", False or {}."""
    return _encode(_spec_for(name, values), values)


def method_frame(channel: int, name: str, /, **values: object) -> bytes:
    """A whole frame with that method."""
    return frame(FRAME_METHOD, channel, _encode(_spec_for(name, values), values))


def method(name: str, /, **values: object) -> Method:
    """A Method with every argument filled in."""
    return decode_method(_encode(_spec_for(name, values), values))


def _spec_for(name: str, values: dict[str, object]) -> MethodSpec:
    spec = SPECS_BY_NAME.get(name)
    if spec is None:
        raise ValueError(f"there is no method {name}")
    known = [argument[0] for argument in spec.arguments]
    for given in values:
        if given not in known:
            raise ValueError(f"{name} has no argument {given}")
    return spec


def _encode(spec: MethodSpec, values: dict[str, object]) -> bytes:
    out = BytesWriter()
    write_short(out, spec.class_id)
    write_short(out, spec.method_id)
    bits = 0
    bit = 0
    for name, type in spec.arguments:
        value = values.get(name)
        if type == "bit":
            if bit == 8:
                out.append(bits)
                bits = 0
                bit = 0
            if value:
                bits |= 1 << bit
            bit += 1
            continue
        if bit > 0:
            out.append(bits)
            bits = 0
            bit = 0
        if type == "shortstr":
            write_shortstr(out, _as_text(name, value))
        elif type == "longstr":
            if isinstance(value, bytes):
                write_longstr(out, value)
            else:
                write_longstr(out, _as_text(name, value).encode("utf-8", "surrogateescape"))
        elif type == "table":
            if value is None:
                write_table(out, {})
            elif isinstance(value, dict):
                write_table(out, from_python(value))
            else:
                raise TypeError(f"{name} has to be a table, not {value!r}")
        elif type == "short":
            write_short(out, _as_number(name, value))
        elif type == "long":
            write_long(out, _as_number(name, value))
        elif type == "octet":
            write_octet(out, _as_number(name, value))
        else:
            write_longlong(out, _as_number(name, value))
    if bit > 0:
        out.append(bits)
    return out.getvalue()


def _as_text(name: str, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name} has to be a str, not {value!r}")
    return value


def _as_number(name: str, value: object) -> int:
    if value is None:
        return 0
    if not isinstance(value, int):
        raise TypeError(f"{name} has to be an int, not {value!r}")
    return value
