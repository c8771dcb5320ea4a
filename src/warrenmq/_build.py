"""Which build of the package runs: the compiled one, or the same source uncompiled. Decided once, at import.

At install, `setup.py` compiles the packages named in it with mypyc into one library and writes `warrenmq/_compiled.py`
beside this file: which modules, and a hash of their sources. A compiled module shadows the source beside it, so an
edited source would silently not run: when the hash no longer fits, when the library does not load, or when
`WARREN_PURE=1` is set, a finder placed before Python's own loads the sources instead, and one line says so.

Nothing outside the modules named in `_compiled.py` is touched.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType

LIBRARY = "warrenmq__mypyc"
"""The shared library that all compiled modules live in."""


@dataclass(frozen=True)
class BuildInfo:
    """The build that is running: compiled or not, from which folder, and why."""

    compiled: bool
    folder: str
    reason: str

    def __str__(self) -> str:
        return f"{'compiled' if self.compiled else 'uncompiled'} ({self.reason}), from {self.folder}"


class SourceFinder:
    """A finder of the sources of the named modules, past any compiled file beside them."""

    def __init__(self, modules: Iterable[str]) -> None:
        self.modules = frozenset(modules)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.modules or path is None:
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None:
                return spec
        return None


def source_hash(root: str, modules: Iterable[str]) -> str:
    """One hash over the sources of these modules; `root` is the folder that holds the package `warrenmq`."""
    total = hashlib.blake2b(digest_size=16)
    for module in sorted(modules):
        total.update(module.encode() + b"\0")
        try:
            with open(os.path.join(root, *module.split(".")) + ".py", "rb") as source:
                content = source.read()
        except OSError:
            content = b""
        total.update(str(len(content)).encode() + b"\0" + content)
    return total.hexdigest()


def pure_wanted() -> bool:
    return os.environ.get("WARREN_PURE", "0") not in ("", "0")


def choose(folder: str) -> BuildInfo:
    """Decide what `import warrenmq.…` will load from `folder`, the package's own, and see to it."""
    try:
        built = importlib.import_module("warrenmq._compiled")
    except ModuleNotFoundError:
        return BuildInfo(False, folder, "a source tree, never installed")
    modules: tuple[str, ...] = built.MODULES
    if not modules:
        return BuildInfo(False, folder, str(built.REASON))
    if pure_wanted():
        return _sources(modules, folder, "WARREN_PURE is set", say=False)
    if source_hash(os.path.dirname(folder), modules) != built.SOURCE_HASH:
        return _sources(modules, folder, "the sources differ from what was compiled", say=True)
    try:
        importlib.import_module(LIBRARY)
    except ImportError as error:
        return _sources(modules, folder, f"the compiled library does not load: {error}", say=True)
    return BuildInfo(True, folder, str(built.REASON))


def _sources(modules: tuple[str, ...], folder: str, reason: str, say: bool) -> BuildInfo:
    sys.meta_path.insert(0, SourceFinder(modules))
    if say:
        print(f"warren: running uncompiled: {reason} ({folder})", file=sys.stderr)
    return BuildInfo(False, folder, reason)
