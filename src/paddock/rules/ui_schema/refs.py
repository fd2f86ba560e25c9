"""The actions a document refers to: found, and given other names. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

Node = Mapping[str, Any]


def refs_in(node: Node) -> Iterator[str]:
    """The references of a node and of all below it."""
    if "ref" in node.get("action", {}):
        yield node["action"]["ref"]
    for child in node.get("children", ()):
        yield from refs_in(child)


def renamed(document: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The document with other names for its actions."""
    return {**document, "root": _renamed(document["root"], names)}


def _renamed(node: Node, names: Mapping[str, str]) -> dict[str, Any]:
    changed = dict(node)
    action = node.get("action", {})
    if "ref" in action:
        changed["action"] = {**action, "ref": names[action["ref"]]}
    if "children" in node:
        changed["children"] = [_renamed(child, names) for child in node["children"]]
    return changed
