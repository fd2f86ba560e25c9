"""The descriptions of all rooms as one OpenAPI 3.1 document."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from paddock.http_api.api_description import (
    administration,
    attachments,
    automations,
    calendar,
    knowledge,
    overview,
    platforms,
    runs,
    sessions,
)
from paddock.http_api.api_description.words import COUNT, TEXT, Operation, Schema, shape
from paddock.http_api.edge.errors import STATUS, problem_of
from paddock.rules.errors import ErrorCode

ROOMS = (runs, attachments, sessions, administration, knowledge, automations, calendar, platforms, overview)
OPERATIONS: tuple[Operation, ...] = tuple(one for room in ROOMS for one in room.OPERATIONS)

WHEN = {
    401: "Nobody knows the caller.",
    403: "The caller may not.",
    404: "There is nothing of the caller's under this name.",
    409: "It does not fit what is there.",
    410: "The cursor's place is gone.",
    413: "The body is too large.",
    422: "Something asked for makes no sense; `detail` says what.",
    429: "Too much at once; `Retry-After` says when to try again.",
    503: "The host cannot do this at the moment; `Retry-After` says when to try again.",
    504: "It took too long.",
}
WORDS = {
    401: "this needs an API key: Authorization: Bearer ...",
    403: "only administrators may do this",
    404: "there is no such run",
    409: "runId was used for another request",
    410: "the log before this cursor was trimmed; go on from the snapshot",
    413: "RunAgentInput payload exceeds size limit",
    422: "threadId must be a valid UUID",
    429: "too many requests with this key; wait a moment",
    500: "the host made a mistake; its log has the details",
    503: "the host cannot write to its storage at the moment, so nothing was accepted; try again shortly",
    504: "the search took more than 5 s; ask for rarer words, or less with filters",
}
"""A sentence of each kind, as an example."""
_PROBLEM: Schema = shape(
    {
        "type": TEXT,
        "title": TEXT,
        "status": COUNT,
        "detail": {**TEXT, "description": "A sentence for a person."},
        "code": {"type": "string", "enum": [str(code) for code in ErrorCode]},
    },
    {"reason": {**TEXT, "description": "What exactly is wrong, where the sentence is prescribed."}},
)


@cache
def openapi(version: str) -> Mapping[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Paddock", "version": version, "description": "An agent host."},
        "tags": [{"name": name} for name in dict.fromkeys(one.room for one in OPERATIONS)],
        "security": [{"key": []}, {}],
        "paths": paths,
        "components": {"schemas": _schemas(), "responses": _responses(), "securitySchemes": {"key": _KEY}},
    }


_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key or a signed token. None is needed on loopback while no key exists.",
}


def _schemas() -> dict[str, Any]:
    schemas = {name: schema for room in ROOMS for name, schema in room.SCHEMAS.items()}
    agent = dict(administration.agent_definition())
    schemas |= agent.pop("$defs", {})
    return {**schemas, "AgentShape": agent, "Problem": _PROBLEM}


def _responses() -> dict[str, Any]:
    named = {f"Problem{status}": _problem(status, says, WORDS[status]) for status, says in WHEN.items()}
    return {**named, "Problem": _problem(500, "The host made a mistake; its log has the details.", WORDS[500])}


def _problem(status: int, when: str, detail: str) -> dict[str, Any]:
    code = next(code for code, other in STATUS.items() if other == status)
    example = problem_of(status, code, detail)
    body = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
    return {"description": when, "content": {"application/problem+json": body}}


def _described(operation: Operation) -> dict[str, Any]:
    about: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _id(operation),
        "tags": [operation.room],
        "responses": _answers(operation),
    }
    if operation.says or operation.admin:
        about["description"] = " ".join(
            filter(None, [operation.says, "Administrators only." if operation.admin else ""])
        )
    if operation.parameters:
        about["parameters"] = [parameter.described() for parameter in operation.parameters]
    if operation.body:
        content = {key: value for body in operation.body for key, value in body.content().items()}
        about["requestBody"] = {"required": True, "content": content}
    if operation.public:
        about["security"] = []
    return about


def _id(operation: Operation) -> str:
    words = operation.path.removeprefix("/api/v1").replace("{", "").replace("}", "").replace("-", "/").split("/")
    return operation.method.lower() + "".join(word.title().replace(".", "") for word in words if word)


def _answers(operation: Operation) -> dict[str, Any]:
    said = {
        str(status): {"description": when, **({"content": body.content()} if body is not None else {})}
        for status, (when, body) in operation.answers.items()
    }
    refused = {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in _refusals(operation)}
    return {**refused, **said, "default": {"$ref": "#/components/responses/Problem"}}


def _refusals(operation: Operation) -> Iterable[int]:
    if operation.public:
        return operation.problems
    asked = {422} if operation.body or operation.parameters else set[int]()
    return sorted({401, 503, *operation.problems, *asked, *({403} if operation.admin else ())})
