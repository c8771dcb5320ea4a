"""Who may do what: users, tags, permissions, topic permissions and limits.

Duty: hold these facts, persist every change through the store handed in, and answer "may this user ...?" from cached
results. Not here: reply codes and texts (``rights.py``), which operation needs which permission
(``channel/methods/``), which vhosts exist (``broker.py``).

Invariants
- ``generation`` grows with every change, so that whoever remembers an answer knows when to ask again: a revoked
  permission takes effect on live channels.
- No pattern can hang the broker (``patterns.py``).
- What is stored is enough to rebuild: ``load`` takes back what ``store.put`` was given.
"""

from __future__ import annotations

from typing import Final, Protocol, final

from mypy_extensions import i64

from warrenmq.broker.access import passwords
from warrenmq.broker.access.failed_logins import FailedLogins
from warrenmq.broker.access.patterns import InvalidPattern, NamePattern, Patience
from warrenmq.broker.services.clock import Clock, SystemClock
from warrenmq.broker.services.notes import Notes

WRITE: Final = "write"
READ: Final = "read"

# kinds in the store
USER: Final = "user"
PERMISSION: Final = "permission"
TOPIC_PERMISSION: Final = "topic-permission"
VHOST_LIMITS: Final = "vhost-limits"

MAX_CONNECTIONS: Final = "max-connections"
MAX_CHANNELS: Final = "max-channels"
MAX_QUEUES: Final = "max-queues"
USER_LIMITS: Final = (MAX_CONNECTIONS, MAX_CHANNELS)
ALL_VHOST_LIMITS: Final = (MAX_CONNECTIONS, MAX_QUEUES)
UNLIMITED: Final = -1

NEVER: Final = "^$"  # what RabbitMQ makes of an empty permission pattern


class Store(Protocol):
    """The place where definitions are kept: the log's define/undefine, or nothing in tests."""

    def put(self, kind: str, key: str, value: dict[str, object]) -> None: ...

    def delete(self, kind: str, key: str) -> None: ...


@final
class NoStore:
    """A store that keeps nothing."""

    def put(self, kind: str, key: str, value: dict[str, object]) -> None:
        pass

    def delete(self, kind: str, key: str) -> None:
        pass


class Refused(Exception):
    """A change that makes no sense. ``reason`` is what RabbitMQ's HTTP API says (any JSON value)."""

    def __init__(self, reason: object) -> None:
        super().__init__(str(reason))
        self.reason = reason


def store_key(parts: list[str]) -> str:
    """One string for several names, whatever characters they contain."""
    return "".join([f"{len(part)}:{part}" for part in parts])


def compiled(pattern: str, patience: Patience | None) -> NamePattern:
    try:
        return NamePattern(NEVER if pattern == "" else pattern, patience)
    except InvalidPattern as error:
        raise Refused(["invalid_regexp", pattern, [error.problem, error.position]]) from None


@final
class User:
    """An account: its password's hash, its tags and its limits."""

    def __init__(self, name: str, password_hash: str, hashing_algorithm: str, tags: list[str]) -> None:
        self.name: Final = name
        self.password_hash: str = password_hash
        self.hashing_algorithm: str = hashing_algorithm
        self.tags: list[str] = tags
        self.limits: dict[str, int] = {}

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "password_hash": self.password_hash,
            "hashing_algorithm": self.hashing_algorithm,
            "tags": list(self.tags),
            "limits": dict(self.limits),
        }


@final
class Permission:
    """The rights of one user in one vhost."""

    def __init__(
        self, user: str, vhost: str, configure: str, write: str, read: str, patience: Patience | None = None
    ) -> None:
        self.user: Final = user
        self.vhost: Final = vhost
        self.configure: Final = configure
        self.write: Final = write
        self.read: Final = read
        self.configure_pattern: Final = compiled(configure, patience)
        self.write_pattern: Final = compiled(write, patience)
        self.read_pattern: Final = compiled(read, patience)

    def allows(self, permission: str, name: str) -> bool:
        if permission == WRITE:
            return self.write_pattern.matches(name)
        if permission == READ:
            return self.read_pattern.matches(name)
        return self.configure_pattern.matches(name)

    def to_dict(self) -> dict[str, object]:
        return {
            "user": self.user,
            "vhost": self.vhost,
            "configure": self.configure,
            "write": self.write,
            "read": self.read,
        }


@final
class TopicPermission:
    """The routing keys that one user may publish to, and bind with, on one exchange of a vhost."""

    def __init__(
        self, user: str, vhost: str, exchange: str, write: str, read: str, patience: Patience | None = None
    ) -> None:
        self.user: Final = user
        self.vhost: Final = vhost
        self.exchange: Final = exchange
        self.write: Final = write
        self.read: Final = read
        compiled(write, None)  # as it was written, so that the error names the pattern its author knows
        compiled(read, None)
        self.write_pattern: Final = compiled(self._expanded(write), patience)
        self.read_pattern: Final = compiled(self._expanded(read), patience)

    def _expanded(self, pattern: str) -> str:
        return pattern.replace("{username}", self.user).replace("{vhost}", self.vhost)

    def allows(self, permission: str, routing_key: str) -> bool:
        return (self.read_pattern if permission == READ else self.write_pattern).matches(routing_key)

    def to_dict(self) -> dict[str, object]:
        return {
            "user": self.user,
            "vhost": self.vhost,
            "exchange": self.exchange,
            "write": self.write,
            "read": self.read,
        }


@final
class Access:
    """All users and what they may do. ``clock`` and ``notes`` are for patterns that take too long."""

    def __init__(self, store: Store, clock: Clock | None = None, notes: Notes | None = None) -> None:
        self._store: Final = store
        self._clock: Final = clock or SystemClock()
        self._notes: Final = notes or Notes()
        self.generation: i64 = 0
        self.users: Final[dict[str, User]] = {}
        self.permissions: Final[dict[tuple[str, str], Permission]] = {}  # (user, vhost)
        self.topic_permissions: Final[dict[tuple[str, str, str], TopicPermission]] = {}  # (user, vhost, exchange)
        # which of these each user has
        self._vhosts_of: Final[dict[str, set[str]]] = {}
        self._topics_of: Final[dict[str, set[tuple[str, str, str]]]] = {}
        self.vhost_limits: Final[dict[str, dict[str, int]]] = {}
        self.failed_logins: Final = FailedLogins()

    # --- questions

    def user(self, name: str) -> User | None:
        return self.users.get(name)

    def authenticate(self, username: str, password: str) -> User | None:
        """The user, if the password is theirs. An empty password never is, as in RabbitMQ.

        The work is the same whether there is such a user or not, so that its time does not tell.
        """
        user = self.users.get(username)
        stored = "" if user is None else user.password_hash
        algorithm = passwords.SHA256 if user is None else user.hashing_algorithm
        right = passwords.matches(password, stored, algorithm)
        return user if right and password != "" else None

    def has_tag(self, username: str, tag: str) -> bool:
        user = self.users.get(username)
        return user is not None and tag in user.tags

    def has_permissions(self, username: str) -> bool:
        """In any vhost."""
        return username in self._vhosts_of

    def vhost_allowed(self, username: str, vhost: str) -> bool:
        return (username, vhost) in self.permissions

    def allowed(self, username: str, vhost: str, permission: str, name: str) -> bool:
        held = self.permissions.get((username, vhost))
        if held is None:
            return False
        return held.allows(permission, "amq.default" if name == "" else name)

    def topic_allowed(self, username: str, vhost: str, exchange: str, permission: str, routing_key: str) -> bool:
        held = self.topic_permissions.get((username, vhost, exchange))
        return True if held is None else held.allows(permission, routing_key)

    def user_limit(self, username: str, limit: str) -> int:
        """-1 when there is none."""
        user = self.users.get(username)
        return UNLIMITED if user is None else user.limits.get(limit, UNLIMITED)

    def vhost_limit(self, vhost: str, limit: str) -> int:
        """-1 when there is none."""
        limits = self.vhost_limits.get(vhost)
        return UNLIMITED if limits is None else limits.get(limit, UNLIMITED)

    # --- changes: users

    def put_user(self, name: str, password_hash: str, hashing_algorithm: str, tags: list[str]) -> User:
        """Add a user or change hash and tags of one; its limits stay."""
        if hashing_algorithm not in passwords.ALGORITHMS:
            raise Refused(f"unknown hashing_algorithm {hashing_algorithm}")
        if not passwords.is_hash(password_hash):
            raise Refused(["not_base64", password_hash])
        user = self.users.get(name)
        if user is None:
            user = User(name, password_hash, hashing_algorithm, tags)
            self.users[name] = user
        else:
            user.password_hash = password_hash
            user.hashing_algorithm = hashing_algorithm
            user.tags = tags
        self._put_user(user)
        return user

    def add_user(self, name: str, password: str, tags: list[str], salt: bytes | None = None) -> User:
        password_hash = passwords.hash_password(password, salt or passwords.new_salt())
        return self.put_user(name, password_hash, passwords.SHA256, tags)

    def change_password(self, name: str, password: str, salt: bytes | None = None) -> None:
        user = self._existing(name)
        user.password_hash = passwords.hash_password(password, salt or passwords.new_salt())
        user.hashing_algorithm = passwords.SHA256
        self._put_user(user)

    def set_user_limit(self, name: str, limit: str, value: int) -> None:
        if limit not in USER_LIMITS:
            raise Refused(f"Unrecognised user limit {limit}")
        user = self._existing(name)
        user.limits[limit] = value
        self._put_user(user)

    def clear_user_limit(self, name: str, limit: str) -> None:
        user = self._existing(name)
        if limit in user.limits:
            del user.limits[limit]
            self._put_user(user)

    def delete_user(self, name: str) -> bool:
        """The user with all their permissions; False when there is no such user."""
        if name not in self.users:
            return False
        for vhost in list(self._vhosts_of.get(name, set())):
            self.clear_permissions(name, vhost)
        for topic in list(self._topics_of.get(name, set())):
            self._drop_topic(topic)
        del self.users[name]
        self._store.delete(USER, name)
        self.generation += 1
        return True

    # --- changes: permissions

    def set_permissions(self, user: str, vhost: str, configure: str, write: str, read: str) -> None:
        self._existing(user)
        permission = Permission(user, vhost, configure, write, read, self._patience(user, vhost))
        self._keep(permission)
        self._store.put(PERMISSION, store_key([user, vhost]), permission.to_dict())
        self.generation += 1

    def clear_permissions(self, user: str, vhost: str) -> bool:
        if (user, vhost) not in self.permissions:
            return False
        del self.permissions[(user, vhost)]
        self._vhosts_of[user].discard(vhost)
        if not self._vhosts_of[user]:
            del self._vhosts_of[user]
        self._store.delete(PERMISSION, store_key([user, vhost]))
        self.generation += 1
        return True

    def set_topic_permissions(self, user: str, vhost: str, exchange: str, write: str, read: str) -> None:
        self._existing(user)
        permission = TopicPermission(user, vhost, exchange, write, read, self._patience(user, vhost))
        self._keep_topic(permission)
        self._store.put(TOPIC_PERMISSION, store_key([user, vhost, exchange]), permission.to_dict())
        self.generation += 1

    def clear_topic_permissions(self, user: str, vhost: str, exchange: str | None = None) -> bool:
        """Those on one exchange, or all of the user's in the vhost."""
        found = False
        for key in list(self._topics_of.get(user, set())):
            if key[1] == vhost and (exchange is None or key[2] == exchange):
                self._drop_topic(key)
                found = True
        return found

    # --- changes: vhosts

    def set_vhost_limits(self, vhost: str, limits: dict[str, int]) -> None:
        """All limits of a vhost at once; an empty dict clears them."""
        if limits:
            self.vhost_limits[vhost] = limits
            values: dict[str, object] = {}
            values.update(limits)
            self._store.put(VHOST_LIMITS, vhost, {"vhost": vhost, "value": values})
        elif vhost in self.vhost_limits:
            del self.vhost_limits[vhost]
            self._store.delete(VHOST_LIMITS, vhost)
        self.generation += 1

    def vhost_deleted(self, vhost: str) -> None:
        """Forget everything that belonged to it."""
        for key in [key for key in self.permissions if key[1] == vhost]:
            self.clear_permissions(key[0], key[1])
        for topic in [key for key in self.topic_permissions if key[1] == vhost]:
            self._drop_topic(topic)
        self.set_vhost_limits(vhost, {})

    # --- start

    def load(self, kind: str, value: dict[str, object]) -> bool:
        """Take back one stored definition; False when it is of a kind that lives elsewhere. Nothing is stored again."""
        if kind == USER:
            name = text(value, "name")
            user = User(name, text(value, "password_hash"), text(value, "hashing_algorithm"), texts(value, "tags"))
            user.limits = integers(value.get("limits"))
            self.users[name] = user
        elif kind == PERMISSION:
            permission = Permission(
                text(value, "user"),
                text(value, "vhost"),
                text(value, "configure"),
                text(value, "write"),
                text(value, "read"),
                self._patience(text(value, "user"), text(value, "vhost")),
            )
            self._keep(permission)
        elif kind == TOPIC_PERMISSION:
            topic = TopicPermission(
                text(value, "user"),
                text(value, "vhost"),
                text(value, "exchange"),
                text(value, "write"),
                text(value, "read"),
                self._patience(text(value, "user"), text(value, "vhost")),
            )
            self._keep_topic(topic)
        elif kind == VHOST_LIMITS:
            self.vhost_limits[text(value, "vhost")] = integers(value.get("value"))
        else:
            return False
        self.generation += 1
        return True

    def create_defaults(self, username: str, password: str, vhost: str, salt: bytes | None = None) -> None:
        """A first user who may do everything, when there is no user at all."""
        if not self.users:
            self.add_user(username, password, ["administrator"], salt)
            self.set_permissions(username, vhost, ".*", ".*", ".*")

    # --- inside

    def _keep(self, permission: Permission) -> None:
        self.permissions[(permission.user, permission.vhost)] = permission
        self._vhosts_of.setdefault(permission.user, set()).add(permission.vhost)

    def _keep_topic(self, permission: TopicPermission) -> None:
        key = (permission.user, permission.vhost, permission.exchange)
        self.topic_permissions[key] = permission
        self._topics_of.setdefault(permission.user, set()).add(key)

    def _patience(self, user: str, vhost: str) -> Patience:
        """Each row of permissions has its own: nobody's patterns cost anybody else."""
        return Patience(self._clock, self._notes, f"permissions of user '{user}' in vhost '{vhost}'")

    def _existing(self, name: str) -> User:
        user = self.users.get(name)
        if user is None:
            raise Refused(f'no such user "{name}"')
        return user

    def _put_user(self, user: User) -> None:
        self._store.put(USER, user.name, user.to_dict())
        self.generation += 1

    def _drop_topic(self, key: tuple[str, str, str]) -> None:
        del self.topic_permissions[key]
        self._topics_of[key[0]].discard(key)
        if not self._topics_of[key[0]]:
            del self._topics_of[key[0]]
        self._store.delete(TOPIC_PERMISSION, store_key([key[0], key[1], key[2]]))
        self.generation += 1


def text(value: dict[str, object], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def texts(value: dict[str, object], key: str) -> list[str]:
    found = value.get(key)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def integers(value: object) -> dict[str, int]:
    result: dict[str, int] = {}
    if isinstance(value, dict):
        for key, number in value.items():
            if isinstance(key, str) and isinstance(number, int) and not isinstance(number, bool):
                result[key] = number
    return result
