"""Export a document as plain text and as A2UI operations. Pure; documents come from the compiler."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Node = Mapping[str, Any]


def to_text(document: Mapping[str, Any]) -> str:
    """Render the document for a surface that can show text only."""
    return "\n".join(_lines(document["root"]))


def _lines(node: Node) -> list[str]:
    say = _TEXT.get(node["type"])
    return say(node) if say is not None else _of_children(node)


_MARKS = {"done": "[x]", "active": "[>]", "todo": "[ ]", "failed": "[!]"}


_TEXT: Mapping[str, Callable[[Node], list[str]]] = {
    "text": lambda node: [node["content"]],
    "badge": lambda node: [f"[{node['label']}]"],
    "icon": lambda _node: [],
    "link": lambda node: [f"{node['label']}: {node['href']}"],
    "file": lambda node: [node["name"]],
    "image": lambda node: [node["alt"]] if node["alt"] else [],
    "kv": lambda node: [f"{item['label']}: {item['value']}" for item in node["items"]],
    "table": lambda node: [" | ".join(row) for row in (node["columns"], *node["rows"])],
    "steps": lambda node: [f"{_MARKS[item['state']]} {item['label']}" for item in node["items"]],
    "chart": lambda node: [f"{point['label']}: {point['value']}" for point in node["points"]],
    "progress": lambda node: [f"{node.get('label', '')} {node['value']:g} %".strip()],
    "button": lambda node: [f"({node['label']})"],
    "form": lambda node: [*(f"{field['label']}: ____" for field in node["fields"]), f"({node['submit']})"],
    "divider": lambda _node: ["---"],
}


def _of_children(node: Node) -> list[str]:
    lines = [str(node["label"])] if node["type"] == "collapse" else []
    for index, child in enumerate(node.get("children", ()), start=1):
        inner = _lines(child)
        if node["type"] == "list" and inner:
            mark = f"{index}." if node["ordered"] else "-"
            inner = [f"{mark} {inner[0]}", *(f"  {line}" for line in inner[1:])]
        lines += inner
    return lines


def to_a2ui(document: Mapping[str, Any], surface_id: str) -> list[dict[str, Any]]:
    """Operations that make a surface with the same content: a flat list of components that name their children."""
    components: list[dict[str, Any]] = []
    _component(document["root"], components)
    return [
        {"createSurface": {"surfaceId": surface_id, "catalogId": "basic"}},
        {"updateComponents": {"surfaceId": surface_id, "components": components}},
    ]


def _component(node: Node, into: list[dict[str, Any]], *, root: bool = True) -> str:
    name = "root" if root else str(node["key"])
    make = _A2UI.get(node["type"], _as_text)
    at = len(into)
    into.append({})
    into[at] = {"id": name, **make(node, into)}
    return name


def _add(into: list[dict[str, Any]], name: str, **component: Any) -> str:
    into.append({"id": name, **component})
    return name


def _children(node: Node, into: list[dict[str, Any]]) -> list[str]:
    return [_component(child, into, root=False) for child in node["children"]]


def _as_stack(node: Node, into: list[dict[str, Any]]) -> dict[str, Any]:
    kind = "Row" if node.get("direction") == "horizontal" else "Column"
    if node.get("appearance") != "card":
        return {"component": kind, "children": _children(node, into)}
    inner: dict[str, Any] = {"id": f"{node['key']}.c", "component": kind}
    into.append(inner)
    inner["children"] = _children(node, into)
    return {"component": "Card", "child": inner["id"]}


def _as_list(node: Node, into: list[dict[str, Any]]) -> dict[str, Any]:
    return {"component": "List", "children": _children(node, into)}


def _as_column(node: Node, into: list[dict[str, Any]]) -> dict[str, Any]:
    label = (
        _add(into, f"{node['key']}.t", component="Text", text=node["label"], variant="h5") if "label" in node else None
    )
    return {"component": "Column", "children": [*([label] if label else []), *_children(node, into)]}


def _as_text(node: Node, _into: list[dict[str, Any]]) -> dict[str, Any]:
    return {"component": "Text", "text": "\n".join(_lines(node)), "variant": "body"}


_VARIANTS = {"title": "h3", "subtitle": "h5", "body": "body", "caption": "caption", "code": "body"}


def _button(node: Node, into: list[dict[str, Any]]) -> dict[str, Any]:
    label = _add(into, f"{node['key']}.t", component="Text", text=node["label"], variant="body")
    return {"component": "Button", "child": label, "action": _event(node["action"])}


def _event(action: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "event": {"name": action["kind"], "context": {key: value for key, value in action.items() if key != "kind"}}
    }


def _form(node: Node, into: list[dict[str, Any]]) -> dict[str, Any]:
    children = [_add(into, f"{node['key']}.{field['name']}", **_field(field)) for field in node["fields"]]
    label = _add(into, f"{node['key']}.t", component="Text", text=node["submit"], variant="body")
    submit = _add(into, f"{node['key']}.s", component="Button", child=label, action=_event(node["action"]))
    return {"component": "Column", "children": [*children, submit]}


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    value = {"path": f"/form/{field['name']}"}
    match field["input"]:
        case "toggle":
            return {"component": "CheckBox", "label": field["label"], "value": value}
        case "date":
            return {"component": "DateTimeInput", "label": field["label"], "value": value, "enableDate": True}
        case "choice":
            options = [{"label": option, "value": option} for option in field["options"]]
            return {"component": "ChoicePicker", "label": field["label"], "options": options, "value": value}
        case kind:
            variant = "number" if kind == "number" else "shortText"
            return {"component": "TextField", "label": field["label"], "value": value, "variant": variant}


_Maker = Callable[[Node, list[dict[str, Any]]], dict[str, Any]]
_A2UI: Mapping[str, _Maker] = {
    "stack": _as_stack,
    "grid": _as_list,
    "list": _as_list,
    "collapse": _as_column,
    "text": lambda node, _: {"component": "Text", "text": node["content"], "variant": _VARIANTS[node["role"]]},
    "badge": lambda node, _: {"component": "Text", "text": node["label"], "variant": "caption"},
    "divider": lambda _node, _into: {"component": "Divider"},
    "button": _button,
    "form": _form,
}


def texts_of(operations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every text that an A2UI surface shows, in order of its components."""
    components = operations[1]["updateComponents"]["components"]
    return [component["text"] for component in components if component["component"] == "Text"]
