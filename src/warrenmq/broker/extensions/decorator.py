"""Exchange decorators: further destinations for what passes through an exchange, whatever its type says.

A decorator is any object with

    name                         a str, unique
    applies(exchange)            -> bool, asked at declare, at policy changes and at recovery
    route(exchange, message)     -> the Resources (queues or exchanges of the same virtual host) to add

and, if it reads arguments of its own, ``validate(exchange)``, which raises AmqpError at declare. Destinations that do
not exist are left out; the rest are merged with the type's and deduplicated. They do not stop the alternate exchange.
The default exchange has no decorators, and a message through a decorated exchange is routed afresh every time.

Which decorators an exchange has is never stored; ``decorators_for`` finds out again.
"""

from __future__ import annotations

from typing import Any, Final, cast, final

from warrenmq.broker.extensions.extensions import ExtensionError, check_name, load
from warrenmq.broker.extensions.named import destination
from warrenmq.broker.records import BasicMessage, Exchange, Resource
from warrenmq.wire.erlang import field_term
from warrenmq.wire.fields import Field, type_name
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

ENTRY_POINTS: Final = "warrenmq.decorators"
EXTRA_ARGUMENT: Final = "x-extra-destinations"
EXTRA_POLICY: Final = "extra-destinations"


@final
class DecoratorRegistry:
    """The decorators there are, in the order they were registered; the built-in one comes first."""

    def __init__(self) -> None:
        self._decorators: dict[str, object] = {}
        self.register(ExtraDestinations())

    def register(self, decorator: object) -> None:
        """Take a decorator in. Exchanges declared before have to be recalculated."""
        name = check_name("decorator", decorator)
        for method in ("applies", "route"):
            if not callable(getattr(decorator, method, None)):
                raise ExtensionError(f"decorator '{name}' has no method '{method}'")
        if name in self._decorators:
            raise ExtensionError(f"there are two decorators of the name '{name}'")
        self._decorators[name] = decorator

    def load(self, name: str) -> None:
        """Register a decorator by ``package.module:object`` or by the name of an entry point."""
        self.register(load("decorator", ENTRY_POINTS, name))

    def all(self) -> list[object]:
        return list(self._decorators.values())


def decorators_for(exchange: Exchange, registry: DecoratorRegistry) -> list[object]:
    """The decorators that apply to this exchange now."""
    if not exchange.name.name:
        return []
    chosen: list[object] = []
    for each in registry.all():
        decorator: Any = each
        if decorator.applies(exchange):
            chosen.append(each)
    return chosen


def validate(exchange: Exchange, registry: DecoratorRegistry) -> None:
    """Let every decorator look at the arguments of an exchange that is being declared; raises AmqpError."""
    for each in registry.all():
        decorator: Any = each
        if hasattr(each, "validate"):
            decorator.validate(exchange)


@final
class ExtraDestinations:
    """The built-in decorator: an exchange argument or policy key lists further destinations.

    ``x-extra-destinations`` (argument) or ``extra-destinations`` (policy; the argument wins) is a list of names
    (``named.destination``). Who may name them: ``named.py``.
    """

    def __init__(self) -> None:
        self.name: Final = "extra-destinations"

    def applies(self, exchange: Exchange) -> bool:
        return len(_listed(exchange)) > 0

    def route(self, exchange: Exchange, message: BasicMessage) -> list[Resource]:
        virtual_host = exchange.name.virtual_host
        return [destination(virtual_host, name) for name in _listed(exchange)]

    def validate(self, exchange: Exchange) -> None:
        field = exchange.arguments.get(EXTRA_ARGUMENT)
        if field is None:
            return
        if field.kind != "A":
            raise AmqpError(
                PRECONDITION_FAILED,
                f"invalid arg '{EXTRA_ARGUMENT}' for {exchange.name}: expected array, got {type_name(field)}",
            )
        for item in cast(list[Field], field.value):
            if item.kind != "S" or not isinstance(item.value, str):
                problem = f"{field_term(item)} is no name"
                raise AmqpError(PRECONDITION_FAILED, f"invalid arg '{EXTRA_ARGUMENT}' for {exchange.name}: {problem}")


def _listed(exchange: Exchange) -> list[str]:
    names: list[str] = []
    field = exchange.arguments.get(EXTRA_ARGUMENT)
    if field is not None:
        if isinstance(field.value, list):
            for item in field.value:
                if isinstance(item, Field) and isinstance(item.value, str):
                    names.append(item.value)
        return names
    listed = exchange.policy.definition.get(EXTRA_POLICY)
    if isinstance(listed, list):
        for each in listed:
            if isinstance(each, str):
                names.append(each)
    return names
