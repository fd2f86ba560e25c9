"""The nodes a document is made of: each is read from a draft, field by field, and what is not known is left out. Pure.

A draft node comes from `hints.py` or, raw, from an agent; both pass through here, so nothing reaches a document that
this page does not name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paddock.rules.ui_schema.actions import button_of, form_of
from paddock.rules.ui_schema.compile_budget import CompileBudget, Node, host_of

STATUSES = frozenset({"info", "success", "warning", "error", "pending"})
TEXT_ROLES = frozenset({"title", "subtitle", "body", "caption", "code"})
ICONS = STATUSES | {"calendar", "clock", "file", "link", "person", "place", "search", "star"}
STEP_STATES = frozenset({"done", "active", "todo", "failed"})

Draft = dict[str, Any]
Reader = Callable[[CompileBudget, Draft, str, int], Node | None]


def read_node(budget: CompileBudget, draft: object, where: str, depth: int) -> Node | None:
    """One node and all below it, or None when nothing of it can be shown."""
    given = budget.mapping(draft, where)
    if given is None:
        return None
    kind = given.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        return _fallback(budget, given, where)
    if depth > budget.limits.depth:
        budget.note(f"{where}: too deep")
        return None
    if not budget.spend("nodes", where):
        return None
    node = read(budget, given, where, depth)
    spare = given.get("fallback")
    if node is not None and spare is not None and (text := budget.text(spare, f"{where}.fallback")):
        node["fallback"] = text
    return node


def read_children(budget: CompileBudget, drafts: Sequence[Any] | None, where: str, depth: int) -> list[Node]:
    found: list[Node] = []
    for index, draft in enumerate(budget.items(drafts, where)):
        node = read_node(budget, draft, f"{where}[{index}]", depth)
        if node is not None:
            found.append(node)
    return found


def _fallback(budget: CompileBudget, given: Draft, where: str) -> Node | None:
    """A node of an unknown type is shown as its fallback text, or not at all."""
    budget.note(f"{where}: unknown type {str(given.get('type'))[:40]!r}")
    spare = budget.text(given.get("fallback"), f"{where}.fallback")
    return {"type": "text", "content": spare, "role": "body"} if spare and budget.spend("nodes", where) else None


def _stack(budget: CompileBudget, given: Draft, where: str, depth: int) -> Node | None:
    children = read_children(budget, given.get("children"), f"{where}.children", depth + 1)
    if not children:
        return None
    node: Node = {"type": "stack"}
    for name, known in _STACK.items():
        if name in given and (value := budget.one_of(given[name], known, None, f"{where}.{name}")) is not None:
            node[name] = value
    node["children"] = children
    return node


_STACK: Mapping[str, frozenset[str]] = {
    "direction": frozenset({"vertical", "horizontal"}),
    "gap": frozenset({"none", "small", "medium", "large"}),
    "align": frozenset({"start", "center", "end", "stretch"}),
    "appearance": frozenset({"plain", "card", "section"}),
}


def _grid(budget: CompileBudget, given: Draft, where: str, depth: int) -> Node | None:
    children = read_children(budget, given.get("children"), f"{where}.children", depth + 1)
    columns = budget.number(given.get("columns"), f"{where}.columns") or 2
    return {"type": "grid", "columns": max(1, min(4, int(columns))), "children": children} if children else None


def _list(budget: CompileBudget, given: Draft, where: str, depth: int) -> Node | None:
    children = read_children(budget, given.get("children"), f"{where}.children", depth + 1)
    return {"type": "list", "ordered": given.get("ordered") is True, "children": children} if children else None


def _collapse(budget: CompileBudget, given: Draft, where: str, depth: int) -> Node | None:
    label = budget.text(given.get("label"), f"{where}.label", limit=200)
    children = read_children(budget, given.get("children"), f"{where}.children", depth + 1)
    if not label or not children:
        return None
    return {"type": "collapse", "label": label, "open": given.get("open") is True, "children": children}


def _text(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    content = budget.text(given.get("content"), f"{where}.content")
    role = budget.one_of(given.get("role"), TEXT_ROLES, "body", f"{where}.role")
    return {"type": "text", "content": content, "role": role} if content else None


def _badge(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    label = budget.text(given.get("label"), f"{where}.label", limit=80)
    status = budget.one_of(given.get("status"), STATUSES, "info", f"{where}.status")
    return {"type": "badge", "label": label, "status": status} if label else None


def _icon(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    name = budget.one_of(given.get("name"), ICONS, None, f"{where}.name")
    return {"type": "icon", "name": name} if name else None


def _image(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    """Only from our own store: an address of an agent's choice could carry away what it was told."""
    artifact = budget.name(given.get("artifact_id"), f"{where}.artifact_id")
    if artifact is None or not budget.spend("images", where):
        return None
    return {
        "type": "image",
        "artifact_id": artifact,
        "alt": budget.text(given.get("alt"), f"{where}.alt", limit=300) or "",
    }


def _file(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    artifact = budget.name(given.get("artifact_id"), f"{where}.artifact_id")
    label = budget.text(given.get("name"), f"{where}.name", limit=200)
    return {"type": "file", "artifact_id": artifact, "name": label or artifact} if artifact else None


def _link(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    href = budget.link(given.get("href"), f"{where}.href")
    if href is None:
        return None
    label = budget.text(given.get("label"), f"{where}.label", limit=300)
    return {"type": "link", "href": href, "label": label or host_of(href), "host": host_of(href)}


def _kv(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    pairs: list[Node] = []
    for index, draft in enumerate(budget.items(given.get("items"), f"{where}.items")):
        place = f"{where}.items[{index}]"
        pair = budget.mapping(draft, place) or {}
        label = budget.text(pair.get("label"), f"{place}.label", limit=200)
        value = budget.text(pair.get("value"), f"{place}.value")
        if label and value:
            pairs.append({"label": label, "value": value})
    return {"type": "kv", "items": pairs} if pairs else None


def _table(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    columns = [
        budget.text(name, f"{where}.columns", limit=200) or ""
        for name in budget.items(given.get("columns"), f"{where}.columns", limit=budget.limits.columns)
    ]
    rows: list[list[str]] = []
    for index, draft in enumerate(budget.items(given.get("rows"), f"{where}.rows", limit=budget.limits.rows)):
        place = f"{where}.rows[{index}]"
        cells = budget.items(draft, place, limit=len(columns))
        shown = [budget.text(cell, place, limit=500) or "" for cell in cells]
        rows.append(shown + [""] * (len(columns) - len(shown)))
    return {"type": "table", "columns": columns, "rows": rows} if any(columns) and rows else None


def _progress(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    value = budget.number(given.get("value"), f"{where}.value")
    if value is None:
        return None
    label = budget.text(given.get("label"), f"{where}.label", limit=200)
    return {"type": "progress", "value": max(0, min(100, value))} | ({"label": label} if label else {})


def _steps(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    steps: list[Node] = []
    for index, draft in enumerate(budget.items(given.get("items"), f"{where}.items")):
        place = f"{where}.items[{index}]"
        step = budget.mapping(draft, place) or {}
        label = budget.text(step.get("label"), f"{place}.label", limit=300)
        state = budget.one_of(step.get("state"), STEP_STATES, "todo", f"{place}.state")
        if label:
            steps.append({"label": label, "state": state})
    return {"type": "steps", "items": steps} if steps else None


def _chart(budget: CompileBudget, given: Draft, where: str, _depth: int) -> Node | None:
    kind = budget.one_of(given.get("kind"), frozenset({"bar", "line", "pie"}), "bar", f"{where}.kind")
    points: list[Node] = []
    for index, draft in enumerate(budget.items(given.get("points"), f"{where}.points")):
        point = budget.mapping(draft, f"{where}.points[{index}]") or {}
        label = budget.text(point.get("label"), f"{where}.points[{index}].label", limit=80)
        value = budget.number(point.get("value"), f"{where}.points[{index}].value")
        if label and value is not None:
            points.append({"label": label, "value": value})
    return {"type": "chart", "kind": kind, "points": points} if points else None


_READERS: Mapping[str, Reader] = {
    "stack": _stack,
    "grid": _grid,
    "list": _list,
    "divider": lambda _budget, _given, _where, _depth: {"type": "divider"},
    "collapse": _collapse,
    "text": _text,
    "badge": _badge,
    "icon": _icon,
    "image": _image,
    "file": _file,
    "link": _link,
    "kv": _kv,
    "table": _table,
    "progress": _progress,
    "steps": _steps,
    "chart": _chart,
    "button": button_of,
    "form": form_of,
}
NODE_TYPES = frozenset(_READERS)
