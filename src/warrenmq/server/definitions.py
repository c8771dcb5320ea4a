"""Definitions that are imported when the broker starts, before anybody can connect.

Duty: the file, or the files of a folder in the order of their names, read, checked and applied as an import over HTTP
is. What is wrong ends the start with one line; a document is applied wholly or not at all. Not here: what a document
means (``broker/definitions``).
"""

from __future__ import annotations

import json
from pathlib import Path

from warrenmq.broker.broker import Broker
from warrenmq.broker.definitions import importing
from warrenmq.broker.definitions.definitions import InvalidDefinitions, Reader
from warrenmq.server.kinds import SettingsError
from warrenmq.server.logging import events

USER = "load_definitions"  # who changed it, where that is told
ALLOWED = "a JSON file as `warren ctl export_definitions` writes it, or a folder of such files"


def load(broker: Broker, place: Path, default_vhost: str) -> None:
    """Raises SettingsError. In a new folder, documents that name no vhost find the default one."""
    for file in _files(place):
        document = _document(file)
        if not document.get("vhosts"):
            broker.create_default_vhost(default_vhost)
        reader = Reader(None, importing.existing(broker), broker.services.randomness)
        try:
            for _ in reader.read(document):
                pass
            for _ in importing.apply(broker, reader.finished(), USER):
                pass
        except InvalidDefinitions as error:
            raise SettingsError(f"load_definitions: {file} cannot be imported: {'; '.join(error.problems)}") from None
        events("server").info("definitions.loaded", file=file)


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    found = sorted(place.glob("*.json"))
    if not found:
        raise SettingsError(f"load_definitions: {place} has no file whose name ends in .json; allowed: {ALLOWED}")
    return found


def _document(file: Path) -> dict[str, object]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"load_definitions: {file} cannot be read ({error.strerror}); allowed: {ALLOWED}") from None
    except (ValueError, RecursionError) as malformed:
        raise SettingsError(f"load_definitions: {file} is no JSON ({malformed}); allowed: {ALLOWED}") from None
    if not isinstance(document, dict):
        raise SettingsError(f"load_definitions: {file} holds no JSON object; allowed: {ALLOWED}")
    return document
