"""Hints in, document out: same hints, same bytes, and never an exception. Pure."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.rules.ui_schema.actions import refs_in
from paddock.rules.ui_schema.compile_budget import DEFAULT, CompileBudget, DocumentLimits, Node
from paddock.rules.ui_schema.hints import drafts_of
from paddock.rules.ui_schema.nodes import read_node
from paddock.rules.values import Value

COMPILER = "1"
"""Stored with every document; a newer compiler may compile the hints again."""
VERSION = "2.0"
_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_size = msgspec.json.Encoder().encode


class Compiled(Value, frozen=True):
    """A document or None, what its buttons stand for, and what was left out and why (for the agent's author)."""

    document: Mapping[str, Any] | None
    actions: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...]


def compile_hints(hints: object, *, locale: str = "en", limits: DocumentLimits = DEFAULT) -> Compiled:
    budget = CompileBudget(limits)
    drafts, status = drafts_of(hints)
    children: list[Node] = []
    for index, draft in enumerate(budget.items(drafts, "hints")):
        node = read_node(budget, draft, f"hints[{index}]", 1)
        if node is not None:
            children.append(node)
    if not children:
        return Compiled(None, {}, tuple(budget.notes))
    return _whole(budget, children, status or "info", locale if _LOCALE.fullmatch(locale) else "en")


def _whole(budget: CompileBudget, children: list[Node], status: str, locale: str) -> Compiled:
    document: dict[str, Any] = {"version": VERSION, "locale": locale, "status": status, "theme": "default"}
    while children:
        root: Node = children[0] if len(children) == 1 else {"type": "stack", "children": children}
        document["root"] = _with_keys(root, "r")
        if len(_size(document)) <= budget.limits.bytes:
            used = set(refs_in(document["root"])) if budget.actions else frozenset[str]()
            actions = {ref: action for ref, action in budget.actions.items() if ref in used}
            return Compiled(document, actions, tuple(budget.notes))
        budget.note(f"the document exceeds {budget.limits.bytes} bytes: its last part is left out")
        children = _shortened(children)
    return Compiled(None, {}, tuple(budget.notes))


def _shortened(children: list[Node]) -> list[Node]:
    """Without the last part; of a single one, without its last child."""
    if len(children) > 1:
        return children[:-1]
    inner: list[Node] = children[0].get("children") or []
    return [{**children[0], "children": inner[:-1]}] if len(inner) > 1 else []


def _with_keys(node: Node, key: str) -> Node:
    """Keys derive from place and kind, so that they stay the same while the document does."""
    keyed: Node = {"type": node["type"], "key": key}
    keyed |= node  # every node begins with its type, which keeps its place
    if "children" in keyed:
        keyed["children"] = [
            _with_keys(child, f"{key}.{index}{child['type'][0]}") for index, child in enumerate(keyed["children"])
        ]
    return keyed
