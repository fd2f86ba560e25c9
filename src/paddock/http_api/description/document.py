"""All declared operations as one OpenAPI 3.1 document."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

import msgspec

from paddock.http_api.edge.errors import STATUS, problem_of
from paddock.http_api.edge.operations import JSON, SSE, Content, Operation, Operations, Pydantic, operations_of
from paddock.http_api.edge.shapes import Answer, Json, Query, extra_of, fields_of
from paddock.rules.errors import ErrorCode

REF = "#/components/schemas/{name}"

REFUSALS: Mapping[int, tuple[str, str]] = {
    401: ("Nobody knows the caller.", "this needs an API key: Authorization: Bearer ..."),
    403: ("The caller may not.", "only administrators may do this"),
    404: ("There is nothing of the caller's under this name.", "there is no such run"),
    409: ("It does not fit what is there.", "runId was used for another request"),
    410: ("The cursor's place is gone.", "the log before this cursor was trimmed; go on from the snapshot"),
    413: ("The body is too large.", "RunAgentInput payload exceeds size limit"),
    422: ("Something asked for makes no sense; `detail` says what.", "threadId must be a valid UUID"),
    429: ("Too much at once; `Retry-After` says when to try again.", "too many requests with this key; wait a moment"),
    500: ("The host made a mistake; its log has the details.", "the host made a mistake; its log has the details"),
    503: (
        "The host cannot do this at the moment; `Retry-After` says when to try again.",
        "the host cannot write to its storage at the moment, so nothing was accepted; try again shortly",
    ),
    504: ("It took too long.", "the search took more than 5 s; ask for rarer words, or less with filters"),
}
"""When a status comes, and a sentence of its kind as an example."""
ROLES = {"admin": "Administrators only.", "operator": "For whoever runs the host only."}
_PROBLEM: Json = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 0},
        "detail": {"type": "string", "description": "A sentence for a person."},
        "code": {"type": "string", "enum": [str(code) for code in ErrorCode]},
        "reason": {"type": "string", "description": "What exactly is wrong, where the sentence is prescribed."},
    },
    "required": ["type", "title", "status", "detail", "code"],
}
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key or a signed token. None is needed on loopback while no key exists.",
}


def openapi(version: str, doors: Iterable[type[Operations]]) -> Json:
    operations = [one for door in doors for one in operations_of(door)]
    shapes = Shapes(operations)
    paths: dict[str, Json] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one, shapes)
    schemas = {**shapes.components, "Problem": _PROBLEM}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Paddock", "version": version, "description": "An agent host."},
        "tags": [{"name": name} for name in dict.fromkeys(one.group for one in operations)],
        "security": [{"key": []}, {}],
        "paths": paths,
        "components": {"schemas": schemas, "responses": _responses(), "securitySchemes": {"key": _KEY}},
    }


def _responses() -> Json:
    named = {f"Problem{status}": _problem(status, *said) for status, said in REFUSALS.items()}
    return {**named, "Problem": named.pop("Problem500")}


def _problem(status: int, when: str, detail: str) -> Json:
    code = next(code for code, other in STATUS.items() if other == status)
    body = {"schema": {"$ref": REF.format(name="Problem")}, "example": problem_of(status, code, detail)}
    return {"description": when, "content": {"application/problem+json": body}}


# --- shapes -----------------------------------------------------------------------------------------------------------


class Shapes:
    """The JSON schemas of all that is read and answered; what has a name is a component."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        types = [one for operation in operations for one in _types(operation)]
        schemas, components = msgspec.json.schema_components(types, ref_template=REF)
        self._known = {repr(one): schema for one, schema in zip(types, schemas, strict=True)}
        answers = {one.__name__ for one in _below(Answer)} | {one.__name__ for one in _below(Query)}
        self.components = {name: _tidy(schema, name in answers) for name, schema in components.items()}
        for operation in operations:
            for content in contents_of(operation):
                if isinstance(content.shape, Pydantic):
                    self._add_model(content.shape)
                elif content.name:
                    self.components[content.name] = self._known[repr(content.shape)]

    def of(self, shape: Any) -> Json:
        if isinstance(shape, Pydantic):
            return {"$ref": REF.format(name=shape.name)}
        if isinstance(shape, dict):
            return cast("Json", shape)
        return self._known.get(repr(shape)) or msgspec.json.schema(shape)

    def parameters(self, query: type[Query]) -> Iterator[tuple[str, str, Json, bool]]:
        """Name, place, schema, and whether it must be there."""
        about = self.components[query.__name__]
        for field in fields_of(query):
            schema = about["properties"][field.encode_name]
            header = extra_of(field.type, "header")
            yield header or field.encode_name, "header" if header else "query", schema, field.required

    def _add_model(self, model: Pydantic) -> None:
        schema: Json = model.model.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
        self.components |= schema.pop("$defs", {})
        if model.partial:
            schema = {name: value for name, value in schema.items() if name != "required"}
        self.components[model.name] = schema


def contents_of(operation: Operation) -> list[Content]:
    return [*requests_of(operation), *responses_of(operation)]


def requests_of(operation: Operation) -> Sequence[Content]:
    """The bodies that an operation reads; the one in its signature is JSON."""
    if "body" not in operation.hints:
        return operation.request
    body = operation.hints["body"]
    model = next((one for one in get_args(body) if isinstance(one, Pydantic)), None)
    return (Content(JSON, model or body, operation.example),)


def responses_of(operation: Operation) -> Sequence[Content]:
    return operation.response or ((Content(JSON, operation.answer),) if operation.answer is not type(None) else ())


def _types(operation: Operation) -> Iterator[Any]:
    if operation.query is not None:
        yield operation.query
    yield from (one.shape for one in contents_of(operation) if not isinstance(one.shape, dict | Pydantic))


def _below(shape: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for one in shape.__subclasses__():
        yield one
        yield from _below(one)


def _tidy(schema: Json, no_nulls: bool) -> Json:
    """Remove titles and empty lists, and null where an absent field is left out instead."""
    schema = {name: value for name, value in schema.items() if name != "title"}
    if "properties" in schema:
        schema["properties"] = {name: _plain(one, no_nulls) for name, one in schema["properties"].items()}
    if not schema.get("required", True):
        del schema["required"]
    return schema


def _plain(schema: Json, no_nulls: bool) -> Json:
    if "enum" in schema and all(isinstance(one, str) for one in schema["enum"]):
        return {**schema, "type": "string"}
    if schema.get("default", ...) is not None:
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("default", "anyOf")}
    kinds = [one for one in schema.get("anyOf", ()) if not no_nulls or one != {"type": "null"}]
    if len(kinds) == 1:
        return {**kinds[0], **rest}
    return {**rest, "anyOf": kinds} if kinds else rest


# --- operations -------------------------------------------------------------------------------------------------------


def _described(operation: Operation, shapes: Shapes) -> Json:
    about: Json = {
        "summary": operation.summary,
        "operationId": _id(operation),
        "tags": [operation.group],
        "x-role": operation.role,
        "x-rate": operation.rate,
        "responses": _answers(operation, shapes),
    }
    if says := " ".join(filter(None, [operation.description, ROLES.get(operation.role)])):
        about["description"] = says
    if parameters := list(_parameters(operation, shapes)):
        about["parameters"] = parameters
    if content := _contents(requests_of(operation), shapes):
        about["requestBody"] = {"required": not operation.body_optional, "content": content}
    if operation.role == "anybody":
        about["security"] = []
    return about


def _id(operation: Operation) -> str:
    words = operation.path.removeprefix("/api/v1").replace("{", "").replace("}", "").replace("-", "/").split("/")
    return operation.method.lower() + "".join(word.title().replace(".", "") for word in words if word)


def _contents(contents: Iterable[Content], shapes: Shapes) -> Json:
    """Describe bodies by media type. Those of one media type, as the events of a stream, are joined."""
    found: Json = {}
    for content in contents:
        about = _content(content, shapes)
        before = found.get(content.media_type)
        if before is not None:
            kinds = [one["schema"]["contentSchema"] for one in (before, about)]
            about = {**before, "schema": {**before["schema"], "contentSchema": {"anyOf": kinds}}}
        found[content.media_type] = about
    return found


def _content(content: Content, shapes: Shapes) -> Json:
    schema = {"$ref": REF.format(name=content.name)} if content.name else shapes.of(content.shape)
    example = example_of(schema, shapes.components) if content.example is None else content.example
    if content.media_type == SSE:
        says = "Server-sent events. The data of each is one object, as `contentSchema` describes it."
        schema = {"type": "string", "description": says, "contentMediaType": JSON, "contentSchema": schema}
    return {"schema": schema, "example": example}


def _parameters(operation: Operation, shapes: Shapes) -> Iterator[Json]:
    for name in operation.named:
        yield _parameter(name, "path", msgspec.json.schema(operation.hints[name]), True, shapes)
    if operation.query is not None:
        for name, place, schema, required in shapes.parameters(operation.query):
            yield _parameter(name, place, schema, required, shapes)


def _parameter(name: str, place: str, schema: Json, required: bool, shapes: Shapes) -> Json:
    says, example = schema.get("description", ""), example_of(schema, shapes.components, name)
    plain = {key: value for key, value in schema.items() if key not in ("description", "examples")}
    about = {"name": name, "in": place, "description": says, "schema": plain, "example": example}
    return {**about, "required": True} if required else about


def _answers(operation: Operation, shapes: Shapes) -> Json:
    refused = {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in _refusals(operation)}
    return {**refused, **dict(_said(operation, shapes)), "default": {"$ref": "#/components/responses/Problem"}}


def _said(operation: Operation, shapes: Shapes) -> Iterator[tuple[str, Json]]:
    content = _contents(responses_of(operation), shapes)
    for status, when in operation.answers.items():
        yield str(status), {"description": when, **({"content": content} if content else {})}


def _refusals(operation: Operation) -> Iterable[int]:
    has_body = requests_of(operation)
    own = set(operation.errors)
    own |= {429} if operation.rate != "none" else set()
    if operation.role == "anybody":
        return sorted(own)
    own |= {422} if has_body or operation.query or operation.named else set()
    own |= {403} if operation.role in ROLES else set()
    return sorted({401, 503, *own, *({413} if has_body else ())})


# --- examples ---------------------------------------------------------------------------------------------------------


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
