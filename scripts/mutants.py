"""A mutation tester for the publish path, confirms and acks: which wrong programs do the pure tests take for right?

    WARREN_PURE=1 PYTHONPATH=src .venv/bin/python scripts/mutants.py [how many] [seed]

A mutant is one function with one thing changed: a comparison, an operator, a constant, a condition turned round, a
statement left out. The tests are imported once; each mutant is a fork in which the function has the wrong code, as
planted faults have, and the tests run until one fails. It is killed by a failing test or by using up its time (of the
CPU, so that a busy machine kills nobody). Who survives is printed; docs/checks.md says what became of those.
"""

from __future__ import annotations

import ast
import copy
import importlib
import os
import random
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    *(f"warrenmq.broker.publish.{name}" for name in ("confirms", "mandatory", "outcomes", "path", "routes", "stages")),
    "warrenmq.broker.channel.acks",
]
TESTS = [
    "tests/rules/test_confirms.py",
    "tests/rules/test_acks.py",
    "tests/broker/test_publish_order.py",
    "tests/rules/test_transactions.py",
    "tests/rules/test_overflow.py",
    "tests/broker/test_commit.py",
    "tests/broker/test_frames_out.py",
    "tests/broker/test_firehose.py",
    "tests/broker/test_exchange_statistics.py",
    "tests/faults",
]
OPTIONS = ["-q", "-x", "-m", "pure and not soak", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:timeout"]
CPU_SECONDS = 120
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


def survives(mutant: Mutant) -> bool:
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        failed = 1
        try:
            mutant.plant()
            failed = tested()
        finally:
            os._exit(1 if failed else 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def tested() -> int:
    import pytest

    return int(pytest.main([*OPTIONS, *TESTS]))


def main() -> int:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    every = [mutant for module in MODULES for mutant in mutants(module)]
    chosen = random.Random(seed).sample(every, min(number, len(every)))
    if tested():
        print("mutants: the tests fail without any")
        return 1
    survivors = 0
    for at, mutant in enumerate(chosen, 1):
        if survives(mutant):
            survivors += 1
            print(f"survives: {mutant.title}", flush=True)
        if at % 10 == 0:
            print(f"... {at} of {len(chosen)}, {survivors} survive", flush=True)
    print(f"{len(chosen)} of {len(every)} mutants, {len(chosen) - survivors} killed, {survivors} survive")
    return 0


if __name__ == "__main__":
    sys.exit(main())
