"""Walk every operation that a running host describes of itself, as callers who must get nothing by it.

The operations are read from the host's own OpenAPI document, so a new route is walked without anybody thinking of it.
A path parameter that the walk does not know stops it: say in `tenants.py` how a tenant gets one.
"""

import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

READ_SECONDS = 5.0
READ_BYTES = 1 << 20
SPEAKS_OF = {
    "agent": "agent",
    "agentId": "agent",
    "agent_id": "agent",
    "artifact_id": "attachment",
    "attachmentId": "attachment",
    "item": "item",
    "jobId": "job",
    "kbId": "kb",
    "mentioned_agent_id": "agent",
    "messageId": "item",
    "parentRunId": "run",
    "run": "run",
    "runId": "run",
    "target_agent_id": "agent",
    "threadId": "thread",
    "thread_id": "thread",
    "user": "user",
    "workspace": "workspace",
}
"""Fields of bodies and queries that name something of a tenant's, with the kind of thing."""


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    public: bool
    named: tuple[str, ...]
    """The parameters of its path."""
    asked: tuple[str, ...]
    """The parameters of its query."""
    body: Any
    """An example of its JSON body."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def at(self, ids: Mapping[str, str]) -> str:
        return re.sub(r"{(\w+)}", lambda found: ids[self.kind(found[1])], self.path)

    def kind(self, name: str) -> str:
        """Name the kind of thing that a parameter means here: documents are read by jobs, too."""
        return "reading" if name == "job" and "/knowledge/" in self.path else name


def routes_of(client: httpx.Client) -> list[Route]:
    """Read the host's own description."""
    document = client.get("/api/openapi.json").raise_for_status().json()
    return [
        _route(method.upper(), path, about)
        for path, methods in document["paths"].items()
        for method, about in methods.items()
    ]


def _route(method: str, path: str, about: Mapping[str, Any]) -> Route:
    asked = tuple(one["name"] for one in about.get("parameters", ()) if one["in"] == "query")
    content = about.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("example")
    return Route(method, path, about.get("security") == [], tuple(re.findall(r"{(\w+)}", path)), asked, body)


def requests_of(route: Route, ids: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Every way to name a tenant's things by this route: in the path, in the query, in the body, and all at once."""
    path = route.at(ids)
    fresh = _with(route.body, {"threadId": str(uuid.uuid4()), "runId": uuid.uuid4().hex})
    body = {} if route.body is None else {"json": fresh}
    query = {name: ids[SPEAKS_OF[name]] for name in route.asked if name in SPEAKS_OF}
    yield {"url": path, **body}
    if query:
        yield {"url": path, "params": query, **body}
    if route.body is not None:
        named = {field: ids[kind] for field, kind in SPEAKS_OF.items()}
        yield {"url": path, "params": query, "json": _with(route.body, named)}
        if "files" in json.dumps(route.body) or route.path.endswith("/agents/{agent}"):
            yield {"url": path, "json": {**route.body, "files": [ids["attachment"]]}}


def _with(value: Any, named: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: named[name] if name in named else _with(one, named) for name, one in value.items()}
    return [_with(one, named) for one in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Answer:
    status: int
    head: str
    body: str

    def shows(self, *words: str) -> list[str]:
        return [word for word in words if word in self.head or word in self.body]


def ask(client: httpx.Client, route: Route, request: Mapping[str, Any]) -> Answer:
    """Send one request and read its answer, as far as it comes: a stream that stays open is left after a while."""
    end = time.monotonic() + READ_SECONDS
    status, head, read = 0, "", b""
    try:
        with client.stream(route.method, **request, timeout=READ_SECONDS) as said:
            status, head = said.status_code, str(said.headers)
            for piece in said.iter_raw():
                read += piece
                if len(read) > READ_BYTES or time.monotonic() > end:
                    break
    except httpx.ReadTimeout:
        assert status, f"{route} did not answer within {READ_SECONDS} s"
    return Answer(status, head, read.decode("utf-8", "replace"))


def unknown_names(routes: Sequence[Route], ids: Mapping[str, str]) -> set[str]:
    return {f"{route}: {name}" for route in routes for name in route.named if route.kind(name) not in ids}
