"""Every part of a host is given what it needs when it is made (docs/decisions/0218)."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "paddock"
MOST_PARAMETERS = 8
MOST_PARTS = 12


def read(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        for file in sorted((ROOT / room).rglob("*.py")):
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text())


def test_nothing_is_set_on_a_part_after_it_was_made() -> None:
    late = [
        f"{where}:{node.lineno}"
        for where, tree in read("compose")
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) != "self"
    ]
    assert late == []


def test_no_constructor_takes_more_than_eight_parameters() -> None:
    many = [
        where
        for where, tree in read("compose", "host", "runners")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
        if len(node.args.args) + len(node.args.kwonlyargs) - 1 > MOST_PARAMETERS
    ]
    assert many == []


def test_no_stage_of_a_host_has_more_than_twelve_parts() -> None:
    many = [
        f"{where} {node.name}"
        for where, tree in read("compose")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and sum(isinstance(part, ast.AnnAssign) for part in node.body) > MOST_PARTS
    ]
    assert many == []
