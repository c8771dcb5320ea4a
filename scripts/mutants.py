"""A mutation tester for the publish path, confirms and acks: which wrong programs do the pure tests take for right?

    WARREN_PURE=1 PYTHONPATH=src .venv/bin/python scripts/mutants.py [how many] [seed] [at once] [part of a title ...]

A mutant is one function with one thing changed: a comparison, an operator, a constant, a condition turned round, a
statement left out. All pure tests are collected and run once, to know which of them come through which line. Then each
mutant is a fork in which the function has the wrong code, as planted faults have, and the tests that come through the
line run until one fails: those first that have killed most, then the quickest, up to ``SECONDS`` of the CPU. One test
may take many times what it took, so that a loop without an end is a death too, and a busy machine kills nobody. Who
survives is printed; docs/checks.md says what became of those.
"""

from __future__ import annotations

import ast
import copy
import importlib
import mmap
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).resolve().parents[1]
PUBLISH = ("amending", "confirms", "mandatory", "outcomes", "path", "publishing", "routes", "stages")
ACKS = ("acks", "outstanding", "settling")
MODULES = [
    *(f"warrenmq.broker.publish.{name}" for name in PUBLISH),
    *(f"warrenmq.broker.channel.{name}" for name in ACKS),
]
#: The others do not come through these modules.
TESTS = [f"tests/{name}" for name in "access broker delay docs exchange fuzz limits policy rules testing".split()]
LEFT_OUT = [part for name in ("cacheprovider", "xdist", "timeout", "schemathesis") for part in ("-p", f"no:{name}")]
OPTIONS = ["-q", "-m", "pure and not soak", *LEFT_OUT, *TESTS]
#: Of the CPU, as the tests took them without a mutant: who lives that long is a survivor.
SECONDS = 10.0
NOTICED = 1
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
    """One change of a module, in the function that has this name."""

    def __init__(self, module: str, function: str, node: ast.AST, new: ast.AST, tree: ast.Module) -> None:
        self.module = module
        self.function = function
        self.lines = lines(node)
        self.title = (
            f"{module.removeprefix('warrenmq.broker.')}:{self.lines[0]} {function}: {shown(node)}  ->  {shown(new)}"
        )
        self.node = node
        self.new = new
        self.tree = tree
        """The module as it is, with the node in it."""

    def plant(self) -> None:
        """In this process, for good."""
        module = importlib.import_module(self.module)
        live: Any = module
        for part in self.function.split("."):
            live = getattr(live, part)
        assert isinstance(live, FunctionType)
        memo: dict[int, Any] = {id(self.node): ast.copy_location(copy.copy(self.new), self.node)}
        mutated = ast.fix_missing_locations(copy.deepcopy(self.tree, memo))
        code = compile(mutated, str(module.__file__), "exec")
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
                    yield Mutant(module, name, node, new, tree)


def lines(node: ast.AST) -> range:
    """Where a test comes through that could see it changed."""
    asked = node.test if isinstance(node, ast.If) else node
    assert isinstance(asked, ast.expr | ast.stmt)
    return range(asked.lineno, (asked.end_lineno or asked.lineno) + 1)


def shown(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0][:90]


class Hunt:
    """The tests of one pytest session, as a plug-in of it: run once by themselves, then against every chosen mutant."""

    def __init__(self, number: int, seed: int, at_once: int, parts: list[str]) -> None:
        self.number = number
        self.seed = seed
        self.at_once = at_once
        self.parts = parts
        self.failed = False
        self.items: list[pytest.Item] = []
        self.took: list[float] = []
        """Of the CPU, for each test."""
        self.passing: dict[tuple[str, int], list[int]] = {}
        """For each line, by file and number: the tests that come through it, by their places among the items."""
        self.kills = mmap.mmap(-1, 1)
        """For each test, how many mutants it has killed; the forks write it."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """The first wrong example will do, and each mutant sees the same ones."""
        phases = [Phase.explicit, Phase.generate]
        slow = [HealthCheck.too_slow]
        settings.register_profile(
            "mutants", deadline=None, suppress_health_check=slow, phases=phases, database=None, derandomize=True
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        every = [mutant for module in MODULES for mutant in mutants(module)]
        chosen = [each for each in every if not self.parts or any(part in each.title for part in self.parts)]
        chosen = random.Random(self.seed).sample(chosen, min(self.number, len(chosen)))
        self.items = session.items
        self.kills = mmap.mmap(-1, len(self.items))
        self.watch()
        survivors = 0
        running: dict[int, tuple[Mutant, str]] = {}
        for at, mutant in enumerate(chosen, 1):
            tests, of = self.tests(mutant)
            running[self.start(mutant, tests)] = mutant, f"{len(tests)} of {of} tests"
            while len(running) >= self.at_once or (at == len(chosen) and running):
                child, status = os.wait()
                ended, how = running.pop(child)
                code = os.waitstatus_to_exitcode(status)
                if code == 0:
                    survivors += 1
                    print(f"survives ({how}): {ended.title}", flush=True)
                elif code != NOTICED and code not in (-signal.SIGPROF, -signal.SIGALRM):
                    print(f"ended with {code}: {ended.title}", flush=True)
            if at % 50 == 0:
                print(f"... {at} of {len(chosen)}, {survivors} survive", flush=True)
        print(f"{len(chosen)} of {len(every)} mutants, {len(chosen) - survivors} killed, {survivors} survive")
        return True

    def watch(self) -> None:
        files = {str(ROOT / "src" / (module.replace(".", "/") + ".py")) for module in MODULES}
        seen: set[tuple[str, int]] = set()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_filename not in files:
                return None
            if event == "line":
                seen.add((frame.f_code.co_filename, frame.f_lineno))
            return trace

        threading.settrace(trace)
        for at, (item, following) in enumerate(zip(self.items, [*self.items[1:], None], strict=True)):
            seen.clear()
            self.failed = False
            began = time.process_time()
            sys.settrace(trace)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            sys.settrace(None)
            self.took.append(time.process_time() - began)
            if self.failed:  # it counts threads, say, or lines
                print(f"left out, it fails while it is watched: {item.nodeid}", flush=True)
                continue
            for line in seen.copy():
                self.passing.setdefault(line, []).append(at)
        threading.settrace(None)  # type: ignore[arg-type]
        self.failed = False

    def tests(self, mutant: Mutant) -> tuple[list[int], int]:
        """Those to run, in this order, and how many there are."""
        path = str(ROOT / "src" / (mutant.module.replace(".", "/") + ".py"))
        passing = {at for line in mutant.lines for at in self.passing.get((path, line), ())}
        left = SECONDS
        chosen = []
        for at in sorted(passing, key=lambda at: (-self.kills[at], self.took[at])):
            if self.took[at] <= left:
                chosen.append(at)
                left -= self.took[at]
        return chosen, len(passing)

    def start(self, mutant: Mutant, tests: list[int]) -> int:
        """A process that ends with 0 if no test notices, with NOTICED or out of time if one does."""
        child = os.fork()
        if child:
            return child
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            mutant.plant()
            for at, following in zip(tests, [*tests[1:], None], strict=True):
                item, after = self.items[at], None if following is None else self.items[following]
                signal.setitimer(signal.ITIMER_PROF, 5 + 20 * self.took[at])
                signal.setitimer(signal.ITIMER_REAL, 120 + 200 * self.took[at])  # one that waits for ever
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if self.failed:
                    self.kills[at] = min(self.kills[at] + 1, 255)
                    os._exit(NOTICED)
            os._exit(0)
        finally:
            os._exit(2)


def main() -> int:
    number, seed, at_once = (int(each) for each in [*sys.argv[1:4], *("150", "1", "1")[len(sys.argv[1:4]) :]])
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    hunt = Hunt(number, seed, at_once, sys.argv[4:])
    ended = pytest.main(OPTIONS, plugins=[hunt])
    return 1 if hunt.failed else int(ended)


if __name__ == "__main__":
    sys.exit(main())
