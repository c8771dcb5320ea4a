"""A mutation tester for the publish path, confirms and acks: which wrong programs do the pure tests take for right?

    WARREN_PURE=1 PYTHONPATH=src .venv/bin/python scripts/mutants.py [how many] [seed]

A mutant is one function with one thing changed: a comparison, an operator, a constant, a condition turned round, a
statement left out. All pure tests are collected and run once, to know which of them call which function. Then each
mutant is a fork in which the function has the wrong code, as planted faults have, and the tests that call it run, the
quickest first, until one fails. It is killed by a failing test or by using up its time (of the CPU, so that a busy
machine kills nobody). Who survives is printed; docs/checks.md says what became of those.
"""

from __future__ import annotations

import ast
import copy
import importlib
import os
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    *(f"warrenmq.broker.publish.{name}" for name in ("confirms", "mandatory", "outcomes", "path", "routes", "stages")),
    "warrenmq.broker.channel.acks",
]
OPTIONS = ["-q", "-m", "pure and not soak", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:timeout", "tests"]
CPU_SECONDS = 120
AT_ONCE = os.cpu_count() or 1
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


class Mutant:
    """A module with one change, in the function that has this name."""

    def __init__(self, module: str, function: str, line: int, before: str, after: str, tree: ast.Module) -> None:
        self.module = module
        self.function = function
        self.title = f"{module.removeprefix('warrenmq.broker.')}:{line} {function}: {before}  ->  {after}"
        self.tree = tree

    def plant(self) -> None:
        """In this process, for good."""
        module = importlib.import_module(self.module)
        live: Any = module
        for part in self.function.split("."):
            live = getattr(live, part)
        assert isinstance(live, FunctionType)
        code = compile(self.tree, str(module.__file__), "exec")
        live.__code__ = next(each for each in codes(code) if each.co_qualname == self.function)


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in its place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        yield ast.Compare(node.left, [SWAPPED[type(node.ops[0])](), *node.ops[1:]], node.comparators)  # type: ignore[list-item]
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(SWAPPED[type(node.op)](), node.values)  # type: ignore[arg-type]
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        yield ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)  # type: ignore[arg-type]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.AugAssign):
        yield ast.Pass()
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        yield ast.Pass()


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def mutants(module: str) -> Iterator[Mutant]:
    path = ROOT / "src" / (module.replace(".", "/") + ".py")
    tree = ast.parse(path.read_text())
    for name, function in functions(tree):
        for statement in function.body:
            for node in ast.walk(statement):
                for new in changes(node):
                    yield changed(module, tree, name, node, new)


def changed(module: str, tree: ast.Module, name: str, node: ast.AST, new: ast.AST) -> Mutant:
    memo: dict[int, Any] = {id(node): ast.copy_location(copy.copy(new), node)}
    mutated = ast.fix_missing_locations(copy.deepcopy(tree, memo))
    return Mutant(module, name, getattr(node, "lineno", 0), shown(node), shown(new), mutated)


def shown(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0][:90]


class Hunt:
    """The tests of one pytest session, as a plug-in of it: run once by themselves, then against every chosen mutant."""

    def __init__(self, number: int, seed: int) -> None:
        self.number = number
        self.seed = seed
        self.failed = False
        self.callers: dict[tuple[str, str], list[tuple[float, pytest.Item]]] = {}
        """For each function, by file and name: the tests that call it, each with the seconds it took."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        every = [mutant for module in MODULES for mutant in mutants(module)]
        chosen = random.Random(self.seed).sample(every, min(self.number, len(every)))
        self.watch(session.items)
        if self.failed:
            print("mutants: the tests fail without any")
            return True
        survivors = 0
        running: dict[int, Mutant] = {}
        for at, mutant in enumerate(chosen, 1):
            running[self.start(mutant)] = mutant
            while len(running) >= AT_ONCE or (at == len(chosen) and running):
                child, status = os.wait()
                ended = running.pop(child)
                if os.waitstatus_to_exitcode(status) == 0:
                    survivors += 1
                    print(f"survives: {ended.title}", flush=True)
            if at % 50 == 0:
                print(f"... {at} of {len(chosen)}, {survivors} survive", flush=True)
        print(f"{len(chosen)} of {len(every)} mutants, {len(chosen) - survivors} killed, {survivors} survive")
        return True

    def watch(self, items: list[pytest.Item]) -> None:
        files = {str(ROOT / "src" / (module.replace(".", "/") + ".py")) for module in MODULES}
        called: set[tuple[str, str]] = set()

        def profile(frame: FrameType, event: str, _: object) -> None:
            if event == "call" and frame.f_code.co_filename in files:
                called.add((frame.f_code.co_filename, frame.f_code.co_qualname))

        for item, following in zip(items, [*items[1:], None], strict=True):
            called.clear()
            began = time.monotonic()
            sys.setprofile(profile)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            sys.setprofile(None)
            for function in called:
                self.callers.setdefault(function, []).append((time.monotonic() - began, item))

    def start(self, mutant: Mutant) -> int:
        """A process that ends with 0 if no test notices."""
        child = os.fork()
        if child:
            return child
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        try:
            mutant.plant()
            path = str(ROOT / "src" / (mutant.module.replace(".", "/") + ".py"))
            callers = sorted(self.callers.get((path, mutant.function), []), key=lambda caller: caller[0])
            items = [item for _, item in callers]
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    os._exit(1)
            os._exit(0)
        finally:
            os._exit(1)


def main() -> int:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    hunt = Hunt(number, seed)
    ended = pytest.main(OPTIONS, plugins=[hunt])
    return 1 if hunt.failed else int(ended)


if __name__ == "__main__":
    sys.exit(main())
