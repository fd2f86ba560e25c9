"""The nodes a document is made of: each is read from a draft, field by field, and what is not known is left out. Pure.

A draft node comes from `hints.py` or, raw, from an agent; both pass through here, so nothing reaches a document that
this page does not name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paddock.rules.ui_schema.actions import button_of, form_of
from paddock.rules.ui_schema.compile_budget import Desk, Node, host_of

STATUSES = frozenset({"info", "success", "warning", "error", "pending"})
TEXT_ROLES = frozenset({"title", "subtitle", "body", "caption", "code"})
ICONS = frozenset(
    {
        "info",
        "success",
        "warning",
        "error",
        "pending",
        "calendar",
        "clock",
        "file",
        "link",
        "person",
        "place",
        "search",
        "star",
    }
)
STEP_STATES = frozenset({"done", "active", "todo", "failed"})

Draft = dict[str, Any]
Reader = Callable[[Desk, Draft, str, int], Node | None]


def read_node(desk: Desk, draft: object, where: str, depth: int) -> Node | None:
    """One node and all below it, or None when nothing of it can be shown."""
    given = desk.mapping(draft, where)
    if given is None:
        return None
    kind = given.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        return _fallback(desk, given, where)
    if depth > desk.limits.depth:
        desk.note(f"{where}: too deep")
        return None
    if not desk.spend("nodes", where):
        return None
    node = read(desk, given, where, depth)
    spare = given.get("fallback")
    if node is not None and spare is not None and (text := desk.text(spare, f"{where}.fallback")):
        node["fallback"] = text
    return node


def read_children(desk: Desk, drafts: Sequence[Any] | None, where: str, depth: int) -> list[Node]:
    found: list[Node] = []
    for index, draft in enumerate(desk.items(drafts, where)):
        node = read_node(desk, draft, f"{where}[{index}]", depth)
        if node is not None:
            found.append(node)
    return found


def _fallback(desk: Desk, given: Draft, where: str) -> Node | None:
    """A node nobody knows is shown as its fallback text, or not at all."""
    desk.note(f"{where}: unknown type {str(given.get('type'))[:40]!r}")
    spare = desk.text(given.get("fallback"), f"{where}.fallback")
    return {"type": "text", "content": spare, "role": "body"} if spare and desk.spend("nodes", where) else None


# --- layout


def _stack(desk: Desk, given: Draft, where: str, depth: int) -> Node | None:
    children = read_children(desk, given.get("children"), f"{where}.children", depth + 1)
    if not children:
        return None
    node: Node = {"type": "stack"}
    for name, known in _STACK.items():
        if name in given and (value := desk.one_of(given[name], known, None, f"{where}.{name}")) is not None:
            node[name] = value
    node["children"] = children
    return node


_STACK: Mapping[str, frozenset[str]] = {
    "direction": frozenset({"vertical", "horizontal"}),
    "gap": frozenset({"none", "small", "medium", "large"}),
    "align": frozenset({"start", "center", "end", "stretch"}),
    "appearance": frozenset({"plain", "card", "section"}),
}


def _grid(desk: Desk, given: Draft, where: str, depth: int) -> Node | None:
    children = read_children(desk, given.get("children"), f"{where}.children", depth + 1)
    columns = desk.number(given.get("columns"), f"{where}.columns") or 2
    return {"type": "grid", "columns": max(1, min(4, int(columns))), "children": children} if children else None


def _list(desk: Desk, given: Draft, where: str, depth: int) -> Node | None:
    children = read_children(desk, given.get("children"), f"{where}.children", depth + 1)
    return {"type": "list", "ordered": given.get("ordered") is True, "children": children} if children else None


def _divider(_desk: Desk, _given: Draft, _where: str, _depth: int) -> Node | None:
    return {"type": "divider"}


def _collapse(desk: Desk, given: Draft, where: str, depth: int) -> Node | None:
    label = desk.text(given.get("label"), f"{where}.label", limit=200)
    children = read_children(desk, given.get("children"), f"{where}.children", depth + 1)
    if not label or not children:
        return None
    return {"type": "collapse", "label": label, "open": given.get("open") is True, "children": children}


# --- content


def _text(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    content = desk.text(given.get("content"), f"{where}.content")
    role = desk.one_of(given.get("role"), TEXT_ROLES, "body", f"{where}.role")
    return {"type": "text", "content": content, "role": role} if content else None


def _badge(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    label = desk.text(given.get("label"), f"{where}.label", limit=80)
    status = desk.one_of(given.get("status"), STATUSES, "info", f"{where}.status")
    return {"type": "badge", "label": label, "status": status} if label else None


def _icon(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    name = desk.one_of(given.get("name"), ICONS, None, f"{where}.name")
    return {"type": "icon", "name": name} if name else None


def _image(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    """Only from our own store: an address of an agent's choice could carry away what it was told."""
    artifact = desk.name(given.get("artifact_id"), f"{where}.artifact_id")
    if artifact is None or not desk.spend("images", where):
        return None
    return {
        "type": "image",
        "artifact_id": artifact,
        "alt": desk.text(given.get("alt"), f"{where}.alt", limit=300) or "",
    }


def _file(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    artifact = desk.name(given.get("artifact_id"), f"{where}.artifact_id")
    label = desk.text(given.get("name"), f"{where}.name", limit=200)
    return {"type": "file", "artifact_id": artifact, "name": label or artifact} if artifact else None


def _link(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    href = desk.link(given.get("href"), f"{where}.href")
    if href is None:
        return None
    label = desk.text(given.get("label"), f"{where}.label", limit=300)
    return {"type": "link", "href": href, "label": label or host_of(href), "host": host_of(href)}


def _kv(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    pairs: list[Node] = []
    for index, draft in enumerate(desk.items(given.get("items"), f"{where}.items")):
        place = f"{where}.items[{index}]"
        pair = desk.mapping(draft, place) or {}
        label = desk.text(pair.get("label"), f"{place}.label", limit=200)
        value = desk.text(pair.get("value"), f"{place}.value")
        if label and value:
            pairs.append({"label": label, "value": value})
    return {"type": "kv", "items": pairs} if pairs else None


def _table(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    columns = [
        desk.text(name, f"{where}.columns", limit=200) or ""
        for name in desk.items(given.get("columns"), f"{where}.columns", limit=desk.limits.columns)
    ]
    rows: list[list[str]] = []
    for index, draft in enumerate(desk.items(given.get("rows"), f"{where}.rows", limit=desk.limits.rows)):
        place = f"{where}.rows[{index}]"
        cells = desk.items(draft, place, limit=len(columns))
        shown = [desk.text(cell, place, limit=500) or "" for cell in cells]
        rows.append(shown + [""] * (len(columns) - len(shown)))
    return {"type": "table", "columns": columns, "rows": rows} if any(columns) and rows else None


def _progress(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    value = desk.number(given.get("value"), f"{where}.value")
    if value is None:
        return None
    label = desk.text(given.get("label"), f"{where}.label", limit=200)
    return {"type": "progress", "value": max(0, min(100, value))} | ({"label": label} if label else {})


def _steps(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    steps: list[Node] = []
    for index, draft in enumerate(desk.items(given.get("items"), f"{where}.items")):
        place = f"{where}.items[{index}]"
        step = desk.mapping(draft, place) or {}
        label = desk.text(step.get("label"), f"{place}.label", limit=300)
        state = desk.one_of(step.get("state"), STEP_STATES, "todo", f"{place}.state")
        if label:
            steps.append({"label": label, "state": state})
    return {"type": "steps", "items": steps} if steps else None


def _chart(desk: Desk, given: Draft, where: str, _depth: int) -> Node | None:
    kind = desk.one_of(given.get("kind"), frozenset({"bar", "line", "pie"}), "bar", f"{where}.kind")
    points: list[Node] = []
    for index, draft in enumerate(desk.items(given.get("points"), f"{where}.points")):
        point = desk.mapping(draft, f"{where}.points[{index}]") or {}
        label = desk.text(point.get("label"), f"{where}.points[{index}].label", limit=80)
        value = desk.number(point.get("value"), f"{where}.points[{index}].value")
        if label and value is not None:
            points.append({"label": label, "value": value})
    return {"type": "chart", "kind": kind, "points": points} if points else None


_READERS: Mapping[str, Reader] = {
    "stack": _stack,
    "grid": _grid,
    "list": _list,
    "divider": _divider,
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
