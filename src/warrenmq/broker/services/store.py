"""Definitions in the log: what is durable besides messages, written in the same batches.

Duty: records (kind, key, JSON) of whatever hands over a dict. Not here: what stands in them (``topology.py``, and each
of the others its own).
"""

from __future__ import annotations

import json
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.log import Log


@final
class DefinitionStore:
    """The ``store`` that access, policies and the rest write through."""

    def __init__(self, log: Log) -> None:
        self._log: Final = log
        self.batch: i64 = 0  # the last batch of the log that defines or undefines something

    def put(self, kind: str, key: str, value: dict[str, object]) -> None:
        self._log.define(kind, key, json.dumps(value).encode())
        self.batch = self._log.batch

    def delete(self, kind: str, key: str) -> None:
        self._log.undefine(kind, key)
        self.batch = self._log.batch
