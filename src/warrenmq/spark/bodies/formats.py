"""One body <-> plain Python values: a class a format. Pickled to the workers; what it needs is imported there.

Duty: octets and values. ``decode`` raises ValueError for a body that cannot be read, ``encode`` for a value that cannot
be written. Not here: types of columns (``fitting.py``, ``shapes.py``) and where schemas come from (``registry.py``).
"""

from __future__ import annotations

import io
import json
from typing import Any, Protocol

from warrenmq.spark.bodies import registry
from warrenmq.spark.options import OptionError
from warrenmq.spark.requirements import needed


class Format(Protocol):
    """A codec of message bodies: bytes to values and back."""

    def decode(self, body: bytes) -> Any: ...

    def encode(self, value: dict[str, Any]) -> bytes: ...


class Json:
    """UTF-8 JSON, an object a body."""

    def decode(self, body: bytes) -> Any:
        import msgspec

        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from None

    def encode(self, value: dict[str, Any]) -> bytes:
        import msgspec

        try:
            return msgspec.json.encode(value)
        except TypeError as error:
            raise ValueError(str(error)) from None


class Avro:
    """A record without the file's frame around it; with a registry the body begins with its schema's number."""

    def __init__(self, schema: str | None, url: str | None = None, subject: str | None = None) -> None:
        needed("fastavro", "Avro bodies")
        if schema is None and url is None:
            raise OptionError("Avro bodies need a schema (its JSON text) or a registry's URL")
        self.schema = schema
        self.url = url
        self.subject = subject
        self._parsed: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parsed": {}}

    def decode(self, body: bytes) -> Any:
        import fastavro

        writer: Any = None
        if self.url is not None:
            number, body = registry.split(body)
            writer = self._schema(number)
        reader: Any = None if self.schema is None else self._schema(None)
        source = io.BytesIO(body)
        try:
            if writer is None:
                value = fastavro.schemaless_reader(source, reader)
            else:
                value = fastavro.schemaless_reader(source, writer, reader)
        except registry.RegistryError:
            raise
        except Exception as error:  # the package raises what it happens to stumble over
            raise ValueError(f"no such Avro record: {type(error).__name__} {error}".strip()) from None
        if source.read(1):
            raise ValueError("octets behind the Avro record")
        return value

    def encode(self, value: dict[str, Any]) -> bytes:
        import fastavro

        number = None
        schema: Any = None if self.schema is None else self._schema(None)
        if self.url is not None:
            if self.subject is None:
                raise OptionError("writing Avro with a registry needs 'subject', whose newest schema is used")
            number, _ = registry.latest(self.url, self.subject)
            schema = self._schema(number)
        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, schema, value)
        except Exception as error:
            raise ValueError(f"not a record of the Avro schema: {type(error).__name__} {error}") from None
        return out.getvalue() if number is None else registry.join(number, out.getvalue())

    def _schema(self, number: int | None) -> Any:
        import fastavro

        if number not in self._parsed:
            text = self.schema if number is None else registry.by_number(self.url or "", number)
            self._parsed[number] = fastavro.parse_schema(json.loads(text or "null"))
        return self._parsed[number]


class Protobuf:
    """A message of a compiled descriptor set (``protoc --include_imports --descriptor_set_out``)."""

    def __init__(self, descriptors: bytes, message: str, registry_prefix: bool = False) -> None:
        needed("google.protobuf", "Protobuf bodies")
        self.descriptors = descriptors
        self.message = message
        self.registry_prefix = registry_prefix
        self._class: Any = None
        self.descriptor()  # a wrong name or file is told at once, on the driver

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_class": None}

    def descriptor(self) -> Any:
        return self._message_class().DESCRIPTOR

    def decode(self, body: bytes) -> Any:
        from google.protobuf.message import DecodeError

        if self.registry_prefix:
            _, body = registry.split(body)
            body = _behind_index(body)
        parsed = self._message_class()()
        try:
            parsed.ParseFromString(body)
        except DecodeError as error:
            raise ValueError(f"no such Protobuf message: {error}") from None
        return _plain(parsed)

    def encode(self, value: dict[str, Any]) -> bytes:
        message = self._message_class()()
        try:
            _fill(message, value)
            return bytes(message.SerializeToString(deterministic=True))
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"not a Protobuf message {self.message}: {error}") from None

    def _message_class(self) -> Any:
        if self._class is None:
            from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
            from google.protobuf.message import DecodeError

            try:
                files = descriptor_pb2.FileDescriptorSet.FromString(self.descriptors)
            except DecodeError:
                raise OptionError("'descriptors' is no descriptor set: protoc --descriptor_set_out makes one") from None
            pool = descriptor_pool.DescriptorPool()
            for file in files.file:
                pool.Add(file)
            try:
                self._class = message_factory.GetMessageClass(pool.FindMessageTypeByName(self.message))
            except KeyError:
                raise OptionError(f"the descriptor set has no message '{self.message}'") from None
        return self._class


def _behind_index(body: bytes) -> bytes:
    """Past the path of message indexes: a count, then so many numbers, of variable length; 0 stands for [0]."""
    at, count = _varint(body, 0)
    for _ in range(count >> 1):  # zigzag: the count is never negative
        at, _ = _varint(body, at)
    return body[at:]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(body) and shift < 64:
        octet = body[at]
        at += 1
        value |= (octet & 127) << shift
        if octet < 128:
            return at, value
        shift += 7
    raise ValueError("the body ends in the middle of its message index")


def _plain(message: Any) -> dict[str, Any]:
    """Fields by name; what is not set is there with its default, unless the field can say that it is not set."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            inner = field.message_type.fields_by_name["value"].message_type
            found[field.name] = {str(key): _plain(each) if inner else each for key, each in value.items()}
        elif field.is_repeated:
            found[field.name] = [_scalar(field, each) for each in value]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _scalar(field, value)
    return found


def _scalar(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return value.ToDatetime()
        return _plain(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value


def _fill(message: Any, value: dict[str, Any]) -> None:
    for name, each in value.items():
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            raise ValueError(f"it has no field '{name}'")
        if each is None:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            inner = field.message_type.fields_by_name["value"].message_type
            for key, one in dict(each).items():
                if inner:
                    _fill(getattr(message, name)[key], one)
                else:
                    getattr(message, name)[key] = one
        elif field.is_repeated:
            for one in each:
                if field.message_type is not None:
                    _set_message(field, getattr(message, name).add(), one)
                else:
                    getattr(message, name).append(_number_of(field, one))
        elif field.message_type is not None:
            getattr(message, name).SetInParent()
            _set_message(field, getattr(message, name), each)
        else:
            setattr(message, name, _number_of(field, each))


def _set_message(field: Any, message: Any, value: Any) -> None:
    if field.message_type.full_name == "google.protobuf.Timestamp":
        message.FromDatetime(value)
    else:
        _fill(message, value)


def _number_of(field: Any, value: Any) -> Any:
    if field.enum_type is None or not isinstance(value, str):
        return value
    known = field.enum_type.values_by_name.get(value)
    if known is None:
        raise ValueError(f"'{value}' is no value of {field.enum_type.full_name}")
    return known.number
