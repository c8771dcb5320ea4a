"""Groups of options that several commands take: said once, as a class with a field for each.

Duty: a command says ``filters: Filters`` and has the options that are the fields of ``Filters``. Not here: what they
mean (``_filters.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints


class Group:
    """A set of options: each field is one, under its name, with its default. Subclasses are dataclasses."""


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer has to see it: with the options of its groups, each in the group's place."""
    hints = get_type_hints(command, include_extras=True)
    seen: list[Parameter] = []
    groups: dict[str, type[Group]] = {}
    for name, parameter in signature(command).parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and issubclass(hint, Group):
            groups[name] = hint
            seen += _options(hint)
        else:
            seen.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option.name: given.pop(option.name) for option in _options(group)})
        command(**given)

    del run.__wrapped__  # its signature is another
    run.__signature__ = signature(command).replace(parameters=seen)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in seen}
    return run


def _options(group: type[Group]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(group).parameters.items()
    ]
