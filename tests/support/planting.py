"""A broker in which one function is wrong, to show that a test would notice.

Duty: ``Fault`` names the right function, as an object, and the one that stands in for it; ``command`` and
``environment`` start a Warren with it. The sources are not touched: in the broker's process the function gets the other
one's code, so it is wrong for all who call it, however they came by it. That needs plain Python, so a faulty broker
runs uncompiled, whatever is tested beside it. Not here: the faults, and who notices.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import warrenmq

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Fault:
    """A sentence, the function that it is about, and what is called instead: first with the right one, then as it."""

    name: str
    right: Callable[..., Any]
    wrong: Callable[..., Any]


def sources() -> Path:
    """Where the package under test lives."""
    return Path(next(iter(warrenmq.__path__))).parent


def command(fault: Fault) -> list[str]:
    """What to start instead of `warren`. The fault is of a class of its own, beside which a list ``FAULTS`` has it."""
    return [sys.executable, "-m", __name__, type(fault).__module__, fault.name]


def environment(base: dict[str, str]) -> dict[str, str]:
    """For its process: plain Python, and the tests beside the package."""
    return {**base, "WARREN_PURE": "1", "PYTHONPATH": os.pathsep.join([str(sources()), str(ROOT)])}


def plant(fault: Fault) -> None:
    """In this process, for good."""
    function = fault.right
    assert isinstance(function, FunctionType), f"'{fault.name}': {function!r} is no function of plain Python"
    assert not function.__code__.co_freevars, f"'{fault.name}': {function.__qualname__} calls super() or is a closure"
    right = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    right.__kwdefaults__ = function.__kwdefaults__
    function.__globals__["planted"] = partial(fault.wrong, right)
    function.__code__ = _call_planted.__code__
    function.__defaults__ = None
    function.__kwdefaults__ = None


def _call_planted(*arguments: Any, **named: Any) -> Any:
    return planted(*arguments, **named)  # type: ignore[name-defined]  # noqa: F821  a name of the wrong one's module


def main() -> None:
    _, module, name, *arguments = sys.argv
    plant(next(fault for fault in importlib.import_module(module).FAULTS if fault.name == name))
    sys.argv = ["warren", *arguments]
    importlib.import_module("warrenmq.cli.main").main()


if __name__ == "__main__":
    main()
