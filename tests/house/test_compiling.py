"""Three ways to write Python that mypyc (2.4) compiles into something else: no source goes one.

- ``except A as error`` and ``except B as error`` in one function: where A is a class of ours, the second ``error`` is
  taken for an A too, so that the handler itself raises a TypeError as soon as a B comes.
- ``f(local.attribute, [... for ... in ...])``: ``local`` may be let go of before the call.
- ``a.b = value``, a call, ``if a.b is None``: to mypy ``a.b`` is still what was assigned, whatever the call did, so the
  question is answered without being asked, or the answer is taken for a wrong type.

The first is looked for in all sources, compiled today or not: nobody thinks of it when a module becomes one that is.
The others are good Python that reads well, and are looked for in what setup.py compiles.

A name that a ``for`` or a ``with`` binds anew is no fourth: mypy refuses it with another type.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "warrenmq"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def inside(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or module, without those of functions in it: names are theirs alone."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, FUNCTIONS):
            yield from inside(child)


def rebound_errors(tree: ast.Module) -> list[int]:
    """Lines of except clauses that bind a name another clause of the function binds to another type."""
    found = []
    for scope in ast.walk(tree):
        if isinstance(scope, (ast.Module, *FUNCTIONS)):
            types: dict[str, str] = {}
            for node in inside(scope):
                if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                    caught = ast.unparse(node.type)
                    if types.setdefault(node.name, caught) != caught:
                        found.append(node.lineno)
    return found


def freed_locals(tree: ast.Module) -> list[int]:
    """Lines of calls with an attribute of something and a comprehension among their arguments."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            making = [each for each in given if any(isinstance(part, COMPREHENSIONS) for part in ast.walk(each))]
            if making and any(isinstance(each, ast.Attribute) for each in given if each not in making):
                found.append(node.lineno)
    return found


def narrowed(tree: ast.Module) -> list[int]:
    """Lines that ask whether an attribute is None after it was assigned and somebody was called."""
    found: list[int] = []
    for scope in ast.walk(tree):
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _follow(scope.body, {}, found)
    return found


BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")


def _follow(statements: list[ast.stmt], known: dict[str, bool], found: list[int]) -> set[str]:
    """What is assigned in this block. ``known``: attributes assigned before, and whether somebody was called since."""
    assigned: set[str] = set()
    for statement in statements:
        blocks = [block for name in BLOCKS for block in _blocks(getattr(statement, name, []))]
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, (ast.expr, ast.withitem)):
                _ask(child, known, found)
        if isinstance(statement, ast.Assign):
            names = {ast.unparse(each) for target in statement.targets for each in _parts(target)}
            _forget(names, known)
            known.update({name: False for name in names if "." in name and "(" not in name and "[" not in name})
            assigned |= names
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or not blocks:
            continue
        called = any(isinstance(node, ast.Call) for block in blocks for each in block for node in ast.walk(each))
        inside_it: set[str] = set()
        for block in blocks:
            ahead = dict(known)
            if isinstance(statement, ast.Try):
                _forget(inside_it, ahead)
                ahead = {name: since or (called and block is not statement.body) for name, since in ahead.items()}
            inside_it |= _follow(block, ahead, found)
        _forget(inside_it, known)
        known.update(dict.fromkeys(known, True) if called else {})
        assigned |= inside_it
    return assigned


def _blocks(part: list[ast.AST]) -> list[list[ast.stmt]]:
    """One block of statements, or one for each handler or case."""
    if part and isinstance(part[0], (ast.ExceptHandler, ast.match_case)):
        return [each.body for each in part if isinstance(each, (ast.ExceptHandler, ast.match_case))]
    return [[each for each in part if isinstance(each, ast.stmt)]] if isinstance(part, list) and part else []


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple) else [target]


def _forget(names: set[str], known: dict[str, bool]) -> None:
    for name in [one for one in known if any(one == gone or one.startswith(f"{gone}.") for gone in names)]:
        del known[name]


def _ask(expression: ast.AST, known: dict[str, bool], found: list[int]) -> None:
    for node in ast.walk(expression):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            right = node.comparators[0]
            if isinstance(right, ast.Constant) and right.value is None and known.get(ast.unparse(node.left)):
                found.append(node.lineno)
    if any(isinstance(node, (ast.Call, ast.Await, ast.Yield)) for node in ast.walk(expression)):
        known.update(dict.fromkeys(known, True))


def compiled() -> list[Path]:
    """What setup.py compiles, by its own tables (to import it is to build)."""
    tables: dict[str, tuple[str, ...]] = {}
    wanted = ("COMPILED", "COMPILED_TOO", "PLAIN_JOURNAL", "GLUE")
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in wanted:
            tables[node.targets[0].id] = eval(compile(ast.Expression(node.value), "setup.py", "eval"), {})
    plain = {f"journal/{name}.py" for name in tables["PLAIN_JOURNAL"]}
    plain |= {f"cluster/glue/{name}.py" for name in tables["GLUE"]}
    found = [SOURCE / f"{name.replace('.', '/')}.py" for name in tables["COMPILED_TOO"]]
    found += [path for package in tables["COMPILED"] for path in sorted((SOURCE / package).rglob("*.py"))]
    return [path for path in found if path.relative_to(SOURCE).as_posix() not in plain]


def places(look: Callable[[ast.Module], list[int]], paths: Iterable[Path]) -> list[str]:
    return [f"{path.relative_to(SOURCE)}:{line}" for path in paths for line in look(ast.parse(path.read_text("utf-8")))]


def test_no_source_binds_the_name_of_an_error_twice() -> None:
    assert places(rebound_errors, sorted(SOURCE.rglob("*.py"))) == []


def test_no_compiled_source_lets_go_of_what_a_call_needs() -> None:
    paths = compiled()
    names = {path.relative_to(SOURCE).as_posix() for path in paths}
    assert {"server/transport.py", "journal/columns.py", "broker/broker.py"} <= names  # each table of setup.py counts
    assert places(freed_locals, paths) == []


def test_no_compiled_source_asks_for_what_it_assigned_before_a_call() -> None:
    assert places(narrowed, compiled()) == []


def test_the_look_at_sources_sees_what_it_looks_for() -> None:
    both = """
def f():
    try: g()
    except A as error: pass
    except B as error: pass
def h():
    try: g()
    except A as error: pass
    def inner():
        try: g()
        except B as error: pass
    try: g()
    except A as error: pass
"""
    assert rebound_errors(ast.parse(both)) == [5]
    calls = "f(a.b, [x for x in y])\nf(a, [x for x in y])\nf(a.b, c=list(x for x in y))"
    assert freed_locals(ast.parse(calls)) == [1, 3]
    asked = """
def f(a, b):
    a.x = b
    g()
    if a.x is None: pass
def h(a, b):
    a.x = b
    try: g()
    finally:
        if a.x is not None: pass
def fine(a, b):
    a.x = b
    if a.x is None: pass
    g()
    a = other()
    if a.x is None: pass
def joined(a, b):
    if b:
        a.x = b
    g()
    if a.x is None: pass
def again(a, b):
    a.x = b
    g()
    a.x = g()
    if a.x is None: pass
"""
    assert narrowed(ast.parse(asked)) == [5, 10]
