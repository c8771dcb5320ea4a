"""Builds the package; everything declarative is in pyproject.toml. This file compiles the core with mypyc.

All modules of the packages in COMPILED go into one library, so that calls between them are C calls. The C files (one a
module) are compiled on all cores. Without a C compiler, or when anything fails, the install goes on uncompiled: the
reason is built in, and `warren serve` says it. WARREN_NO_COMPILE=1 asks for that.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "src"
COMPILED = ("wire", "broker", "log", "client", "journal", "cluster")
"""The packages below `warrenmq` that are compiled: what runs per message."""

COMPILED_TOO = ("server.transport", "server.turns", "server.watchdog")
"""Single modules of packages that are not: the event loop calls them for every input of every client."""

PLAIN_JOURNAL = (
    *("__main__", "asking", "bodies", "export", "files", "folder", "hashes", "index", "life", "lookup"),
    *("parquet", "process", "question", "recent", "retention", "supposed", "without_pandas", "writer"),
)
GLUE = (
    *("asking", "following", "host", "leading", "link", "members", "node", "operating", "orders", "rescue"),
    *("security", "settings", "standing", "store"),
)
LEFT_OUT: frozenset[str] = frozenset(
    [
        *(f"warrenmq.journal.{name}" for name in PLAIN_JOURNAL),  # nothing runs per event
        "warrenmq.cluster.model.__main__",  # run as a program
        *(f"warrenmq.cluster.glue.{name}" for name in GLUE),  # sockets, threads and the event loop
    ]
)
"""Modules of these packages that stay plain Python, each with its reason."""

OPTIMISATION = os.environ.get("WARREN_OPT_LEVEL", "3")
CORES = os.cpu_count() or 1
TELL_EVERY = 10.0  # seconds between two lines that say how far the C compiler is
NEAR_CALLS = [] if sys.platform == "win32" else ["-fvisibility=hidden"]
"""Calls between our modules stay inside the library: without it each goes through a table that others may patch."""


def compiled_modules() -> list[str]:
    """Package openings stay plain: they hold a docstring and at most names handed on."""
    found = [f"warrenmq.{name}" for name in COMPILED_TOO]
    for package in COMPILED:
        for path in sorted((SOURCE / "warrenmq" / package).rglob("*.py")):
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            if path.name != "__init__.py" and module not in LEFT_OUT:
                found.append(module)
    return found


def source_hash(modules: list[str]) -> str:
    """The package's own function: one definition of what the hash covers."""
    spec = spec_from_file_location("warrenmq_build", SOURCE / "warrenmq" / "_build.py")
    assert spec is not None and spec.loader is not None
    build = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(build)
    return str(build.source_hash(str(SOURCE), modules))


def say(text: str) -> None:
    print(f"warren: {text}", file=sys.stderr, flush=True)


class CompileExtensions(build_ext):
    """setuptools' own command, with the C files of one library compiled in parallel and only when they changed."""

    def build_extensions(self) -> None:
        one_after_another = self.compiler.compile
        headers = max((path.stat().st_mtime for path in Path("build").rglob("*.h")), default=0.0)

        def compile_one(source: str, arguments: dict[str, Any]) -> list[str]:
            target = self.compiler.object_filenames([source], output_dir=arguments.get("output_dir"))[0]
            if os.path.exists(target) and os.path.getmtime(target) > max(os.path.getmtime(source), headers):
                return [target]
            result: list[str] = one_after_another([source], **arguments)
            return result

        def on_all_cores(sources: list[str], **arguments: Any) -> list[str]:
            targets: list[str] = []
            told = time.monotonic()
            with ThreadPoolExecutor(CORES) as pool:
                work = [pool.submit(compile_one, source, arguments) for source in sorted(sources, key=_largest_first)]
                for number, one in enumerate(as_completed(work), 1):
                    one.result()
                    if time.monotonic() - told > TELL_EVERY:
                        told = time.monotonic()
                        say(f"compiled {number} of {len(sources)} C files, the largest ones first")
                for one in work:
                    targets += one.result()
            return targets

        self.compiler.compile = on_all_cores  # type: ignore[method-assign]
        self.parallel = CORES
        super().build_extensions()


def _largest_first(path: str) -> int:
    return -os.path.getsize(path)


class BuildCore(build_ext):
    """Compiles the core if that is possible, and writes down what became of it.

    The work is done in `run`, not when the options are finalised: pip asks for metadata several times before it builds.
    """

    outputs: list[str]

    def run(self) -> None:
        self.outputs = []
        modules, reason = compiled_modules(), ""
        if os.environ.get("WARREN_NO_COMPILE", "0") not in ("", "0"):
            modules, reason = [], "WARREN_NO_COMPILE was set at install"
        elif not self._compiler_found():
            modules, reason = [], "no C compiler at install: with gcc or clang it would be faster"
        else:
            try:
                reason = self._compile(modules)
            except Exception as error:
                modules, reason = [], f"compiling failed at install: {' '.join(str(error).split())[:200]}"
        say(reason)
        self._write(modules, reason)

    def _compiler_found(self) -> bool:
        command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
        return sys.platform == "win32" or shutil.which(command.split()[0]) is not None

    def _compile(self, modules: list[str]) -> str:
        import mypy.version
        from mypyc.build import mypycify

        started = time.monotonic()
        os.environ["MYPYPATH"] = str(SOURCE)
        files = [str((SOURCE / Path(*module.split("."))).with_suffix(".py").relative_to(HERE)) for module in modules]
        say(f"compiling {len(files)} modules with mypyc {mypy.version.__version__}")
        # Strictness is for `make types`; here a missing stub must not cost the compiled build.
        options = ["--config-file=", "--ignore-missing-imports", "--explicit-package-bases", "--cache-dir=build/mypy"]
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                self.distribution.ext_modules = mypycify(
                    [*options, *files],
                    opt_level=OPTIMISATION,
                    debug_level="0",
                    multi_file=True,
                    group_name="warrenmq",
                )
        except SystemExit:
            print(printed.getvalue())
            errors = [line for line in printed.getvalue().splitlines() if "error:" in line]
            raise RuntimeError(errors[0] if errors else "mypyc gave no reason") from None
        for extension in self.distribution.ext_modules:
            extension.extra_compile_args = [*extension.extra_compile_args, *NEAR_CALLS]
        say(f"C written after {time.monotonic() - started:.0f} s; compiling it on {CORES} cores")
        command = CompileExtensions(self.distribution)
        command.build_lib, command.build_temp, command.inplace = self.build_lib, self.build_temp, self.inplace
        command.ensure_finalized()
        command.run()
        self.outputs += command.get_outputs()
        say(f"compiled in {time.monotonic() - started:.0f} s")
        return f"mypyc {mypy.version.__version__} -O{OPTIMISATION}"

    def _write(self, modules: list[str], reason: str) -> None:
        in_source = self.inplace or getattr(self, "editable_mode", False)
        target = (SOURCE if in_source else Path(self.build_lib)) / "warrenmq" / "_compiled.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        if not modules:
            for stale in target.parent.rglob("*.so"):
                stale.unlink()
        listed = "".join(f'    "{module}",\n' for module in modules)
        target.write_text(
            f'"""Written by setup.py: what was compiled, and from which sources."""\n\nMODULES: tuple[str, ...] = (\n'
            f'{listed})\nREASON = {reason!r}\nSOURCE_HASH = "{source_hash(modules)}"\n'
        )
        self.outputs.append(str(target))

    def get_outputs(self) -> list[str]:
        return self.outputs

    def get_source_files(self) -> list[str]:
        return []

    def get_output_mapping(self) -> dict[str, str]:
        return {}


class CompiledDistribution(Distribution):
    """A wheel of one platform, though the extensions are only known once they are built."""

    def has_ext_modules(self) -> bool:
        return True


setup(cmdclass={"build_ext": BuildCore}, distclass=CompiledDistribution)
