"""/users: who there is."""

from __future__ import annotations

from collections.abc import Iterator

from warrenmq.broker.access import passwords
from warrenmq.broker.access.access import User
from warrenmq.http.endpoint import ADMINISTRATOR, LONG_LIST, Call, Endpoint, NoContent, put
from warrenmq.http.errors import bad_request, not_found
from warrenmq.http.in_order import by_key
from warrenmq.http.listing import listing, with_columns
from warrenmq.http.models import PermissionInfo, TopicPermissionInfo, UserInfo
from warrenmq.http.objects.vhosts import asked_tags
from warrenmq.http.requests import UserDeclaration, UserNames
from warrenmq.wire.replies import CONNECTION_FORCED


def user_info(user: User) -> UserInfo:
    return UserInfo(user.name, user.password_hash, user.hashing_algorithm, list(user.tags), dict(user.limits))


def _name(user: User) -> str:
    return user.name


def existing(call: Call) -> User:
    user = call.bridge.access.user(call.path["user"])
    if user is None:
        raise not_found()
    return user


async def list_users(call: Call) -> object:
    return await listing(call, await by_key(call.bridge.access.users), _name, user_info)


async def without_permissions(call: Call) -> Iterator[UserInfo]:
    access = call.bridge.access
    users = await by_key(access.users)
    return (user_info(user) for user in users if not access.has_permissions(user.name))


async def get_user(call: Call) -> object:
    return with_columns(call, user_info(existing(call)))


async def put_user(call: Call) -> object:
    wanted = await call.body(UserDeclaration)
    if wanted.tags is None:
        raise bad_request("tags_not_present")
    access = call.bridge.access
    name = call.path["user"]
    tags = asked_tags(wanted.tags)
    algorithm = wanted.hashing_algorithm or passwords.SHA256
    if wanted.password is not None:
        algorithm = passwords.SHA256
        stored = passwords.hash_password(wanted.password, passwords.new_salt())
    elif wanted.password_hash is not None:
        stored = wanted.password_hash
    else:
        # RabbitMQ makes up a password nobody knows; nobody can log in with none either
        stored = passwords.hash_password(passwords.new_salt().hex() * 4, passwords.new_salt())
    existed = access.user(name) is not None
    await call.bridge.change(lambda: _put(call, name, stored, algorithm, tags))
    return put(existed)


def _put(call: Call, name: str, stored: str, algorithm: str, tags: list[str]) -> None:
    call.bridge.access.put_user(name, stored, algorithm, tags)


async def delete_user(call: Call) -> NoContent:
    user = existing(call)
    await call.bridge.change_in_steps("the deletion of a user", lambda: _delete(call, [user.name]))
    return NoContent()


def _delete(call: Call, names: list[str]) -> Iterator[None]:
    """RabbitMQ closes the connections of a deleted user."""
    for name in names:
        call.bridge.access.delete_user(name)
        yield
    gone = set(names)
    for connection in call.bridge.broker.connections:
        if connection.username in gone and connection.vhost is not None:
            connection.shut(CONNECTION_FORCED, f"user '{connection.username}' is deleted")
            yield


async def bulk_delete(call: Call) -> NoContent:
    names = (await call.body(UserNames, LONG_LIST)).users
    for name in names:
        if call.bridge.access.user(name) is None:
            raise bad_request(["no_such_user", name])
    await call.bridge.change_in_steps("the deletion of users", lambda: _delete(call, names))
    return NoContent()


async def permissions(call: Call) -> Iterator[dict[str, object]]:
    user = existing(call)
    found = call.bridge.access.permissions
    mine = {key: one for key, one in found.items() if key[0] == user.name}
    return (one.to_dict() for one in await by_key(mine))


async def topic_permissions(call: Call) -> Iterator[dict[str, object]]:
    user = existing(call)
    found = call.bridge.access.topic_permissions
    mine = {key: one for key, one in found.items() if key[0] == user.name}
    return (one.to_dict() for one in await by_key(mine))


ENDPOINTS = [
    Endpoint("GET", "/users", ADMINISTRATOR, list_users, "Users", answer=list[UserInfo], listing=True),
    Endpoint(
        "GET",
        "/users/without-permissions",
        ADMINISTRATOR,
        without_permissions,
        "Users who may do nothing",
        answer=list[UserInfo],
    ),
    Endpoint(
        "POST", "/users/bulk-delete", ADMINISTRATOR, bulk_delete, "Delete several users", body=UserNames, status=204
    ),
    Endpoint("GET", "/users/{user}", ADMINISTRATOR, get_user, "One user", answer=UserInfo),
    Endpoint("PUT", "/users/{user}", ADMINISTRATOR, put_user, "Add or change a user", body=UserDeclaration, status=201),
    Endpoint("DELETE", "/users/{user}", ADMINISTRATOR, delete_user, "Delete a user", status=204),
    Endpoint(
        "GET",
        "/users/{user}/permissions",
        ADMINISTRATOR,
        permissions,
        "What the user may do",
        answer=list[PermissionInfo],
    ),
    Endpoint(
        "GET",
        "/users/{user}/topic-permissions",
        ADMINISTRATOR,
        topic_permissions,
        "Topic permissions of the user",
        answer=list[TopicPermissionInfo],
    ),
]
