"""Small wrongs put into a module's source, one at a time: what a test suite that proves something must notice. Pure.

Left alone are types, docstrings, log lines and `__slots__`: changing them changes no behaviour.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SWAPPED_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
SWAPPED_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
}
SWAPPED_NAMES = {"min": "max", "max": "min"}


@dataclass(frozen=True, slots=True)
class Mutant:
    line: int
    what: str
    source: str


def mutants(source: str, *, ordered: str = "") -> Iterator[Mutant]:
    """Every mutant of a module. In the function named `ordered`, neighbouring statements also change places."""
    tree = ast.parse(source)
    for index, (node, change) in enumerate(_changes(tree, ordered)):
        fresh = ast.parse(source)
        twin, apply = list(_changes(fresh, ordered))[index]
        what = apply(twin)
        yield Mutant(node.lineno, what, ast.unparse(ast.fix_missing_locations(fresh)))
        del change


Change = tuple[ast.AST, Callable[[ast.AST], str]]


def _changes(tree: ast.Module, ordered: str) -> list[tuple[ast.expr | ast.stmt, Callable[[ast.AST], str]]]:
    found: list[tuple[ast.expr | ast.stmt, Callable[[ast.AST], str]]] = []
    for parent in _living(tree):
        if isinstance(parent, ast.Compare) and type(parent.ops[0]) in SWAPPED_COMPARISONS:
            found.append((parent, _compare))
        elif isinstance(parent, ast.BoolOp):
            found.append((parent, _bool))
        elif isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            found.append((parent, _not))
        elif isinstance(parent, ast.BinOp) and type(parent.op) in SWAPPED_OPERATORS:
            found.append((parent, _operator))
        elif isinstance(parent, ast.Constant) and isinstance(parent.value, bool | int | float | str):
            found.append((parent, _constant))
        elif isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in SWAPPED_NAMES:
            found.append((parent, _name))
        elif isinstance(parent, ast.Return) and parent.value is not None and not _is_none(parent.value):
            found.append((parent, _return))
        elif isinstance(parent, ast.Raise) or (isinstance(parent, ast.Expr) and _calls(parent.value)):
            found.append((parent, _drop))
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and parent.name == ordered:
            found += [(parent.body[at], _swap_in(parent, at)) for at in range(len(parent.body) - 1)]
    return found


def _living(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that behave: no annotations, docstrings, type words, log lines, options of a class (`frozen=True`)."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns"} or (isinstance(node, ast.ClassDef) and name == "keywords"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _still(child) and not _names_a_type(node, child):
                yield child
                yield from _living(child)


def _still(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _root(node.value) == "log"
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id in {"__slots__", "log"} for target in node.targets)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == "Literal"
    return isinstance(node, ast.Assert)


def _names_a_type(node: ast.AST, child: ast.AST) -> bool:
    """The type in `cast("type", value)`."""
    return isinstance(node, ast.Call) and _root(node) == "cast" and child in node.args[:1]


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _calls(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) or (isinstance(node, ast.Await) and isinstance(node.value, ast.Call))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _compare(node: ast.AST) -> str:
    assert isinstance(node, ast.Compare)
    before = ast.unparse(node)
    node.ops[0] = SWAPPED_COMPARISONS[type(node.ops[0])]()
    return f"{before} -> {ast.unparse(node)}"


def _bool(node: ast.AST) -> str:
    assert isinstance(node, ast.BoolOp)
    before = ast.unparse(node)
    node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
    return f"{before} -> {ast.unparse(node)}"


def _not(node: ast.AST) -> str:
    assert isinstance(node, ast.UnaryOp)
    before = ast.unparse(node)
    node.operand = ast.UnaryOp(ast.Not(), node.operand)
    return f"{before} -> without not"


def _operator(node: ast.AST) -> str:
    assert isinstance(node, ast.BinOp)
    before = ast.unparse(node)
    node.op = SWAPPED_OPERATORS[type(node.op)]()
    return f"{before} -> {ast.unparse(node)}"


def _constant(node: ast.AST) -> str:
    assert isinstance(node, ast.Constant)
    before = node.value
    if isinstance(before, bool):
        node.value = not before
    else:
        node.value = before + 1 if isinstance(before, int | float) else f"XX{before}"
    return f"{before!r} -> {node.value!r}"


def _name(node: ast.AST) -> str:
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    before = node.func.id
    node.func.id = SWAPPED_NAMES[before]
    return f"{before} -> {node.func.id}"


def _return(node: ast.AST) -> str:
    assert isinstance(node, ast.Return)
    before = ast.unparse(node)
    node.value = ast.Constant(None)
    return f"{before} -> return None"


def _drop(node: ast.AST) -> str:
    before = ast.unparse(node)
    for name in list(node._fields):
        delattr(node, name)
    node.__class__ = ast.Pass
    return f"{before} -> nothing"


def _swap_in(function: ast.FunctionDef | ast.AsyncFunctionDef, at: int) -> Callable[[ast.AST], str]:
    def swap(_node: ast.AST) -> str:
        first, second = copy.copy(function.body[at]), copy.copy(function.body[at + 1])
        function.body[at], function.body[at + 1] = second, first
        return f"swapped: {ast.unparse(first).splitlines()[0]} | {ast.unparse(second).splitlines()[0]}"

    return swap
