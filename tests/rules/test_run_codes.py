"""Every code that a run can end with by the host's word is in the table of the spec, with what it means."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.host.session.memory import STORE_AWAY
from paddock.rules.cluster import WHY

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs/spec/runner-protocol.md"
HEADING = "Runs that end without the runner's own word get one of the host's codes:"
NAMED_IN = {
    "RunFailed": 1,
    "lost": 0,
    "lose": 0,
    "fail": 0,
    "fail_run": 1,
    "end": 0,
    "_failed": 0,
    "_end": 3,
    "_let_go": 0,
    "_dismiss": 1,
    "_refuse": 2,
    "StartError": 0,
    "Wrong": 0,
    "error": 0,
}
"""Functions that are told how a run ends, and which of their arguments it is."""
OF_CHAINS = {"opening.py", "members.py", "session_manager.py"}
"""Their errors end a transaction of a session, and no run."""
NO_CODES = {"unauthorized", "run_code"}
"""A state update that is refused does not end its run; the other is the name of a field."""
_CODE = re.compile(r"[a-z]+([._][a-z]+)+")


def test_every_code_of_a_run_is_in_the_table() -> None:
    emitted = {code for path in _sources() for code in _codes_in(ast.parse(path.read_text()))} - NO_CODES
    emitted |= {*WHY, STORE_AWAY[0]}
    assert len(emitted) > 20
    assert emitted - _in_the_table() == set()


@pytest.mark.parametrize(
    "line", ['run.lost("runner.vanished", "x")', 'raise StartError(NEW)\nNEW = "runner.new"', 'a = {"run_code": "a.b"}']
)
def test_a_code_that_is_not_there_is_found(line: str) -> None:
    assert {*_codes_in(ast.parse(line))} - _in_the_table()


def _in_the_table() -> set[str]:
    table = SPEC.read_text().partition(HEADING)[2].partition("\n## ")[0]
    return {code for line in table.splitlines() if line.startswith("|") for code in re.findall(r"`([^`]+)`", line)}


def _sources() -> Iterator[Path]:
    for room in ("rules", "host", "runners", "compose"):
        for path in sorted((ROOT / "src/paddock" / room).rglob("*.py")):
            if path.name not in OF_CHAINS:
                yield path


def _codes_in(tree: ast.Module) -> Iterator[str]:
    """Texts of the form of a code where it is said how a run ends: as they are, by a name, in a mapping, by default."""
    named = {ast.unparse(one.targets[0]): one.value for one in tree.body if isinstance(one, ast.Assign)}
    for node in ast.walk(tree):
        for said in _said(node):
            for value in ast.walk(named.get(ast.unparse(said), said)):
                if isinstance(value, ast.Constant) and isinstance(value.value, str) and _CODE.fullmatch(value.value):
                    yield value.value


def _said(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        place = NAMED_IN.get(name)
        if place is not None and len(node.args) > place and not _is_log(node.func):
            yield node.args[place]
        yield from (one.value for one in node.keywords if one.arg == "code")
    elif isinstance(node, ast.Dict):
        named = zip(node.keys, node.values, strict=True)
        yield from (value for key, value in named if isinstance(key, ast.Constant) and key.value == "run_code")
    elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "code":
        yield node.value
    elif isinstance(node, ast.FunctionDef) and node.args.args:
        given = node.args.args[len(node.args.args) - len(node.args.defaults) :]
        yield from (value for one, value in zip(given, node.args.defaults, strict=True) if one.arg == "code")
    elif isinstance(node, ast.Return) and node.value is not None and "run_code" in ast.unparse(node.value):
        yield node.value


def _is_log(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and ast.unparse(called.value).endswith("log")
