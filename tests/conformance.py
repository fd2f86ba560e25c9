"""Find every promise of docs/spec and the tests that prove it, and write them down as docs/spec/conformance.md.

A promise is a line with an id such as `http/key`: either it begins with the id, or the id stands behind it. A proof is
a test marked `spec("http/key")`, a story with a line `# spec: ...`, or a check of the session machine's invariants.
Run `make conformance` after changing either; a test fails while the page is stale.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from paddock.rules.session import invariants

ROOT = Path(__file__).parents[1]
SPECS = ROOT / "docs" / "spec"
PAGE = SPECS / "conformance.md"
TESTED = ("tests", "sdk/tests", "examples", "bench")
_BEGINS = re.compile(r"^- `([a-z]+/[a-z0-9-]+)`: (.*)$")
_BEHIND = re.compile(r"`((?:wire|gate|ui)/[a-z0-9-]+)`")
_MOST = 110
HEAD = """\
# What the specs promise, and the tests that prove it

Made by `make conformance` from the pages of this folder and the marks of the tests. A test fails while it is stale,
when a promise has no test, and when a test names a promise that is not there.
"""


def promises() -> dict[str, dict[str, str]]:
    """Promises of each page by id, with the beginning of their sentence."""
    pages = sorted(path for path in SPECS.glob("*.md") if path != PAGE)
    return {page.name: found for page in pages if (found := dict(_promised(page.read_text())))}


def _promised(text: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for block in _blocks(text):
        begins = _BEGINS.match(block)
        found, words = ([begins[1]], begins[2]) if begins else (_BEHIND.findall(block), _BEHIND.sub("", block))
        for one in found:
            if one not in seen:
                seen.add(one)
                yield one, _shortened(words)


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, items of lists and rows of tables, each as one line."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if block and (not line.strip() or line.startswith(("- ", "|", "#"))):
            yield " ".join(block)
            block = []
        if line.strip():
            block.append(line.strip())


def _shortened(words: str) -> str:
    plain = re.sub(r"\s+", " ", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", words).replace("|", " ")).strip(" -")
    return plain if len(plain) <= _MOST else plain[: plain.rfind(" ", 0, _MOST)] + " ..."


@cache
def proofs() -> Mapping[str, list[str]]:
    """Tests by the promise that they prove."""
    found: dict[str, list[str]] = {}
    for room in TESTED:
        for path in sorted((ROOT / room).rglob("*.py")):
            for promise, test in _marked(path):
                found.setdefault(promise, []).append(f"{path.relative_to(ROOT)}::{test}")
    for story in sorted((ROOT / "tests" / "stories").glob("*.txt")):
        for promise in re.findall(r"^# spec: (\S+)$", story.read_text(), re.MULTILINE):
            found.setdefault(promise, []).append(str(story.relative_to(ROOT)))
    for promise in invariants.CHECKS:
        found.setdefault(promise, []).append("src/paddock/rules/session/invariants.py")
    return found


def _marked(path: Path) -> Iterator[tuple[str, str]]:
    text = path.read_text()
    if "spec(" not in text:
        return
    tree = ast.parse(text)
    tests = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    for test in tests:
        for mark in test.decorator_list:
            yield from ((promise, test.name) for promise in _named(mark))
    for line in tree.body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "pytestmark":
            marks = [one for one in ast.walk(line.value) if isinstance(one, ast.Call)]
            yield from ((promise, path.name) for mark in marks for promise in _named(mark))


def _named(mark: ast.AST) -> Iterator[str]:
    if not isinstance(mark, ast.Call):
        return
    called = mark.func.attr if isinstance(mark.func, ast.Attribute) else getattr(mark.func, "id", "")
    if called == "spec":
        yield from (str(one.value) for one in mark.args if isinstance(one, ast.Constant))


def page() -> str:
    """Write the page as it should be now."""
    proved = proofs()
    parts = [HEAD]
    for name, found in promises().items():
        parts.append(f"## [{name}]({name})\n\n| promise | in short | tests |\n| --- | --- | --- |")
        parts += [f"| `{one}` | {words} | {_tests(proved.get(one, []))} |" for one, words in found.items()]
        parts.append("")
    return "\n".join(parts)


def _tests(names: list[str]) -> str:
    shown = [f"[`{name.rpartition('::')[2].rpartition('/')[2]}`](../../{name.partition('::')[0]})" for name in names]
    return "<br>".join(shown)


if __name__ == "__main__":
    PAGE.write_text(page())
