"""Python sources as trees, each parsed once a process, and their statements: going through every node takes ten times
as long, and imports, classes, functions and docstrings are statements.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """All of them, wherever they stand."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                left.extend(inner)
