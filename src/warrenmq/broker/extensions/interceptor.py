"""Interceptors: code that sees channel methods before the broker acts on them, and messages before they are routed.

An interceptor is any object with a unique ``name`` and one or both of

    intercept(method, channel) -> Method        may rewrite the method's values, or raise AmqpError to refuse it
    amend(message) -> BasicMessage              may return a changed message (``amended`` makes one)

and optionally ``applies_to``, the names of the methods it wants to see (``["queue.declare"]``; all when it is absent).
``channel`` is a ChannelView. A method stays the method it was; a message keeps its id. Interceptors run in the order of
the configuration, each on what the one before it returned. An AmqpError closes the channel or connection by its code,
as it does anywhere else; any other exception is the interceptor's fault and ends the connection with 541 naming it.

They are loaded by name (``load_interceptors``): ``timestamp`` and ``routing-node`` are built in,
``package.module:object`` is imported, any other name is an entry point of the group ``warrenmq.interceptors``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

from warrenmq.broker.extensions.extensions import ExtensionError, check_name, load
from warrenmq.broker.records import BasicMessage
from warrenmq.broker.services.clock import Clock
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field
from warrenmq.wire.methods import SPECS_BY_NAME, Method
from warrenmq.wire.replies import INTERNAL_ERROR, AmqpError

ENTRY_POINTS: Final = "warrenmq.interceptors"
TIMESTAMP_HEADER: Final = "timestamp_in_ms"
NODE_HEADER: Final = "x-routed-by"


@final
class ChannelView:
    """A channel, as far as an interceptor may know it."""

    def __init__(self, virtual_host: str, user: str, connection_name: str, number: int) -> None:
        self.virtual_host: Final = virtual_host
        self.user: Final = user
        self.connection_name: Final = connection_name
        self.number: Final = number


@final
class Interceptors:
    """The chain. ``of_methods`` and ``of_messages`` are empty when nobody wants to look, so that nobody has to pay."""

    def __init__(self, interceptors: Sequence[object] = ()) -> None:
        self.of_methods: list[object] = []
        self.of_messages: list[object] = []
        names: set[str] = set()
        for each in interceptors:
            name = check_name("interceptor", each)
            if name in names:
                raise ExtensionError(f"there are two interceptors of the name '{name}'")
            names.add(name)
            intercepts = callable(getattr(each, "intercept", None))
            amends = callable(getattr(each, "amend", None))
            if not intercepts and not amends:
                raise ExtensionError(f"interceptor '{name}' has neither a method 'intercept' nor a method 'amend'")
            _check_applies_to(name, each)
            if intercepts:
                self.of_methods.append(each)
            if amends:
                self.of_messages.append(each)

    def intercept(self, method: Method, channel: ChannelView) -> Method:
        for each in self.of_methods:
            interceptor: Any = each
            wanted: Any = getattr(each, "applies_to", None)
            if wanted is not None and method.name not in wanted:
                continue
            try:
                result: object = interceptor.intercept(method, channel)
            except AmqpError:
                raise
            except Exception as error:
                raise _fault(each, error) from error
            if not isinstance(result, Method) or result.name != method.name:
                raise AmqpError(INTERNAL_ERROR, f"interceptor '{interceptor.name}' returned no {method.name}")
            method = result
        return method

    def amend(self, message: BasicMessage) -> BasicMessage:
        for each in self.of_messages:
            interceptor: Any = each
            try:
                result: object = interceptor.amend(message)
            except AmqpError:
                raise
            except Exception as error:
                raise _fault(each, error) from error
            if not isinstance(result, BasicMessage) or result.id != message.id:
                raise AmqpError(INTERNAL_ERROR, f"interceptor '{interceptor.name}' did not return the message")
            message = result
        return message


def load_interceptors(names: Sequence[str], node: str, clock: Clock) -> Interceptors:
    """The chain a configuration asks for; raises ExtensionError with one clear line."""
    chain: list[object] = []
    for name in names:
        if name == "timestamp":
            chain.append(TimestampInterceptor(clock))
        elif name == "routing-node":
            chain.append(RoutingNodeInterceptor(node))
        else:
            chain.append(load("interceptor", ENTRY_POINTS, name))
    return Interceptors(chain)


def amended(message: BasicMessage, properties: Properties, routing_keys: list[str] | None = None) -> BasicMessage:
    """The message with other properties, and other routing keys if any are given; body and id stay."""
    content = message.content.with_properties(properties)
    keys = message.routing_keys if routing_keys is None else routing_keys
    return BasicMessage(message.exchange_name, keys, content, message.id, properties.delivery_mode == 2)


@final
class TimestampInterceptor:
    """An interceptor that says when a message came in, in property ``timestamp`` and header ``timestamp_in_ms``.

    What the publisher has set stays, unless told to overwrite it.
    """

    def __init__(self, clock: Clock, overwrite: bool = False) -> None:
        self.name: Final = "timestamp"
        self._clock: Final = clock
        self._overwrite: Final = overwrite

    def amend(self, message: BasicMessage) -> BasicMessage:
        now = int(self._clock.now_ms())
        properties = message.content.properties.copy()
        headers = {} if properties.headers is None else dict(properties.headers)
        if self._overwrite or properties.timestamp is None:
            properties.timestamp = now // 1000
        if self._overwrite or TIMESTAMP_HEADER not in headers:
            headers[TIMESTAMP_HEADER] = Field("l", now)
        properties.headers = headers
        return amended(message, properties)


@final
class RoutingNodeInterceptor:
    """An interceptor that says which node routed a message, in the header ``x-routed-by``."""

    def __init__(self, node: str, overwrite: bool = False) -> None:
        self.name: Final = "routing-node"
        self._node: Final = node
        self._overwrite: Final = overwrite

    def amend(self, message: BasicMessage) -> BasicMessage:
        headers = message.content.headers
        if NODE_HEADER in headers and not self._overwrite:
            return message
        properties = message.content.properties.copy()
        properties.headers = {**headers, NODE_HEADER: Field("S", self._node)}
        return amended(message, properties)


def _check_applies_to(name: str, interceptor: object) -> None:
    wanted: Any = getattr(interceptor, "applies_to", None)
    if wanted is None:
        return
    if isinstance(wanted, str):
        raise ExtensionError(f"interceptor '{name}': applies_to is a list of method names, not a str")
    for method in wanted:
        if method not in SPECS_BY_NAME:
            raise ExtensionError(f"interceptor '{name}' applies to '{method}', which is no method of AMQP")


def _fault(interceptor: object, error: Exception) -> AmqpError:
    name = getattr(interceptor, "name", "?")
    return AmqpError(INTERNAL_ERROR, f"interceptor '{name}' failed: {type(error).__name__}: {error}")
