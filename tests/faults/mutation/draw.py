"""Small wrong changes to a source, drawn by a seed, for a test suite to notice. Pure.

The operators are the usual ones of mutation testing (DeMillo, Lipton and Sayward, "Hints on test
data selection", 1978; Offutt's sufficient set, 1996) as far as they fit Python: relations, boolean
connectives, conditions, constants, plus and minus, and statements left out. Code that only logs,
asserts or documents is left alone.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping

import attrs

_RELATIONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_LOGGERS = frozenset({"log", "logger", "_log"})


@attrs.frozen
class Mutant:
    """A change: ``before`` in line ``line`` of ``file`` becomes ``after``.

    ``start`` and ``end`` are offsets in the source, in bytes of UTF-8. ``lines`` are those of its
    statement, without the body of a compound one.
    """

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str
    lines: range = range(0)

    def applied_to(self, source: str) -> str:
        """Return the source with the change made."""
        data = source.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {_one_line(self.before)} -> {_one_line(self.after)}"


def draw(sources: Mapping[str, str], number: int, seed: int) -> list[Mutant]:
    """Return ``number`` mutants of the files ``sources``, by name and text, fixed by ``seed``.

    Each file has a share according to its number of possible changes; no place is changed twice.
    """
    every = [mutant for file, text in sorted(sources.items()) for mutant in mutants(file, text)]
    chance = random.Random(f"{seed}/mutants")
    drawn: list[Mutant] = []
    places: set[tuple[str, int]] = set()
    for mutant in chance.sample(every, len(every)):
        if (mutant.file, mutant.line) not in places:
            places.add((mutant.file, mutant.line))
            drawn.append(mutant)
        if len(drawn) == number:
            break
    return drawn


def mutants(file: str, source: str) -> list[Mutant]:
    """Return every mutant of one file, in the order of its lines."""
    tree = ast.parse(source)
    starts = _line_starts(source)
    statements = [_own_lines(node) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    found: list[Mutant] = []
    for node, after in _changes(tree):
        start = starts[node.lineno - 1] + node.col_offset
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = source.encode()[start:end].decode()
        around = [lines for lines in statements if node.lineno in lines]
        lines = max(
            around, key=lambda each: each.start, default=range(node.lineno, node.lineno + 1)
        )
        found.append(Mutant(file, node.lineno, start, end, before, after, lines))
    return sorted(found, key=lambda each: (each.start, each.end, each.after))


def _own_lines(node: ast.stmt) -> range:
    """Return the lines of a statement, of a compound one those before its first block."""
    assert node.end_lineno is not None
    inside = [each.lineno for each in getattr(node, "body", []) if isinstance(each, ast.stmt)]
    if isinstance(node, ast.Match):
        inside = [node.cases[0].pattern.lineno]
    end = max(node.lineno, min(inside) - 1) if inside else node.end_lineno
    return range(node.lineno, end + 1)


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield each node that can be changed, with the text that replaces it."""
    for child in ast.iter_child_nodes(tree):
        if _is_left_alone(child):
            continue
        if isinstance(child, ast.expr):
            yield from ((child, text) for text in _changed_expression(child))
        elif isinstance(child, ast.stmt):
            yield from ((child, text) for text in _changed_statement(child))
            yield from _changed_condition(child)
        yield from _changes(child)


def _is_left_alone(node: ast.AST) -> bool:
    """Return whether a node is an annotation, assertion, log line, import, docstring or name."""
    match node:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.arg() | ast.JoinedStr():
            return True
        case ast.AnnAssign(value=None) | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _LOGGERS
        case _:
            return False


def _changed_expression(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[relation]) if type(relation) in _RELATIONS:
            other = _RELATIONS[type(relation)]()
            yield f"({ast.unparse(ast.Compare(node.left, [other], node.comparators))})"
        case ast.BoolOp(op=ast.And()):
            yield f"({ast.unparse(ast.BoolOp(ast.Or(), node.values))})"
        case ast.BoolOp(op=ast.Or()):
            yield f"({ast.unparse(ast.BoolOp(ast.And(), node.values))})"
        case ast.UnaryOp(op=ast.Not()):
            yield f"bool({ast.unparse(node.operand)})"
        case ast.BinOp(op=ast.Add()) if not _is_text(node.left) and not _is_text(node.right):
            yield f"({ast.unparse(ast.BinOp(node.left, ast.Sub(), node.right))})"
        case ast.BinOp(op=ast.Sub()):
            yield f"({ast.unparse(ast.BinOp(node.left, ast.Add(), node.right))})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield str(value + 1)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _changed_statement(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.AugAssign():
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Delete():
            yield "pass"
        case ast.Continue():
            yield "break"
        case ast.Break():
            yield "continue"


def _changed_condition(node: ast.stmt) -> Iterator[tuple[ast.expr, str]]:
    """Return a negated plain condition; one with a relation changes as an expression."""
    if isinstance(node, ast.If | ast.While) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call
    ):
        yield node.test, f"not {ast.unparse(node.test)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
