"""A mutation tester for the publish path, confirms and acks: which wrong programs do the tests of rules take for right?

    scripts/mutants.py [--sample N] [--seconds N] [--tests PATH ...] [part of a title ...]

A mutant is one function with one thing changed: a comparison, an operator, a constant, a condition turned round, a
statement left out. All pure tests, and those of slices, run once, to know which of them come through which statement;
what is known of a file of tests is kept for the next run until it or the sources change. Then each mutant is a fork in
which the function has the wrong code, as planted faults have, and the tests that come through the statement run until
one fails: those first that have killed most for their time, up to ``--seconds`` of the CPU. One test may take many
times what it took, so that a loop without an end is a death too, and a busy machine kills nobody.

Who survives is printed, apart from those that no test comes to. ``mutants.allow`` beside this file has those that may
live, with the reason; one in it that is killed, or that there is no more, is as wrong as a survivor that is not in it.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import hashlib
import importlib
import inspect
import mmap
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).resolve().parents[1]
PUBLISH = sorted((ROOT / "src" / "warrenmq" / "broker" / "publish").glob("*.py"))
ACKS = ("acks", "outstanding", "settling", "sorting")
MODULES = [
    *(f"warrenmq.broker.publish.{file.stem}" for file in PUBLISH if file.stem != "__init__"),
    *(f"warrenmq.broker.channel.{name}" for name in ACKS),
]
#: The others do not come through these modules.
FOLDERS = "access broker delay docs exchange faults fuzz journal limits policy rules testing".split()
TESTS = [f"tests/{name}" for name in FOLDERS]
LEFT_OUT = [part for name in ("cacheprovider", "xdist", "timeout", "schemathesis") for part in ("-p", f"no:{name}")]
COUNTS_LINES = "tests/rules/test_looked_at.py"  # and a probe is one more
OPTIONS = ["-q", "--ignore", COUNTS_LINES, "-m", "(pure or slices) and not soak", "--tb", "native", *LEFT_OUT]
PROBE = "__comes_through__"
NOTICED = 1
EXPLAINED = 0.0625  # of the seconds, for those that are said to live
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
TURNED_ROUND = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)


class Place(NamedTuple):
    """Where a statement begins."""

    module: str
    line: int
    column: int


class Mutant:
    """One change of a module, in the function that has this name."""

    def __init__(self, tree: ast.Module, place: Place, function: str, node: ast.AST, new: ast.AST) -> None:
        self.tree = tree
        """The module as it is, with the node in it."""
        self.place = place
        """Of the statement that a test comes through that could see it changed."""
        self.function = function
        self.node = node
        self.new = new
        self.title = f"{place.module.removeprefix('warrenmq.broker.')} {function}: {shown(node)}  ->  {shown(new)}"

    def __str__(self) -> str:
        return f"line {self.place.line}: {self.title}"

    def plant(self) -> None:
        """In this process, for good."""
        memo: dict[int, Any] = {id(self.node): ast.copy_location(copy.copy(self.new), self.node)}
        put(self.place.module, ast.fix_missing_locations(copy.deepcopy(self.tree, memo)), [self.function])


def put(module: str, tree: ast.Module, names: list[str]) -> None:
    """The code of these functions is that of the tree from now on, wherever they have been imported to."""
    live = importlib.import_module(module)
    for code in codes(compile(tree, str(live.__file__), "exec")):
        if code.co_qualname in names:
            found: Any = live
            for part in code.co_qualname.split("."):
                found = inspect.getattr_static(found, part)
            found = found.fget if isinstance(found, property) else inspect.unwrap(getattr(found, "__func__", found))
            assert isinstance(found, FunctionType), f"{module}: {code.co_qualname} is no function"
            found.__code__ = code


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
    elif isinstance(node, ast.If) and not is_turned_round(node.test):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        supers = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == "super"]
        yield ast.Expr(supers[0]) if supers else ast.Pass()  # without the name it would be code of another kind
    elif isinstance(node, ast.AugAssign):
        yield ast.Pass()
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        yield ast.Pass()


def is_turned_round(test: ast.expr) -> bool:
    """By the change of the condition alone."""
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and isinstance(test.ops[0], TURNED_ROUND)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def source(module: str) -> ast.Module:
    return ast.parse(Path(str(importlib.import_module(module).__file__)).read_text())


def mutants(module: str) -> Iterator[Mutant]:
    tree = source(module)
    for name, function in functions(tree):
        titles = Counter[str]()
        for statement, node in nodes(function):
            for new in changes(node):
                mutant = Mutant(tree, Place(module, statement.lineno, statement.col_offset), name, node, new)
                titles[mutant.title] += 1
                if titles[mutant.title] > 1:
                    mutant.title += f"  (place {titles[mutant.title]})"
                yield mutant


def nodes(function: ast.FunctionDef) -> Iterator[tuple[ast.stmt, ast.AST]]:
    """All that may be changed, each with the statement it is in."""
    left: list[tuple[ast.stmt, ast.AST]] = [(each, each) for each in reversed(function.body)]
    while left:
        statement, node = left.pop()
        yield statement, node
        inner = list(ast.iter_child_nodes(node))
        left += [(each if isinstance(each, ast.stmt) else statement, each) for each in reversed(inner)]


def shown(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0]


class Probes(ast.NodeTransformer):
    """Every statement of a function says where it is before it does what it does."""

    def __init__(self, module: str) -> None:
        self.module = module

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, [both for each in statements for both in (*self.probe(each), each)])
        return node

    def probe(self, statement: ast.stmt) -> list[ast.stmt]:
        place = f"{PROBE}(({self.module!r}, {statement.lineno}, {statement.col_offset}))"
        return [ast.copy_location(each, statement) for each in ast.parse(place).body]


class Known(NamedTuple):
    """What is known of a test."""

    passed: bool
    took: float
    """Of the CPU."""
    places: frozenset[Place]


class Records:
    """What is known of tests from runs before."""

    def __init__(self, file: Path | None, modules: list[str]) -> None:
        self.file = file
        every = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), Path(__file__)])
        self.basis = digest([each for each in every if not each.name.startswith("test_")], repr(modules))
        self.files: dict[str, tuple[str, dict[str, Known]]] = {}
        """For each file of tests: what it was, and its tests by name."""
        if file is not None and file.exists():
            basis, files = pickle.loads(file.read_bytes())
            self.files = files if basis == self.basis else {}

    def of(self, path: Path, names: list[str]) -> dict[str, Known] | None:
        was, known = self.files.get(str(path), ("", {}))
        return known if was == digest([path]) and all(name in known for name in names) else None

    def keep(self, path: Path, known: dict[str, Known]) -> None:
        self.files[str(path)] = digest([path]), known
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_bytes(pickle.dumps((self.basis, self.files)))


def digest(files: list[Path], more: str = "") -> str:
    return hashlib.sha256(b"\0".join([more.encode(), *(each.read_bytes() for each in files)])).hexdigest()


def allowed(file: Path) -> dict[str, str]:
    """The reasons of those that may live: one at the margin, behind it and further in the mutants it holds for."""
    found: dict[str, str] = {}
    reason = ""
    for line in file.read_text().splitlines() if file.exists() else ():
        if line.startswith(" "):
            assert reason and line.strip() not in found, f"{file}: no reason, or two of them: {line.strip()}"
            found[line.strip()] = reason
        elif line and not line.startswith("#"):
            reason = line
    return found


class Hunt:
    """The tests of one pytest session, as a plug-in of it: run once by themselves, then against every chosen mutant."""

    def __init__(self, asked: argparse.Namespace, folder: Path) -> None:
        self.asked = asked
        self.folder = folder
        self.failed = False
        self.items: list[pytest.Item] = []
        self.took: list[float] = []
        self.passing: dict[Place, list[int]] = {}
        """For each statement: the tests that come through it, by their places among the items."""
        self.kills = mmap.mmap(-1, 1)
        """For each test, how many mutants it has killed; the forks write it."""
        self.wrong = 0
        """Survivors without a reason, and reasons without a survivor."""

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
        every = [mutant for module in self.asked.module for mutant in mutants(module)]
        reasons = allowed(self.asked.allow)
        for title in reasons.keys() - {mutant.title for mutant in every}:
            self.complain(f"there is no such mutant, but a reason for it: {title}")
        parts = self.asked.parts
        chosen = [each for each in every if not parts or any(part in each.title for part in parts)]
        if self.asked.sample:
            chosen = random.Random(self.asked.seed).sample(chosen, min(self.asked.sample, len(chosen)))
        self.items = session.items
        self.kills = mmap.mmap(-1, len(self.items))
        self.know()
        session.config.pluginmanager.unregister(name="terminalreporter")  # from here on we say what is to be said
        print(flush=True)
        gc.collect()
        gc.freeze()  # else every fork's first collection copies all there is
        ended: Counter[str] = Counter()
        by_module: dict[str, Counter[str]] = {}
        for at, mutant in enumerate(chosen, 1):
            how = self.judge(mutant, mutant.title in reasons)
            ended[how] += 1
            by_module.setdefault(mutant.place.module, Counter())[how] += 1
            if at % 50 == 0:
                print(f"... {at} of {len(chosen)}: {told(ended)}", flush=True)
        for module, counted in by_module.items():
            print(f"{module}: {counted.total()} mutants: {told(counted)}")
        print(f"{len(chosen)} of {len(every)} mutants: {told(ended)}")
        return True

    def complain(self, text: str) -> None:
        self.wrong += 1
        print(text, flush=True)

    def judge(self, mutant: Mutant, explained: bool) -> str:
        tests, of = self.tests(mutant, self.asked.seconds * (EXPLAINED if explained else 1.0))
        if not of:
            if not explained:
                self.complain(f"no test comes to {mutant}")
            return "explained" if explained else "not reached"
        code = self.run(mutant, tests)
        if code == 0:
            if not explained:
                self.complain(f"survives ({len(tests)} of {of} tests) {mutant}")
            return "explained" if explained else "survive"
        if code != NOTICED and code not in (-signal.SIGPROF, -signal.SIGALRM):
            self.complain(f"ended with {code}, not with a test that fails: {mutant}")
        elif explained:
            self.complain(f"is killed, but a reason says why it lives: {mutant}")
        return "killed"

    def know(self) -> None:
        """Run the tests that nothing is known of, and put together what is known."""
        records = Records(self.asked.records, self.asked.module)
        by_file: dict[Path, list[pytest.Item]] = {}
        for item in self.items:
            by_file.setdefault(item.path, []).append(item)
        new = [path for path, items in by_file.items() if records.of(path, [item.nodeid for item in items]) is None]
        seen: set[Place] = set()
        for module in self.asked.module:
            tree = source(module)
            vars(importlib.import_module(module))[PROBE] = seen.add
            for _, function in functions(tree):
                Probes(module).visit(function)
            put(module, ast.fix_missing_locations(tree), [name for name, _ in functions(tree)])
        for path in new:
            items = by_file[path]
            known = {}
            for item, following in zip(items, [*items[1:], None], strict=True):
                seen.clear()
                self.failed = False
                began = time.process_time()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                took = time.process_time() - began
                known[item.nodeid] = Known(not self.failed, took, frozenset(Place(*each) for each in seen))
            records.keep(path, known)
        self.failed = False
        for module in self.asked.module:
            tree = source(module)
            put(module, tree, [name for name, _ in functions(tree)])
        for at, item in enumerate(self.items):
            test = (records.of(item.path, [item.nodeid]) or {})[item.nodeid]
            self.took.append(test.took)
            if not test.passed:
                self.complain(f"left out, it fails without a mutant: {item.nodeid}")
                continue
            for place in test.places:
                self.passing.setdefault(place, []).append(at)

    def tests(self, mutant: Mutant, left: float) -> tuple[list[int], int]:
        """Those to run in so many seconds, in this order, and how many there are."""
        passing = self.passing.get(mutant.place, [])
        chosen = []
        for at in sorted(passing, key=lambda at: (self.took[at] + 0.01) / (self.kills[at] + 0.1)):
            if self.took[at] <= left:
                chosen.append(at)
                left -= self.took[at]
        return chosen, len(passing)

    def run(self, mutant: Mutant, tests: list[int]) -> int:
        """How a process ends: with 0 if no test notices, with NOTICED or out of time if one does."""
        sys.stdout.flush()
        folder = self.folder / "fork"
        child = os.fork()
        if not child:
            try:
                self.end(mutant, tests, folder)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        shutil.rmtree(folder, ignore_errors=True)
        return os.waitstatus_to_exitcode(status)

    def end(self, mutant: Mutant, tests: list[int], folder: Path) -> None:
        """In a fork."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        folder.mkdir()
        factory: Any = self.items[0].config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = folder  # a folder for itself: it looks through all that is there
        mutant.plant()
        for at, following in zip(tests, [*tests[1:], None], strict=True):
            item, after = self.items[at], None if following is None else self.items[following]
            signal.setitimer(signal.ITIMER_PROF, 2 + 20 * self.took[at])
            signal.setitimer(signal.ITIMER_REAL, 120 + 200 * self.took[at])  # one that waits for ever
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed:
                self.kills[at] = min(self.kills[at] + 1, 255)
                os._exit(NOTICED)
        os._exit(0)


def told(ended: Counter[str]) -> str:
    return ", ".join(f"{ended[how]} {how}" for how in ("killed", "explained", "survive", "not reached"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Which wrong programs do the pure tests take for right?")
    parser.add_argument("parts", nargs="*", help="only mutants with one of these in their titles")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many of them, chosen by --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=40.0, help="of tests, of the CPU; who lives on survives")
    parser.add_argument("--tests", action="append", metavar="PATH", help="other tests than those of these modules")
    parser.add_argument("--module", action="append", help="other modules than those of the publish path and the acks")
    parser.add_argument("--allow", type=Path, default=Path(__file__).with_suffix(".allow"), metavar="FILE")
    parser.add_argument("--records", type=Path, default=ROOT / ".make" / "mutants", metavar="FILE")
    asked = parser.parse_args()
    asked.module = asked.module or MODULES
    os.environ["WARREN_PURE"] = "1"
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        hunt = Hunt(asked, Path(folder))
        ended = pytest.main([*OPTIONS, "--basetemp", f"{folder}/all", *(asked.tests or TESTS)], plugins=[hunt])
    return 1 if hunt.wrong else int(ended)


if __name__ == "__main__":
    sys.exit(main())
