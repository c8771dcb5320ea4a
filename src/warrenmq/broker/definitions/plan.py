"""What an import of definitions will do: records made by ``definitions.py`` and carried out by ``importing.py``."""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.access.access import Permission, TopicPermission
from warrenmq.broker.policy.policy import Policy
from warrenmq.broker.records import Resource
from warrenmq.wire.fields import Table


@final
class PlannedUser:
    """A user as the definitions describe it."""

    def __init__(self, name: str, password_hash: str, algorithm: str, tags: list[str], limits: dict[str, int]) -> None:
        self.name: Final = name
        self.password_hash: Final = password_hash
        self.algorithm: Final = algorithm
        self.tags: Final = tags
        self.limits: Final = limits


@final
class PlannedVhost:
    """A virtual host as the definitions describe it."""

    def __init__(
        self,
        name: str,
        description: str,
        tags: list[str],
        default_queue_type: str,
        tracing: bool,
        nack_unroutable: bool,
        journal: int,
        journal_sample: int,
    ) -> None:
        self.name: Final = name
        self.description: Final = description
        self.tags: Final = tags
        self.default_queue_type: Final = default_queue_type
        self.tracing: Final = tracing
        self.nack_unroutable: Final = nack_unroutable
        self.journal: Final = journal  # a level, -1: not said
        self.journal_sample: Final = journal_sample

    def says_something(self) -> bool:
        """Is there more to it than its name?"""
        told = self.journal >= 0 or self.journal_sample > 1
        return bool(self.description or self.tags or self.default_queue_type or self.nack_unroutable or told)


@final
class PlannedParameter:
    """A runtime parameter of one vhost, or of all, as the definitions describe it."""

    def __init__(self, component: str, vhost: str, name: str, value: object) -> None:
        self.component: Final = component
        self.vhost: Final = vhost
        self.name: Final = name
        self.value: Final = value


@final
class PlannedQueue:
    """A queue as the definitions describe it."""

    def __init__(self, name: Resource, durable: bool, auto_delete: bool, arguments: Table) -> None:
        self.name: Final = name
        self.durable: Final = durable
        self.auto_delete: Final = auto_delete
        self.arguments: Final = arguments


@final
class PlannedExchange:
    """An exchange as the definitions describe it."""

    def __init__(
        self, name: Resource, type: str, durable: bool, auto_delete: bool, internal: bool, arguments: Table
    ) -> None:
        self.name: Final = name
        self.type: Final = type
        self.durable: Final = durable
        self.auto_delete: Final = auto_delete
        self.internal: Final = internal
        self.arguments: Final = arguments


@final
class PlannedBinding:
    """A binding as the definitions describe it, both ends by name."""

    def __init__(self, source: Resource, destination: Resource, key: str, arguments: Table) -> None:
        self.source: Final = source
        self.destination: Final = destination
        self.key: Final = key
        self.arguments: Final = arguments


@final
class Plan:
    """A document that makes sense, in the order in which it is applied."""

    def __init__(self) -> None:
        self.users: Final[list[PlannedUser]] = []
        self.vhosts: Final[list[PlannedVhost]] = []
        self.permissions: Final[list[Permission]] = []
        self.topic_permissions: Final[list[TopicPermission]] = []
        self.operator_policies: Final[list[Policy]] = []
        self.vhost_limits: Final[list[PlannedParameter]] = []
        self.parameters: Final[list[PlannedParameter]] = []
        self.global_parameters: Final[list[PlannedParameter]] = []
        self.policies: Final[list[Policy]] = []
        self.exchanges: Final[list[PlannedExchange]] = []
        self.queues: Final[list[PlannedQueue]] = []
        self.bindings: Final[list[PlannedBinding]] = []
