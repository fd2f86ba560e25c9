"""Declares an operation of the API once, at its handler: who may call it, what it reads and answers, how it refuses.

    @operation("POST", "/api/v1/api-keys", {201: "The key; it is shown only now."}, role="admin")
    async def create_key(self, who: Principal, body: NewKey) -> Key:
        \"\"\"Make a key\"\"\"

The rest is in the signature. `who` is the caller, `body` and `query` are read into the shapes they are annotated with,
`given` is the body's object as it came, `request` is the request itself, and every other parameter is one of the path.
What is returned is the answer's body; None is an answer without one. The docstring is the summary, and what follows its
first line the description. The routes, the OpenAPI document, the page for people and the types of the clients are made
from this; nothing of it is said anywhere else.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import getdoc
from types import NoneType
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.errors import problem, refusal, storage_refusal, unexpected
from paddock.http_api.edge.requests import has_body, json_response
from paddock.http_api.edge.shapes import Query, names_of, read_object, read_query, read_shape
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError

log = structlog.get_logger(__name__)

Role = Literal["anybody", "user", "admin", "operator"]
"""Who may call. An operator is an administrator who runs the host: what it refuses to others it says itself."""
Rate = Literal["none", "calls", "runs", "streams", "uploads"]
"""Which limits an operation counts against, beside the calls of its caller in a second, which all but `none` do."""

JSON = "application/json"
SSE = "text/event-stream"
PLAIN = ("self", "who", "body", "given", "query", "request", "return")
"""Parameters of handlers that mean something else than a name in the path."""

Handler = Callable[[Request], Awaitable[ASGIApp]]
T = TypeVar("T")
H = TypeVar("H", bound=Callable[..., Awaitable[Any]])


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """An answer with another status than the first one declared."""

    value: T
    status: int


@dataclass(frozen=True, slots=True)
class Content:
    """A body that its handler reads or writes itself: its media type, its shape or JSON schema, and an example."""

    media_type: str
    shape: Any
    example: Any = None
    name: str = ""
    """Under which the shape is known, where it is a union."""


@dataclass(frozen=True, slots=True)
class Pydantic:
    """Annotates an object that the host reads with a Pydantic model of its own."""

    name: str
    model: Any
    known: Sequence[str] = ()
    """The names of its fields on the wire."""
    partial: bool = False
    """Nothing is required: what is left out stays as it is."""


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    name: str
    """Of its handler."""
    group: str
    summary: str
    description: str
    role: Role
    rate: Rate
    answers: Mapping[int, str]
    errors: Sequence[int]
    """Statuses of refusals beside those that follow from the rest."""
    hints: Mapping[str, Any]
    request: Sequence[Content]
    response: Sequence[Content]
    body_optional: bool
    example: Any
    """Of the JSON body; made from its fields where none is given."""
    parameters: type[Query] | None

    @property
    def named(self) -> list[str]:
        """Parameters of the path, as the handler takes them."""
        return [name for name in self.hints if name not in PLAIN]

    @property
    def query(self) -> type[Query] | None:
        return self.parameters or self.hints.get("query")

    @property
    def answer(self) -> Any:
        """The type of the answer's JSON body."""
        said = self.hints["return"]
        return get_args(said)[0] if get_origin(said) is Answered else said


@dataclass(frozen=True, slots=True)
class _Declared:
    method: str
    paths: Sequence[str]
    rest: Mapping[str, Any]


def operation(
    method: str,
    path: str | tuple[str, ...],
    answers: Mapping[int, str],
    *,
    role: Role = "user",
    rate: Rate | None = None,
    errors: Sequence[int] = (),
    request: Sequence[Content] = (),
    response: Sequence[Content] = (),
    example: Any = None,
    parameters: type[Query] | None = None,
) -> Callable[[H], H]:
    """Declare the handler's operation. `answers` says by status when it comes; a plain value has the first one.

    `request`, `response` and `parameters` describe what the handler reads and writes by itself.
    """
    rest = {"role": role, "rate": rate or ("none" if role == "anybody" else "calls"), "answers": answers}
    rest |= {"errors": errors, "request": request, "response": response, "example": example, "parameters": parameters}

    def declare(handler: H) -> H:
        handler.__dict__["declared"] = _Declared(method, (path,) if isinstance(path, str) else path, rest)
        return handler

    return declare


class Door(Protocol):
    """Names its own ways in; the application only joins them."""

    def routes(self) -> Sequence[BaseRoute]: ...


class Operations:
    """A group of operations that belong together, each a method. One that knows its callers has an `auth`."""

    group: ClassVar[str]

    def routes(self) -> Sequence[BaseRoute]:
        return [route(one.method, one.path, OperationCall(self, one)) for one in operations_of(type(self))]


def route(method: str, path: str, handler: Handler) -> Route:
    made = Route(path, Endpoint(handler), methods=[method])
    made.methods = {method}  # no HEAD: asking for the head of a stream would follow the run to its end
    return made


class Endpoint:
    """One handler as an ASGI application: what it returns is sent, what it raises becomes a problem."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._handler(Request(scope, receive))
        except HostError as error:
            answer = refusal(error)
        except StorageUnavailableError:
            log.warning("storage refused", action="http.storage_unavailable", path=scope["path"])
            answer = storage_refusal(scope["method"])
        except ClientDisconnect:
            # nobody reads it
            answer = problem(400, ErrorCode.INVALID_ARGUMENT, "the request ended before its body did")
        except Exception:
            log.exception("a handler failed", action="http.failed", path=scope["path"])
            answer = unexpected()
        await answer(scope, receive, send)


@cache
def operations_of(door: type[Operations]) -> tuple[Operation, ...]:
    return tuple(_declared_in(door))


def _declared_in(door: type[Operations]) -> Iterator[Operation]:
    for name, handler in vars(door).items():
        declared: _Declared | None = getattr(handler, "declared", None)
        if declared is None:
            continue
        whole = get_type_hints(handler, include_extras=True)
        hints = {one: hint if one == "return" else _given(hint) for one, hint in whole.items()}
        summary, _, description = (getdoc(handler) or "").partition("\n")
        for path in declared.paths:
            yield Operation(
                method=declared.method,
                path=path,
                name=name,
                group=door.group,
                summary=summary.removesuffix("."),
                description=" ".join(description.split()),
                hints={one: hint for one, hint in hints.items() if one in PLAIN or f"{{{one}}}" in path},
                body_optional=whole.get("body") != hints.get("body"),
                **declared.rest,
            )


def _given(hint: Any) -> Any:
    kinds = get_args(hint)
    return kinds[0] if kinds[1:] == (NoneType,) else hint


class OperationCall:
    """Calls a handler with what it takes: who calls, and what was sent; and makes an answer of what it returns."""

    def __init__(self, door: Operations, declared: Operation) -> None:
        self.door = door
        self._handler: Callable[..., Awaitable[Any]] = getattr(door, declared.name)
        self._hints = declared.hints
        self._named = declared.named
        self._has_body, self._body_optional = "body" in declared.hints, declared.body_optional
        self._query: type[Query] | None = declared.hints.get("query")
        self._takes_who, self._takes_request = "who" in declared.hints, "request" in declared.hints
        self._status = next(iter(declared.answers))
        self._identify: Callable[[Scope], Awaitable[Principal]] | None = None
        if declared.role != "anybody":
            auth: Auth = vars(door)["auth"]
            self._identify = auth.principal if declared.role == "user" else auth.admin

    async def __call__(self, request: Request) -> ASGIApp:
        taken: dict[str, Any] = {}
        if self._identify is not None:
            who = await self._identify(request.scope)
            if self._takes_who:
                taken["who"] = who
        for name in self._named:
            taken[name] = request.path_params.get(name)
        if self._takes_request:
            taken["request"] = request
        if self._query is not None:
            taken["query"] = read_query(request, self._query)
        if self._has_body and (has_body(request) or not self._body_optional):
            await self._read_body(request, taken)
        said = await self._handler(**taken)
        if type(said) is Answered:
            return json_response(cast("Answered[Any]", said).value, said.status)
        if said is None:
            return Response(status_code=self._status)
        return json_response(cast("Any", said), self._status) if isinstance(said, msgspec.Struct) else said

    async def _read_body(self, request: Request, taken: dict[str, Any]) -> None:
        shape = self._hints["body"]
        model = next((one for one in get_args(shape) if isinstance(one, Pydantic)), None)
        given = await read_object(request, names_of(shape) if model is None else model.known)
        taken["body"] = given if model is not None else read_shape(given, shape)
        if "given" in self._hints:
            taken["given"] = given
