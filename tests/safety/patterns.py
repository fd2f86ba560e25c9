"""Find every regular expression of the source, and attack each with strings made from its own parts.

For each part that may repeat without end, a string repeats what that part takes, behind what stands before it and
before what cannot follow. Work that is worse than linear shows in such strings: what fails at the end is tried again in
every other way there is.
"""

import ast
import importlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from re import _constants as sre  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

SOURCES = Path(__file__).parents[2]
ROOMS = (SOURCES / "src", SOURCES / "sdk" / "src")
CALLS = frozenset({"compile", "match", "search", "sub", "subn", "fullmatch", "findall", "finditer", "split"})
WAYS = ("match", "search", "fullmatch")
LONG = 20_000
"""Characters of an attack: quadratic work on them takes a second."""
MANY = 32
"""A part that repeats more often than this counts as without end."""


@dataclass(frozen=True)
class Found:
    """One place where a regular expression is made or used."""

    place: str
    """Module and line of thought: the name it is kept under, or the function that uses it."""
    pattern: "re.Pattern[Any] | None"
    """None where it is put together from what is known only then."""
    ways: tuple[str, ...]
    """How it is used, as far as its module tells."""


def every_pattern() -> Iterator[Found]:
    for room in ROOMS:
        for path in sorted(room.rglob("*.py")):
            text = path.read_text()
            if "re." in text and ("import re\n" in text or "import re as" in text):
                yield from _patterns_of(path, path.relative_to(room), text)


def _patterns_of(path: Path, short: Path, text: str) -> Iterator[Found]:
    tree = ast.parse(text)
    kept = _kept_in(short)
    for owner, call in _calls(tree):
        name = f"{short.with_suffix('')}:{owner}".replace("/", ".")
        method = call.func.attr  # type: ignore[attr-defined]
        ways = _ways(text, owner) if method == "compile" else (method,)
        patterns = [one for one in kept.get(owner, []) if one.pattern in _constants(call)] if kept else []
        made = _constant_pattern(call)
        if made is not None:
            patterns = [made]
        elif method == "compile" and kept.get(owner):
            patterns = kept[owner]
        if not patterns:
            yield Found(name, None, ways)
        for number, pattern in enumerate(patterns):
            yield Found(f"{name}[{number}]" if len(patterns) > 1 else name, pattern, ways)


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Each call of `re`, with the name at the top of the module under which it stands."""
    for node in tree.body:
        for inner, owner in _owned(node):
            for call in ast.walk(inner):
                if (
                    isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute)
                    and isinstance(call.func.value, ast.Name)
                    and call.func.value.id == "re"
                    and call.func.attr in CALLS
                ):
                    yield owner, call


def _owned(node: ast.stmt) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node, ast.ClassDef):
        for one in node.body:
            for inner, owner in _owned(one):
                yield inner, f"{node.name}.{owner}"
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node, node.name
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        yield node, node.targets[0].id
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node, node.target.id
    else:
        yield node, f"line {node.lineno}"


def _constants(call: ast.Call) -> set[object]:
    return {node.value for node in ast.walk(call) if isinstance(node, ast.Constant)}


def _constant_pattern(call: ast.Call) -> "re.Pattern[Any] | None":
    """What the call makes, where it is written out."""
    first = call.args[0] if call.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str | bytes):
        return None
    flags = 0
    for node in ast.walk(call):
        if isinstance(node, ast.Attribute) and node.attr.isupper():
            flags |= getattr(re, node.attr)
    return re.compile(first.value, flags)


def _kept_in(short: Path) -> dict[str, list["re.Pattern[Any]"]]:
    """The patterns that a module keeps, by the name of what keeps them."""
    module = importlib.import_module(".".join(short.with_suffix("").parts).removesuffix(".__init__"))
    return {name: found for name, value in vars(module).items() if (found := list(_inside(value)))}


def _inside(value: object) -> Iterator["re.Pattern[Any]"]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _inside(one)
    elif isinstance(value, dict):
        for one in (*value, *value.values()):
            yield from _inside(one)


def _ways(text: str, name: str) -> tuple[str, ...]:
    used = {way for way in CALLS - {"compile"} if re.search(rf"\b{re.escape(name)}\.{way}\b", text)}
    return tuple(sorted(used)) or WAYS


# --- attacks ----------------------------------------------------------------------------------------------------------


def worst_of(found: Found, long: int = LONG, quick: float = 0.05) -> str | None:
    """Attack one pattern; say which string took how long, None when none took long."""
    assert found.pattern is not None
    for text in attacks(found.pattern, long):
        for way in found.ways:
            spent = _spent(found.pattern, way, text)
            if spent > quick:
                return f"{way} of {text[:40]!r}... ({len(text)}) took {spent:.2f} s"
    return None


def _spent(pattern: "re.Pattern[Any]", way: str, text: Any) -> float:
    before = time.thread_time()
    if way in {"sub", "subn"}:
        getattr(pattern, way)(text[:0], text)
    else:
        given = getattr(pattern, way)(text)
        if way == "finditer":
            for _ in given:
                pass
    return time.thread_time() - before


def attacks(pattern: "re.Pattern[Any]", long: int) -> Iterator[Any]:
    """Strings that repeat what a part of the pattern may repeat."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    seen: set[str] = set()
    for before, pump in islice(_pumps(tree), 60):
        for text in _around(before, pump, long):
            if text not in seen:
                seen.add(text)
                yield text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text


def _around(before: str, pump: str, long: int) -> Iterator[str]:
    body = pump * (long // len(pump))
    for start in {before, ""}:
        for end in ("", "\x00", "\n\x00", pump[:1] + "!"):
            yield start + body + end


def _pumps(tree: Any) -> Iterator[tuple[str, str]]:
    """What stands before a part, with what the part may repeat; then the whole, again and again."""
    for before, node in _repeats(list(tree), ""):
        body = list(node[2])
        for size in (0, 1, 2):
            pump = _sample(body, size)
            if pump:
                yield before, pump
        for char in _alphabet(body):
            yield before, char
    for size in (0, 1):
        whole = _sample(list(tree), size)
        for cut in {len(whole), len(whole) // 2, max(len(whole) - 1, 1), 1}:
            if whole[:cut]:
                yield "", whole[:cut]


def _repeats(items: list[Any], before: str) -> Iterator[tuple[str, Any]]:
    for place, (kind, value) in enumerate(items):
        prefix = before + _sample(items[:place], 0)
        if kind in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            if value[1] == sre.MAXREPEAT or value[1] > MANY:
                yield prefix, value
            yield from _repeats(list(value[2]), prefix)
        else:
            for part in _parts(kind, value):
                yield from _repeats(list(part), prefix)


def _parts(kind: Any, value: Any) -> list[Any]:
    if kind is sre.SUBPATTERN:
        return [value[3]]
    if kind is sre.BRANCH:
        return list(value[1])
    if kind in {sre.ASSERT, sre.ASSERT_NOT}:
        return [value[1]]
    if kind is sre.ATOMIC_GROUP:
        return [value]
    return []


def _sample(items: list[Any], size: int) -> str:
    """A string that the items take; parts that repeat do so `size` times more than they must."""
    return "".join(_sample_one(kind, value, size) for kind, value in items)


def _sample_one(kind: Any, value: Any, size: int) -> str:
    if kind in {sre.LITERAL, sre.ANY, sre.NOT_LITERAL, sre.IN}:
        return next(iter(_of_set([(kind, value)] if kind is not sre.IN else value)), "~")
    if kind in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
        return _sample(list(value[2]), size) * min(value[0] + size, value[1], 40)
    if kind is sre.BRANCH:
        return _sample(list(value[1][size % len(value[1])]), size)
    if kind in {sre.SUBPATTERN, sre.ATOMIC_GROUP}:
        return _sample(list(_parts(kind, value)[0]), size)
    return ""


CATEGORIES = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_SPACE: " \n",
    sre.CATEGORY_WORD: "a_1",
    sre.CATEGORY_NOT_SPACE: "a,",
    sre.CATEGORY_NOT_WORD: ", ",
    sre.CATEGORY_NOT_DIGIT: "a ",
}


def _of_set(items: list[Any]) -> list[str]:
    if items[0][0] is sre.NEGATE:
        taken = set(_of_set(items[1:])) if len(items) > 1 else set[str]()
        return [char for char in "~a1 ,\n" if char not in taken]
    found: list[str] = []
    for kind, value in items:
        if kind is sre.LITERAL:
            found.append(chr(value))
        elif kind is sre.RANGE:
            found.append(chr(value[0]))
        elif kind is sre.CATEGORY:
            found.extend(CATEGORIES.get(value, "a"))
        else:
            found.append("~")
    return found


def _alphabet(items: list[Any]) -> list[str]:
    """Characters that the items take at some place."""
    found: list[str] = []
    for kind, value in items:
        if kind is sre.IN:
            found.extend(_of_set(value)[:6])
        elif kind is sre.LITERAL:
            found.append(chr(value))
        elif kind in {sre.ANY, sre.NOT_LITERAL}:
            found.extend("~ \n")
        elif kind in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            found.extend(_alphabet(list(value[2])))
        else:
            for part in _parts(kind, value):
                found.extend(_alphabet(list(part)))
    return list(dict.fromkeys(found))[:10]
