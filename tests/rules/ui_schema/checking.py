"""A second opinion on documents: the published JSON schema and the limits, checked without the compiler's code."""

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator

from paddock.rules.ui_schema.compile_budget import DocumentLimits

SCHEMA = json.loads(resources.files("paddock.rules.ui_schema").joinpath("schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def nodes_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("children", []):
        yield from nodes_of(child)


def depth_of(node: dict[str, Any]) -> int:
    return 1 + max((depth_of(child) for child in node.get("children", [])), default=0)


def problems(document: Mapping[str, Any], limits: DocumentLimits) -> list[str]:
    found = [error.message for error in VALIDATOR.iter_errors(document)]
    nodes = list(nodes_of(document["root"]))
    keys = [node["key"] for node in nodes]
    size = len(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
    checks = {
        "size": size <= limits.bytes,
        "nodes": len(nodes) <= limits.nodes + 1,
        "depth": depth_of(document["root"]) <= limits.depth + 1,
        "keys": len(keys) == len(set(keys)),
        "buttons": sum(node["type"] in ("button", "form") for node in nodes) <= limits.buttons,
        "images": sum(node["type"] == "image" for node in nodes) <= limits.images,
        "inputs": sum(len(node.get("fields", [])) for node in nodes) <= limits.inputs,
    }
    return found + [name for name, holds in checks.items() if not holds]
