"""Finding interceptors and decorators that are written outside of Warren.

A name is either ``package.module:object`` or the name of an entry point of an installed package. A class is called
without arguments; anything else is taken as it is. What comes back is a plain object: the broker is compiled, so
outside code cannot subclass it and is only ever asked for its attributes.
"""

from __future__ import annotations

from importlib import import_module


class ExtensionError(ValueError):
    """An extension that cannot be loaded, with the reason in one line."""


def load(kind: str, group: str, name: str) -> object:
    """The extension of this name; ``kind`` is what error messages call it."""
    found = _imported(kind, name) if ":" in name else _from_entry_point(kind, group, name)
    if isinstance(found, type):
        try:
            return found()
        except Exception as error:
            raise ExtensionError(f"{kind} '{name}' cannot be made: {_reason(error)}") from error
    return found


def check_name(kind: str, extension: object) -> str:
    """The name every extension carries."""
    name = getattr(extension, "name", None)
    if not isinstance(name, str) or not name:
        raise ExtensionError(f"{kind} {extension!r} has no 'name'")
    return name


def _imported(kind: str, name: str) -> object:
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise ExtensionError(f"{kind} '{name}' is no name of the form package.module:object")
    try:
        found: object = import_module(module_name)
    except Exception as error:
        raise ExtensionError(f"{kind} '{name}' cannot be imported: {_reason(error)}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ExtensionError(f"{kind} '{name}' cannot be loaded: there is no '{part}' in {module_name}")
        found = getattr(found, part)
    return found


def _from_entry_point(kind: str, group: str, name: str) -> object:
    from importlib.metadata import entry_points  # two megabytes with all that it imports, and seldom asked

    known = entry_points(group=group)
    for entry in known:
        if entry.name == name:
            try:
                found: object = entry.load()
            except Exception as error:
                raise ExtensionError(f"{kind} '{name}' cannot be loaded: {_reason(error)}") from error
            return found
    names = ", ".join(sorted({entry.name for entry in known})) or "none"
    raise ExtensionError(
        f"there is no {kind} '{name}': no installed package has it as an entry point of '{group}' (there are: {names})"
    )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
