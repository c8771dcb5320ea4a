"""Definitions in RabbitMQ's JSON: what is in a document, checked completely before anything is applied.

Duty: turn a document into a ``Plan`` or a list of problems, each with its position (``queues[3].durable: ...``).
A plan exists only when the whole document makes sense; until then nothing has changed. Reading goes in steps, one for
each part, because a document may have a hundred thousand. Not here: JSON text, carrying a plan out (``importing.py``),
exporting (``exporting.py``).

As in RabbitMQ an import merges and never deletes: a queue, exchange or binding that exists stays as it is; users,
permissions, parameters and policies are replaced. Unknown keys are ignored, for documents of newer versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, final

from warrenmq.broker.access import passwords
from warrenmq.broker.access.access import Permission, Refused, TopicPermission
from warrenmq.broker.definitions.part import Part, as_object, shown
from warrenmq.broker.definitions.plan import (
    Plan,
    PlannedBinding,
    PlannedExchange,
    PlannedParameter,
    PlannedQueue,
    PlannedUser,
    PlannedVhost,
)
from warrenmq.broker.exchange.types import create
from warrenmq.broker.policy.policy import parse_policy
from warrenmq.broker.queue import arguments as queue_arguments
from warrenmq.broker.records import Binding, Destination, Exchange, Resource
from warrenmq.broker.services.randomness import Randomness
from warrenmq.broker.vhost.vhost import PREDECLARED
from warrenmq.log.levels import LEVEL_NAMES, MOST_SAMPLE, level_of
from warrenmq.wire.replies import AmqpError

SHOWN: Final = 50  # problems reported at most


class InvalidDefinitions(Exception):
    """The mistakes of a document, by position; not more than can be read."""

    def __init__(self, problems: list[str]) -> None:
        shown = problems[:SHOWN]
        if len(problems) > SHOWN:
            shown.append(f"... and {len(problems) - SHOWN} more")
        super().__init__("\n".join(shown))
        self.problems = shown


@final
class Existing:
    """The objects that the broker has already, as far as a document may refer to it: its own collections, not copies of
    them."""

    def __init__(self, users: Mapping[str, object]) -> None:
        self.users: Final = users
        # by vhost and name
        self.exchanges: Final[dict[str, dict[str, Exchange]]] = {}
        self.queues: Final[dict[str, Mapping[str, object]]] = {}
        self.queue_limits: Final[dict[str, int]] = {}  # of vhosts that have one

    def exchange(self, name: Resource) -> Exchange | None:
        exchanges = self.exchanges.get(name.virtual_host)
        return None if exchanges is None else exchanges.get(name.name)

    def has_queue(self, name: Resource) -> bool:
        queues = self.queues.get(name.virtual_host)
        return queues is not None and name.name in queues


def parse(document: dict[str, object], vhost: str | None, existing: Existing, random: Randomness) -> Plan:
    """A plan for a whole document, or for one vhost's (``vhost``); raises InvalidDefinitions."""
    reader = Reader(vhost, existing, random)
    for _ in reader.read(document):
        pass
    return reader.finished()


@final
class Reader:
    """The reader of one document: ``read`` to the end, then ``finished``."""

    def __init__(self, vhost: str | None, existing: Existing, random: Randomness) -> None:
        self._vhost: Final = vhost
        self._random: Final = random
        self.problems: Final[list[str]] = []
        self.plan: Final = Plan()
        self._existing: Final = existing
        # what the document adds, as far as it has been read
        self._users: Final[set[str]] = set()
        self._vhosts: Final[set[str]] = set()
        self._exchanges: Final[dict[Resource, Exchange]] = {}
        self._queues: Final[set[Resource]] = set()
        self._queue_limits: Final = dict(existing.queue_limits)
        self._queue_counts: Final[dict[str, int]] = {}
        for name, queues in existing.queues.items():
            self._queue_counts[name] = len(queues)

    def finished(self) -> Plan:
        """The plan; raises InvalidDefinitions."""
        if self.problems:
            raise InvalidDefinitions(self.problems)
        return self.plan

    def kept(self) -> list[object]:
        """Every collection that grew with the document: freeing a hundred thousand parts is long work too."""
        plan = self.plan
        return [
            plan.users,
            plan.vhosts,
            plan.permissions,
            plan.topic_permissions,
            plan.operator_policies,
            plan.vhost_limits,
            plan.parameters,
            plan.global_parameters,
            plan.policies,
            plan.exchanges,
            plan.queues,
            plan.bindings,
            self._users,
            self._vhosts,
            self._exchanges,
            self._queues,
            self.problems,
        ]

    def read(self, document: dict[str, object]) -> Iterator[None]:
        for section in SECTIONS:
            if self._vhost is not None and not section.in_vhost:
                continue  # a vhost's document cannot reach beyond the vhost
            parts = document.get(section.name)
            if parts is None:
                continue
            if not isinstance(parts, list):
                self.problems.append(f"{section.name}: expected a list, got {shown(parts)}")
                continue
            number = 0
            for value in parts:
                position = f"{section.name}[{number}]"
                number += 1
                if isinstance(value, dict):
                    self._part(section, Part(position, value, self.problems))
                else:
                    self.problems.append(f"{position}: expected an object, got {shown(value)}")
                yield

    def _part(self, section: Section, part: Part) -> None:
        before = len(self.problems)
        try:
            section.read(self, part)
        except Refused as refusal:
            if len(self.problems) == before:
                part.wrong("", " ".join(str(refusal).split()))
        except AmqpError as error:
            if len(self.problems) == before:
                part.wrong("", error.explanation)

    # --- who

    def _user(self, part: Part) -> None:
        name = part.name("name")
        tags = part.tags("tags")
        algorithm = part.text("hashing_algorithm", False, passwords.SHA256)
        if algorithm not in passwords.ALGORITHMS:
            part.wrong("hashing_algorithm", f"unknown: {shown(algorithm)}")
        if "password" in part.value and "password_hash" not in part.value:
            password_hash = passwords.hash_password(part.text("password"), passwords.new_salt(), passwords.SHA256)
            algorithm = passwords.SHA256
        else:
            password_hash = part.text("password_hash", False)
            if not passwords.is_hash(password_hash):
                part.wrong("password_hash", "not base64")
        self._users.add(name)
        self.plan.users.append(PlannedUser(name, password_hash, algorithm, tags, part.numbers("limits")))

    def _a_vhost(self, part: Part) -> None:
        name = part.name("name")
        metadata = Part(part.position + ".metadata", part.object("metadata"), self.problems)
        description = part.text("description", False) or metadata.text("description", False)
        tags = part.tags("tags") or metadata.tags("tags")
        queue_type = part.text("default_queue_type", False) or metadata.text("default_queue_type", False)
        self._vhosts.add(name)
        for exchange, type, internal in PREDECLARED:
            resource = Resource(name, "exchange", exchange)
            if self._exchange_named(resource) is None:
                matcher = create(type, {}, self._random)
                self._exchanges[resource] = Exchange(resource, type, True, False, internal, {}, matcher)
        nacks = part.flag("nack_unroutable") or metadata.flag("nack_unroutable")
        default = "" if queue_type == "undefined" else queue_type
        level, sample = _journal(metadata)
        tracing = part.flag("tracing")
        self.plan.vhosts.append(PlannedVhost(name, description, tags, default, tracing, nacks, level, sample))

    def _known_user(self, part: Part) -> str:
        user = part.text("user")
        if user and user not in self._users and user not in self._existing.users:
            part.wrong("user", f"no such user {shown(user)}")
        return user

    def _known_vhost(self, part: Part) -> str:
        if self._vhost is not None:
            return self._vhost
        vhost = part.text("vhost")
        if vhost and vhost not in self._vhosts and vhost not in self._existing.exchanges:
            part.wrong("vhost", f"no such vhost {shown(vhost)}")
        return vhost

    def _permission(self, part: Part) -> None:
        user, vhost = self._known_user(part), self._known_vhost(part)
        self.plan.permissions.append(
            Permission(user, vhost, part.text("configure"), part.text("write"), part.text("read"))
        )

    def _topic_permission(self, part: Part) -> None:
        user, vhost = self._known_user(part), self._known_vhost(part)
        self.plan.topic_permissions.append(
            TopicPermission(user, vhost, part.name("exchange"), part.text("write"), part.text("read"))
        )

    # --- settings

    def _parameter(self, part: Part) -> None:
        component, vhost, name = part.name("component"), self._known_vhost(part), part.name("name")
        if "value" not in part.value:
            part.wrong("value", "missing")
        value = part.value.get("value")
        if component == "operator_policy":
            policy = dict(part.object("value"))
            policy["definition"] = as_object(policy.get("definition"))
            self.plan.operator_policies.append(parse_policy(vhost, name, policy, True))
        elif component == "vhost-limits":
            numbers = part.numbers("value")
            self._queue_limits[vhost] = numbers.get("max-queues", -1)
            limits: dict[str, object] = {}
            limits.update(numbers)
            self.plan.vhost_limits.append(PlannedParameter(component, vhost, name, limits))
        else:
            self.plan.parameters.append(PlannedParameter(component, vhost, name, value))

    def _global_parameter(self, part: Part) -> None:
        name = part.name("name")
        if "value" not in part.value:
            part.wrong("value", "missing")
        self.plan.global_parameters.append(PlannedParameter("", "", name, as_object(part.value.get("value"))))

    def _policy(self, part: Part) -> None:
        vhost, name = self._known_vhost(part), part.name("name")
        self.plan.policies.append(parse_policy(vhost, name, part.value, False))

    # --- topology

    def _exchange_named(self, name: Resource) -> Exchange | None:
        return self._exchanges.get(name) or self._existing.exchange(name)

    def _has_queue(self, name: Resource) -> bool:
        return name in self._queues or self._existing.has_queue(name)

    def _exchange(self, part: Part) -> None:
        name = Resource(self._known_vhost(part), "exchange", part.name("name"))
        type = part.text("type")
        arguments = part.table("arguments")
        planned = PlannedExchange(
            name, type, part.flag("durable"), part.flag("auto_delete"), part.flag("internal"), arguments
        )
        if self._exchange_named(name) is not None:
            return
        if name.name == "" or name.name.startswith("amq."):
            part.wrong("name", f"{shown(name.name)} is reserved")
            return
        alternate = arguments.get("alternate-exchange")
        if alternate is not None and alternate.kind != "S":
            part.wrong("arguments.alternate-exchange", "expected a string")
        matcher = create(type, arguments, self._random)
        exchange = Exchange(name, type, planned.durable, planned.auto_delete, planned.internal, arguments, matcher)
        matcher.validate(exchange)
        self._exchanges[name] = exchange
        self.plan.exchanges.append(planned)

    def _queue(self, part: Part) -> None:
        name = Resource(self._known_vhost(part), "queue", part.name("name"))
        durable, auto_delete, arguments = part.flag("durable"), part.flag("auto_delete"), part.table("arguments")
        exists = self._has_queue(name)
        self._queues.add(name)
        if exists:
            return
        if name.name == "":
            if part.value.get("name") == "":
                part.wrong("name", "empty")
            return
        queue_arguments.validate(name, arguments, durable, False, auto_delete)
        count = self._queue_counts.get(name.virtual_host, 0)
        limit = self._queue_limits.get(name.virtual_host, -1)
        if limit >= 0 and count >= limit:
            part.wrong("", f"queue limit in vhost '{name.virtual_host}' ({limit}) is reached")
            return
        self._queue_counts[name.virtual_host] = count + 1
        self.plan.queues.append(PlannedQueue(name, durable, auto_delete, arguments))

    def _binding(self, part: Part) -> None:
        vhost = self._known_vhost(part)
        source = Resource(vhost, "exchange", part.text("source"))
        kind = part.text("destination_type", False, "queue")
        destination = Resource(vhost, kind, part.text("destination"))
        key = part.text("routing_key", False)
        arguments = part.table("arguments")
        if source.name == "":
            if kind == "queue" and key == destination.name and self._has_queue(destination):
                return  # the implicit binding, which old versions exported
            part.wrong("source", "the default exchange takes no bindings")
            return
        if kind != "queue" and kind != "exchange":
            part.wrong("destination_type", f"expected queue or exchange, got {shown(kind)}")
            return
        known = self._has_queue(destination) if kind == "queue" else self._exchange_named(destination) is not None
        if not known:
            part.wrong("destination", f"no {destination}")
        exchange = self._exchange_named(source)
        if exchange is None:
            part.wrong("source", f"no {source}")
            return
        exchange.matcher.validate_binding(Binding(exchange, Destination(destination), key, arguments))
        self.plan.bindings.append(PlannedBinding(source, destination, key, arguments))


@final
class Section:
    """One row of the table of sections."""

    def __init__(self, name: str, read: Callable[[Reader, Part], None], in_vhost: bool) -> None:
        self.name: Final = name
        self.read: Final = read
        self.in_vhost: Final = in_vhost  # whether the document of a single vhost may have it


#: in the order in which they refer to one another
SECTIONS: Final[list[Section]] = [
    Section("users", Reader._user, False),
    Section("vhosts", Reader._a_vhost, False),
    Section("permissions", Reader._permission, False),
    Section("topic_permissions", Reader._topic_permission, False),
    Section("parameters", Reader._parameter, True),
    Section("global_parameters", Reader._global_parameter, False),
    Section("policies", Reader._policy, True),
    Section("exchanges", Reader._exchange, True),
    Section("queues", Reader._queue, True),
    Section("bindings", Reader._binding, True),
]


def _journal(metadata: Part) -> tuple[int, int]:
    """The journal's level, -1 where none is said, and 1 in how many transient messages it tells of."""
    name = metadata.text("journal", False)
    level = level_of(name)
    if name and level < 0:
        metadata.wrong("journal", f"expected one of {', '.join(LEVEL_NAMES)}, got {shown(name)}")
    sample = metadata.value.get("journal_sample", 1)
    if isinstance(sample, bool) or not isinstance(sample, int) or not 1 <= sample <= MOST_SAMPLE:
        metadata.wrong("journal_sample", f"expected a number from 1 to {MOST_SAMPLE}, got {shown(sample)}")
        sample = 1
    return int(level), sample
