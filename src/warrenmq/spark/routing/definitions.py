"""Definitions in RabbitMQ's export format, read and checked; and all that a verdict needs besides the message.

Duty: ``Plan``: what is sent to the workers, so that each can build the same publish path. Not here: the path itself.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from warrenmq.broker.extensions.extensions import ExtensionError
from warrenmq.supposing.path import PublishPath


class InputError(ValueError):
    """The table or the definitions cannot be routed; the text is one line."""


def load_definitions(source: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Definitions in RabbitMQ's export format, from a file, its text or the parsed JSON."""
    if isinstance(source, Mapping):
        return dict(source)
    text = str(source)
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"definitions file {source} cannot be read: {error.strerror}") from None
    try:
        loaded = json.loads(text)
    except ValueError as malformed:
        raise InputError(f"the definitions are not JSON: {malformed}") from None
    if not isinstance(loaded, dict) or not any(key in loaded for key in ("exchanges", "queues", "bindings")):
        raise InputError("the definitions have no 'exchanges', 'queues' or 'bindings': not an export of RabbitMQ's")
    return loaded


@dataclass(frozen=True)
class Plan:
    """The plan of judging: pickled to the workers, where the path is built."""

    packed: str  # the definitions: they go to Spark and its workers several times
    vhost: str
    user: str | None
    max_message_size: int
    interceptors: tuple[str, ...]

    @classmethod
    def of(
        cls,
        definitions: str | os.PathLike[str] | Mapping[str, Any],
        vhost: str,
        user: str | None,
        max_message_size: int,
        interceptors: Sequence[str],
    ) -> Plan:
        """Raises InputError where the definitions make no sense: the caller's fault, not a failed task's."""
        loaded = load_definitions(definitions)
        users = [{**user, "password_hash": ""} for user in loaded.get("users", [])]  # nobody logs in here
        known = {**loaded, "users": users}
        text = json.dumps(known, sort_keys=True)
        packed = base64.b64encode(zlib.compress(text.encode(), 1)).decode()
        plan = cls(packed, vhost, user, max_message_size, tuple(interceptors))
        try:
            plan.path(known)
        except (ValueError, ExtensionError) as error:
            raise InputError(str(error)) from None
        return plan

    def path(self, known: Mapping[str, Any] | None = None) -> PublishPath:
        """The path; one for a worker process, not one for a task: it costs more than routing a small batch. Whoever
        has the definitions at hand spares unpacking them."""
        digest = self.digest
        path = _paths.get(digest)
        if path is None:
            if len(_paths) >= 4:
                _paths.clear()
            with _nothing_collected():
                path = _paths[digest] = PublishPath(
                    self._definitions() if known is None else known,
                    max_message_size=self.max_message_size,
                    interceptors=self.interceptors,
                )
        return path

    def _definitions(self) -> dict[str, Any]:
        unpacked: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(self.packed)))
        return unpacked

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(repr((self.max_message_size, self.interceptors, self.packed)).encode()).hexdigest()


_paths: dict[str, PublishPath] = {}


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """While very much is made that stays: looking through all of it again and again doubles the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
