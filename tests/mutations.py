"""Mutations: every small change that could be made to a module, and a sample of them.

Comparisons, signs, bounds, conditions, constants and results are changed. Left alone are words,
charts, annotations, decorators and what only concerns speed: powers of two from 16 on, also as
``1 << 20``, are sizes of work, and some keywords are about caches and copies.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

# What stands in the code, while tests are watched, where they come to.
MARK = "come_to_by_a_test"
ROOT = Path(__file__).resolve().parent.parent
SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
}  # fmt: skip
RENAMED = {"min": "max", "minimum": "maximum", "any": "all", "argmin": "argmax"}
RENAMED |= {new: old for old, new in RENAMED.items()}
# Where a change alters words, looks or speed only.
WORDED = {"__repr__", "_repr_html_", "__str__", "summary", "plot", "plots", "tell", "cast"}
# What a keyword says of caches, copies, checks of what is known and rows that are not used.
SPEED = {"strict", "maxsize", "copy", "check_finite", "full_matrices"}


class Change(NamedTuple):
    """A change of one expression: where it is, and the text that takes its place."""

    path: str
    line: int  # of the statement, which is what a test runs
    start: int
    end: int
    text: str
    told: str

    def __str__(self) -> str:
        return f"{self.path}:{self.told}"


class Finder(ast.NodeVisitor):
    """Finds every change that can be made to a module."""

    def __init__(self, path: Path) -> None:
        self.path = path.relative_to(ROOT).as_posix()
        self.source = path.read_bytes()
        self.lines = [0]
        for line in self.source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.found: list[Change] = []
        self.statement, self.compiled, self.indexed = 0, False, False
        self.visit(ast.parse(self.source))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.expr):
            for new in changed(node):
                self.add(node, f"({ast.unparse(new)})")
        if isinstance(node, ast.stmt):
            self.statement = node.lineno
            if isinstance(node, ast.Return) and not (self.compiled or empty(node.value)):
                self.add(node.value, "None")
        tests = getattr(node, "ifs", None) or [getattr(node, "test", None)]
        for test in tests:
            plain = isinstance(test, ast.Name | ast.Attribute | ast.Call)
            if plain and ast.unparse(test) != "TYPE_CHECKING":
                self.add(test, f"(not {ast.unparse(test)})")
        super().visit(node)

    def add(self, node: Any, text: str) -> None:
        start = self.lines[node.lineno - 1] + node.col_offset
        end = self.lines[node.end_lineno - 1] + node.end_col_offset
        old = " ".join(self.source[start:end].decode().split())
        if old not in ("None", text):
            told = f"{node.lineno}: {old} -> {text.removeprefix('(').removesuffix(')')}"
            self.found.append(Change(self.path, self.statement, start, end, text, told))

    def visit_FunctionDef(self, node: Any) -> None:
        if node.name in WORDED:
            return
        before = self.compiled
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self.compiled = any("njit" in ast.unparse(line) for line in node.decorator_list)
        for statement in node.body:
            self.visit(statement)
        self.compiled = before

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave -1 alone where it stands for nothing, and not for the last."""
        if self.indexed or not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        before = self.indexed
        self.visit(node.value)
        self.indexed = True
        self.visit(node.slice)
        self.indexed = before

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Leave ``1 << 20`` alone: a size of work."""
        parts = (node.left, node.right)
        if not (
            isinstance(node.op, ast.LShift) and all(isinstance(p, ast.Constant) for p in parts)
        ):
            self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in filter(None, (node.lower, node.upper)):
            if not isinstance(bound, ast.Constant):
                self.add(bound, f"({ast.unparse(bound)} + 1)")
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        for part in filter(None, (node.guard, *node.body)):
            self.visit(part)

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func).rpartition(".")[2]
        if name not in WORDED and not name.endswith(("Error", "Problem", "Note")):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in SPEED:
            self.generic_visit(node)

    def skip(self, node: ast.AST) -> None:
        """Leave words alone."""

    visit_JoinedStr = visit_Raise = visit_Assert = skip  # noqa: N815


def changed(node: ast.expr) -> Iterator[ast.expr]:
    """Give what could stand in the place of an expression."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in SWAPPED:
            yield ast.Compare(left, [SWAPPED[type(op)]()], [right])
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(SWAPPED[type(op)](), values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED and not (
            worded(left) or worded(right)
        ):
            yield ast.BinOp(left, SWAPPED[type(op)](), right)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)) if value < 16 or value.bit_count() > 1:
            yield ast.Constant(value + 1)  # other powers of two are sizes of work
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.IfExp(test=test, body=body, orelse=other):
            yield ast.IfExp(test, other, body)
        case ast.Name(id=name, ctx=ast.Load()) if name in RENAMED:
            yield ast.Name(RENAMED[name])
        case ast.Attribute(value=value, attr=name, ctx=ast.Load()) if name in RENAMED:
            yield ast.Attribute(value, RENAMED[name])


def worded(node: ast.AST) -> bool:
    """Tell whether an operand is a text or a list, from which nothing can be taken away."""
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple)


def empty(node: ast.AST | None) -> bool:
    """Tell whether a result is a text, or as empty as None is: nobody would see the difference."""
    match node:
        case None | ast.JoinedStr() | ast.Constant(value=str() | None | False | 0):
            return True
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
    return False


def found(package: str) -> list[Change]:
    """Find every change of a package."""
    paths = sorted((ROOT / "src/keyhole" / package).rglob("*.py"))
    return [change for path in paths if "charts" not in path.name for change in Finder(path).found]


def sampled(package: str, each: int, seed: int) -> list[Change]:
    """Choose statements of a package at random, and one change of each."""
    chance = random.Random(f"{package} {seed}")
    statements: dict[tuple[str, int], list[Change]] = defaultdict(list)
    for change in found(package):
        statements[change.path, change.line].append(change)
    chosen = chance.sample(sorted(statements), min(each, len(statements)))
    return [chance.choice(statements[place]) for place in chosen]


def outermost(changes: list[Change], sources: Mapping[str, bytes]) -> list[int]:
    """Return by change the number of the widest around it that is run whenever it is.

    What is in a function without a name is run when that is called, whoever made it.
    """
    out, wide = list(range(len(changes))), 0
    order = sorted(out, key=lambda n: (changes[n].path, changes[n].start, -changes[n].end))
    for number in order:
        one, around = changes[number], changes[wide]
        inside = one.path == around.path and around.start <= one.start and one.end <= around.end
        if inside and b"lambda" not in sources[one.path][around.start : one.start]:
            out[number] = wide
        else:
            wide = number
    return out


def with_marks(source: bytes, changes: Mapping[int, Change]) -> bytes:
    """Return a module that says when it comes to a change."""
    return _with(source, changes, lambda number, _: f"({MARK}({number}) or (")


def with_changes(source: bytes, changes: Mapping[int, Change]) -> bytes:
    """Return a module that makes each change while `mutated` says yes to its number."""
    asked = '__builtins__.get("mutated", "".__eq__)'
    return _with(source, changes, lambda number, text: f'({text} if {asked}("{number}") else (')


def _with(source: bytes, changes: Mapping[int, Change], write: Callable[[int, str], str]) -> bytes:
    texts = []
    for number, change in changes.items():
        size = change.end - change.start
        texts += [(change.start, 1, -size, write(number, change.text)), (change.end, 0, size, "))")]
    for at, *_, text in sorted(texts, reverse=True):
        source = source[:at] + text.encode() + source[at:]
    return source
