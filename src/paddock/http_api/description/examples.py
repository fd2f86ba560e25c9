"""Makes the example of a shape from its fields: each has its own, or the one that its name has everywhere, or one of
its type. A field that may be left out is shown where it has an example of its own."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

THREAD_ID = "550e8400-e29b-41d4-a716-446655440000"
TASK_ID = "0199a8c4-5b1e-7c3a-9d2f-0123456789ab"
USUAL: Mapping[str, Any] = {
    "agentId": "echo",
    "event": "message.received",
    "content": "Sunny.",
    "description": "",
    "itemId": f"{TASK_ID}.0",
    "jobId": "0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10",
    "kbId": "handbook",
    "limit": 50,
    "name": "Morning",
    "label": "Echo",
    "message": "",
    "number": 7,
    "plugin": "paddock/echo",
    "prompt": "What is on today?",
    "role": "user",
    "runId": "run-001",
    "runnerId": "plugin:paddock/echo/default",
    "scope": "mine",
    "taskId": TASK_ID,
    "text": "What is the weather in Oslo?",
    "threadId": THREAD_ID,
    "timeZone": "Europe/Berlin",
    "title": "Weather",
    "user": "ann",
    "userId": "ann",
    "workspace": "default",
    "workspaceId": "default",
}
"""By the name of a field or parameter."""
BY_FORMAT = {"date-time": "2026-03-16T16:12:33.120Z", "date": "2026-03-15"}
BY_TYPE: Mapping[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": False, "null": None}


def example_of(schema: Schema, components: Schema, name: str = "") -> Any:
    if "$ref" in schema:
        return example_of(components[schema["$ref"].rpartition("/")[2]], components, name)
    if (own := _own(schema, name)) is not None:
        return own
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], components, name)
    match schema.get("type"):
        case "object":
            return _of_object(schema, components)
        case "array":
            return [example_of(schema["items"], components)] if schema.get("items") else []
        case kind:
            return BY_TYPE.get(str(kind), {})


def _own(schema: Schema, name: str) -> Any:
    if "examples" in schema:
        return schema["examples"][0]
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    return BY_FORMAT.get(schema.get("format", "")) or USUAL.get(name)


def _of_object(schema: Schema, components: Schema) -> dict[str, Any]:
    required, properties = schema.get("required", ()), schema.get("properties", {})
    shown = {name: one for name, one in properties.items() if name in required or "examples" in _first(one)}
    return {name: example_of(one, components, name) for name, one in shown.items()}


def _first(schema: Schema) -> Schema:
    return schema if "examples" in schema else schema.get("anyOf", [schema])[0]
