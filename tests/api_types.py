"""Write the types of the API for its clients anew, from the OpenAPI document: `make types`.

TypeScript for the web console, dictionaries with types for the Python client. A test compares them with the document.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from http_api.described import DOCUMENT

ROOT = Path(__file__).parents[1]
TYPESCRIPT = ROOT / "console" / "src" / "api" / "types.ts"
PYTHON = ROOT / "sdk" / "src" / "paddock_sdk" / "client" / "types.py"
CALLED = (
    "/api/v1/agent/runs",
    "/api/v1/agent/runs/{run}",
    "/api/v1/agent/runs/{run}/cancel",
    "/api/v1/agent/runs/{run}/events",
    "/api/v1/agent/history",
    "/api/v1/agent/sessions",
    "/api/v1/agent/sessions/{thread}/edit",
    "/api/v1/agent/sessions/{thread}/regenerate",
    "/api/v1/agent/sessions/{thread}/messages/{item}/feedback",
    "/api/v1/users/me",
)
"""What the Python client calls."""
Schema = Mapping[str, Any]
Made = Callable[[], str]
HEAD = "The shapes of the HTTP API. Made by `make types` from its OpenAPI document; not to be changed by hand."
SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
SIMPLE_PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def schemas(*paths: str) -> Mapping[str, Schema]:
    """Everything that has a name and travels, by these paths or by all; parameters of queries do not."""
    document = DOCUMENT
    found: set[str] = set()
    _refs([document["paths"][path] for path in paths or document["paths"]], document, found)
    return {name: document["components"]["schemas"][name] for name in sorted(found)}


def _refs(value: Any, document: Schema, found: set[str]) -> None:
    for name in re.findall(r"#/components/schemas/(\w+)", json.dumps(value)):
        if name not in found:
            found.add(name)
            _refs(document["components"]["schemas"][name], document, found)


def _kinds(schema: Schema) -> list[Schema]:
    kinds = schema.get("anyOf") or schema.get("oneOf")
    if kinds:
        return list(kinds)
    types = schema.get("type")
    return [{**schema, "type": one} for one in types] if isinstance(types, list) else []


def _choices(schema: Schema) -> list[str]:
    return [json.dumps(one) for one in schema.get("enum", [schema["const"]] if "const" in schema else [])]


# --- TypeScript -------------------------------------------------------------------------------------------------------


def typescript() -> str:
    head = f"/** {HEAD} */\n"
    return head + "".join(f"\n{_declared(name, schema)}" for name, schema in schemas().items())


def _declared(name: str, schema: Schema) -> str:
    says = f"/** {schema['description']} */\n" if "description" in schema else ""
    if schema.get("type") == "object" and schema.get("properties"):
        return f"{says}export interface {name} {{\n{''.join(_fields(schema, '  '))}}}\n"
    return f"{says}export type {name} = {_type(schema)};\n"


def _fields(schema: Schema, indent: str) -> Iterator[str]:
    for name, about in schema["properties"].items():
        if "description" in about:
            yield f"{indent}/** {about['description']} */\n"
        mark = "" if name in schema.get("required", ()) else "?"
        yield f"{indent}{name if name.isidentifier() else json.dumps(name)}{mark}: {_type(about)};\n"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if kinds := _kinds(schema):
        return " | ".join(dict.fromkeys(map(_type, kinds)))
    if choices := _choices(schema):
        return " | ".join(choices)
    return _plain_type(schema)


def _plain_type(schema: Schema) -> str:
    match schema.get("type"):
        case "array":
            inner = _type(schema.get("items") or {})
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case "object" if schema.get("properties"):
            return "{ " + " ".join(line.strip() for line in _fields({**schema}, "")) + " }"
        case "object":
            more = schema.get("additionalProperties")
            return f"Record<string, {_type(more) if isinstance(more, dict) and more else 'unknown'}>"
        case kind:
            return SIMPLE.get(str(kind), "unknown")


# --- Python -----------------------------------------------------------------------------------------------------------


def python() -> str:
    head = f'''"""{HEAD}"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''
    known = schemas(*CALLED)
    objects = {name: one for name, one in known.items() if one.get("type") == "object" and one.get("properties")}
    body = "".join(f"\n\n{_python_class(name, schema)}" for name, schema in objects.items())
    unions = "".join(_python_union(name, one) for name, one in known.items() if name not in objects)
    tidy = [sys.executable, "-m", "ruff", "format", "--stdin-filename", PYTHON.name, "-"]
    return subprocess.run(tidy, input=head + body + unions, capture_output=True, text=True, check=True).stdout


def _python_class(name: str, schema: Schema) -> str:
    says = f'    """{schema["description"]}"""\n\n' if "description" in schema else ""
    lines = "".join(f"    {field}: {_python_field(field, schema)}\n" for field in schema["properties"])
    return f"class {name}(TypedDict):\n{says}{lines}"


def _python_union(name: str, schema: Schema) -> str:
    first, *others = map(_python_type, _kinds(schema))
    return f"\n\n{name} = (\n    {first}\n{''.join(f'    | {one}{chr(10)}' for one in others)})\n"


def _python_field(field: str, schema: Schema) -> str:
    kind = _python_type(schema["properties"][field])
    return kind if field in schema.get("required", ()) else f"NotRequired[{kind}]"


def _python_type(schema: Schema) -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if kinds := _kinds(schema):
        parts = list(dict.fromkeys(map(_python_type, kinds)))
        return "Any" if "Any" in parts else " | ".join(sorted(parts, key=lambda one: one == "None"))
    if choices := _choices(schema):
        return f"Literal[{', '.join(choices)}]"
    match schema.get("type"):
        case "array":
            return f"list[{_python_type(schema.get('items') or {})}]"
        case "object":
            more = schema.get("additionalProperties")
            return f"dict[str, {_python_type(more) if isinstance(more, dict) and more else 'Any'}]"
        case kind:
            return SIMPLE_PYTHON.get(str(kind), "Any")


def write() -> None:
    TYPESCRIPT.write_text(typescript())
    PYTHON.write_text(python())


if __name__ == "__main__":
    write()
