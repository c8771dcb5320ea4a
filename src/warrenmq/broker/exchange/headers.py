"""headers: binding arguments against message headers, with the four forms of ``x-match``.

``all`` (the default) and ``any`` leave out arguments whose name starts with ``x-``; ``all-with-x`` and ``any-with-x``
compare them too, except ``x-match`` itself. A void argument asks for presence only. ``all`` of nothing matches
everything, ``any`` of nothing matches nothing. What "equal" means stands in ``terms.py``.

Rules are filed under what they ask for: an ``any`` rule under each of its conditions, an ``all`` rule under the one
that fewest others share. A message looks up its own headers and checks only what it finds there.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.exchange.terms import comparable
from warrenmq.broker.records import BasicMessage, Binding, Destination, ExchangeType, Matches
from warrenmq.wire.erlang import field_term
from warrenmq.wire.fields import Field, Table, type_name
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

FORMS: Final = ("all", "any", "all-with-x", "any-with-x")


def x_match(arguments: Table) -> str:
    """The form in force for a valid binding."""
    field = arguments.get("x-match")
    if field is not None and isinstance(field.value, str) and field.value in FORMS:
        return field.value
    return "all"


@final
class Condition:
    """One argument of a binding: a header that must be there, and unless it is void, equal."""

    def __init__(self, name: str, field: Field) -> None:
        self.name: Final = name
        self.presence_only: Final[bool] = field.kind == "V"
        self.value: Final[object] = comparable(field)

    def holds(self, headers: Table) -> bool:
        field = headers.get(self.name)
        if field is None:
            return False
        return self.presence_only or comparable(field) == self.value


def conditions_of(arguments: Table) -> list[Condition]:
    """What a binding asks for, by its form of ``x-match``."""
    with_x = x_match(arguments).endswith("-with-x")
    conditions: list[Condition] = []
    for name, field in arguments.items():
        if name != "x-match" and (with_x or not name.startswith("x-")):
            conditions.append(Condition(name, field))
    return conditions


@final
class Rule:
    """A binding as it is matched."""

    def __init__(self, binding: Binding, number: i64) -> None:
        self.binding: Final = binding
        self.number: Final[i64] = number  # of arrival: keeps the order of destinations that of the bindings
        self.any: Final[bool] = x_match(binding.arguments).startswith("any")
        self.conditions: Final = conditions_of(binding.arguments)
        self.filed: list[dict[Rule, bool]] = []

    def holds(self, headers: Table) -> bool:
        """All of it. (Any of it is known once the rule has been found by a condition.)"""
        for condition in self.conditions:
            if not condition.holds(headers):
                return False
        return True


@final
class HeadersExchange(ExchangeType):
    """The rules, filed by (header, value) and by header."""

    def __init__(self) -> None:
        self._rules: dict[Binding, Rule] = {}
        self._by_value: dict[str, dict[object, dict[Rule, bool]]] = {}
        self._by_presence: dict[str, dict[Rule, bool]] = {}
        self._always: dict[Rule, bool] = {}
        self._number: i64 = 0

    def validate_binding(self, binding: Binding) -> None:
        field = binding.arguments.get("x-match")
        if field is None:
            return
        if field.kind != "S":
            raise AmqpError(
                PRECONDITION_FAILED,
                f"Invalid x-match field type {type_name(field)} (value {field_term(field)}); expected longstr",
            )
        if field.value not in FORMS:
            raise AmqpError(
                PRECONDITION_FAILED,
                f"Invalid x-match field value {field_term(field)}; expected all, any, all-with-x, or any-with-x",
            )

    def bind(self, binding: Binding) -> None:
        self._number += 1
        rule = Rule(binding, self._number)
        self._rules[binding] = rule
        if not rule.conditions:
            if not rule.any:
                self._file(rule, self._always)
        elif rule.any:
            for condition in rule.conditions:
                self._file(rule, self._drawer(condition))
        else:
            rarest = self._drawer(rule.conditions[0])
            for condition in rule.conditions[1:]:
                if not rarest:
                    break
                drawer = self._drawer(condition)
                if len(drawer) < len(rarest):
                    rarest = drawer
            self._file(rule, rarest)
        self._sweep(rule)

    def unbind(self, binding: Binding) -> None:
        rule = self._rules.pop(binding)
        for drawer in rule.filed:
            drawer.pop(rule, None)
        self._sweep(rule)

    def route(self, message: BasicMessage) -> list[Destination]:
        found = self._holding(message)
        if len(found) == 1:
            return [found[0].destination]
        return list(dict.fromkeys([binding.destination for binding in found]))

    def matched(self, message: BasicMessage) -> Matches:
        matches = Matches()
        for binding in self._holding(message):
            matches.add(binding)
        return matches

    def _holding(self, message: BasicMessage) -> list[Binding]:
        """Each binding whose rule holds, in the order of arrival."""
        headers = message.content.headers
        found = list(self._always)
        message.looks += len(found)
        for name, field in headers.items():
            values = self._by_value.get(name)
            if values is not None:
                rules = values.get(comparable(field))
                if rules is not None:
                    self._collect(rules, message, found)
            asking = self._by_presence.get(name)
            if asking is not None:
                self._collect(asking, message, found)
        if not found:
            return []
        if len(found) == 1:
            return [found[0].binding]
        numbered: dict[i64, Rule] = {}
        for rule in found:
            numbered[rule.number] = rule
        return [numbered[number].binding for number in sorted(numbered)]

    def by_key_alone(self) -> bool:
        return False

    def is_empty(self) -> bool:
        """True when no binding has left anything behind (for tests of pruning)."""
        return not (self._rules or self._by_value or self._by_presence or self._always)

    def _collect(self, rules: dict[Rule, bool], message: BasicMessage, found: list[Rule]) -> None:
        message.looks += len(rules)
        headers = message.content.headers
        for rule in rules:
            if rule.any or len(rule.conditions) == 1:
                found.append(rule)
            else:
                message.looks += len(rule.conditions)
                if rule.holds(headers):
                    found.append(rule)

    def _file(self, rule: Rule, drawer: dict[Rule, bool]) -> None:
        drawer[rule] = True
        rule.filed.append(drawer)

    def _drawer(self, condition: Condition) -> dict[Rule, bool]:
        """Where a rule that can be found by this condition is filed."""
        if condition.presence_only:
            return self._by_presence.setdefault(condition.name, {})
        return self._by_value.setdefault(condition.name, {}).setdefault(condition.value, {})

    def _sweep(self, rule: Rule) -> None:
        """Take away the drawers this rule's conditions name if they are empty."""
        for condition in rule.conditions:
            name = condition.name
            if condition.presence_only:
                if not self._by_presence.get(name, True):
                    del self._by_presence[name]
                continue
            values = self._by_value.get(name)
            if values is None:
                continue
            if not values.get(condition.value, True):
                del values[condition.value]
            if not values:
                del self._by_value[name]
