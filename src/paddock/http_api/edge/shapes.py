"""Requests and answers of the API: base classes, field types, and reading bodies and queries into them.

A shape stands next to the operation that uses it. Reading, refusing, the OpenAPI document and the types of the clients
are made from it, so nothing of it is said anywhere else. The first field that does not fit is refused with a sentence
about it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints, overload

import msgspec
from msgspec import Meta, inspect
from msgspec.structs import replace
from starlette.requests import Request

from paddock.host.conversations.inbox import Accepted as AcceptedRun
from paddock.http_api.edge.requests import read_body
from paddock.rules.errors import invalid
from paddock.rules.run.request_bodies import MAX_DEPTH, nested_too_deep, why_no_json

Json = dict[str, Any]
EPOCH_DAY = date(1970, 1, 1).toordinal()


class Answer(msgspec.Struct, omit_defaults=True, rename="camel"):
    """An object that the API answers with. A field whose default is None is left out when there is nothing to say."""


A = TypeVar("A", bound=Answer)


class Body(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A small JSON object that the API reads. A field that is not declared is refused."""


class Query(msgspec.Struct, rename="camel"):
    """Parameters of the query, and headers that mean something to one operation. Others are passed over."""


def about(
    says: str = "",
    *,
    must: str = "",
    needed: str = "",
    example: Any = None,
    check: Callable[[Any], bool] | None = None,
    header: str = "",
    schema: Json | None = None,
    **limits: Any,
) -> Meta:
    """Describe a field: for people, by an example, by its limits, and in the refusal `<field> must <must>`.

    `needed` is said in place of `must` of a field that is not there. `check` is asked in addition to the type; `header`
    takes a parameter from a header; `schema` says what of JSON Schema the host checks by itself.
    """
    extra = {"must": must, "needed": needed, "check": check, "header": header}
    return Meta(
        description=says or None,
        examples=None if example is None else [example],
        extra={name: value for name, value in extra.items() if value} or None,
        extra_json_schema=schema,
        **limits,
    )


Moment = Annotated[str, about(schema={"format": "date-time"})]
Day = Annotated[str, about(schema={"format": "date"})]
Count = Annotated[int, Meta(ge=0)]
ThreadName = Annotated[
    str, about("The thread: a UUID, or the caller's own name for it.", example="550e8400-e29b-41d4-a716-446655440000")
]
ItemName = Annotated[str, about("The id of the message.", example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab.1")]
LastEventId = Annotated[str, about("The same; it comes before `after`.", header="Last-Event-ID", example="1.7.1")]


class Accepted(Answer):
    """A run that is on record."""

    task_id: str
    thread_id: str
    run_id: str
    created: bool


def accepted(run: AcceptedRun) -> Accepted:
    return Accepted(run.run_id, run.session_id, run.client_run_id, run.created)


def seen(shape: type[A], row: object, **named: Any) -> A:
    """Fill an answer from a value that has the same names, with moments in words; what is given by name comes first."""
    told: Json = {}
    for field, is_moment in _filled(shape):
        value = named[field] if field in named else getattr(row, field)
        told[field] = iso(value) if is_moment and isinstance(value, float | int) else value
    return shape(**told)


@cache
def _filled(shape: type[Answer]) -> tuple[tuple[str, bool], ...]:
    return tuple((one.name, _is_moment(one.type)) for one in msgspec.structs.fields(shape))


def _is_moment(hint: Any) -> bool:
    return hint is Moment or Moment in get_args(hint)


@overload
def iso(seconds: float) -> str: ...
@overload
def iso(seconds: float | None) -> str | None: ...
def iso(seconds: float | None) -> str | None:
    """Write a moment in UTC to the millisecond. Pages hold hundreds of them, so the date is kept."""
    if seconds is None:
        return None
    days, millis = divmod(round(seconds * 1_000_000) // 1000, 86_400_000)
    minutes, millis = divmod(millis, 60_000)
    return f"{_date(days)}T{minutes // 60:02}:{minutes % 60:02}:{millis // 1000:02}.{millis % 1000:03}Z"


@lru_cache(maxsize=1024)
def _date(days: int) -> str:
    return date.fromordinal(EPOCH_DAY + days).isoformat()


# --- reading ----------------------------------------------------------------------------------------------------------


SMALL_BODY = 64 * 1024
"""More than any administrative call needs."""
WHOLE, DECIMAL = re.compile(r"[0-9]{1,18}", re.ASCII), re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+", re.ASCII)

WORDS: Mapping[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "text",
    inspect.ListType: "a list",
}
"""What a value of a type must be."""

S = TypeVar("S", bound=msgspec.Struct)
_AT = " - at `$"
_MISSING = re.compile(r"Object missing required field `(.*?)`")


async def read_object(request: Request, known: Sequence[str]) -> Json:
    """Read a small JSON object. A field that is not known is a slip, and said."""
    body = await read_body(request, SMALL_BODY)
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(f"the body {why_no_json(body, error)}") from error
    if not isinstance(value, dict):
        raise invalid("the body must be a JSON object")
    if nested_too_deep(body, cast("Json", value), MAX_DEPTH):
        raise invalid(f"the body is nested deeper than {MAX_DEPTH} levels")
    given = cast("Json", value)
    for name in given:
        if name not in known:
            raise invalid(f"unknown field {name[:64]!r}{_meant(name, known)}")
    return given


def _meant(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


def read_shape(given: Mapping[str, Any], shape: type[S]) -> S:
    """Raises HostError with the sentence of the first field that does not fit."""
    try:
        read = msgspec.convert(given, shape)
    except msgspec.ValidationError as error:
        raise invalid(_sentence(shape, str(error), given)) from error
    _check(read)
    return read


def _check(read: msgspec.Struct) -> None:
    for field in fields_of(type(read)):
        value, check = getattr(read, field.name), extra_of(field.type, "check")
        if isinstance(value, msgspec.Struct):
            _check(value)
        elif check is not None and value not in (None, msgspec.UNSET) and not check(value):
            raise invalid(_refusal(field))


def read_query(request: Request, shape: type[S]) -> S:
    asked, headers = request.query_params, request.headers
    given: Json = {}
    for field in fields_of(shape):
        header = extra_of(field.type, "header")
        value = headers.get(header) if header else asked.get(field.encode_name)
        if value is not None:
            given[field.encode_name] = _typed(value, field.type)
    return read_shape(given, shape)


def _typed(text: str, kind: inspect.Type) -> str | float | bool:
    """Convert text to a type. Text that does not fit stays text, and is refused later."""
    for one in _plain(kind):
        if isinstance(one, inspect.IntType) and WHOLE.fullmatch(text):
            return int(text)
        if isinstance(one, inspect.FloatType) and len(text) <= 20 and DECIMAL.fullmatch(text):
            return float(text)
        if isinstance(one, inspect.BoolType) and text in ("true", "false"):
            return text == "true"
    return text


@cache
def fields_of(shape: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(shape)
    assert isinstance(info, inspect.StructType)
    hints = get_type_hints(shape)
    return tuple(replace(one, type=_as_written(one.type, hints[one.name])) for one in info.fields)


def _as_written(kind: inspect.Type, hint: Any) -> inspect.Type:
    """Restore the order in which a Literal is written; msgspec sorts it."""
    if isinstance(kind, inspect.LiteralType) and get_origin(hint) is Literal:
        return inspect.LiteralType(get_args(hint))
    if isinstance(kind, inspect.Metadata):
        return replace(kind, type=_as_written(kind.type, hint))
    choice = next((one for one in get_args(hint) if get_origin(one) is Literal), None)
    if isinstance(kind, inspect.UnionType) and choice is not None:
        return inspect.UnionType(tuple(_as_written(one, choice) for one in kind.types))
    return kind


def names_of(shape: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in fields_of(shape)]


def extra_of(kind: inspect.Type, name: str) -> Any:
    """Find what a field's description says under this name, wherever in its type it stands."""
    if isinstance(kind, inspect.Metadata):
        return cast("Json", kind.extra or {}).get(name) or extra_of(kind.type, name)
    within = kind.types if isinstance(kind, inspect.UnionType) else ()
    return next((found for one in within if (found := extra_of(one, name))), None)


def _plain(kind: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        yield from _plain(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _plain(one)
    elif not isinstance(kind, inspect.NoneType):
        yield kind


# --- refusals ---------------------------------------------------------------------------------------------------------


def _sentence(shape: type[msgspec.Struct], error: str, given: Mapping[str, Any]) -> str:
    missing, (_, found, place) = _MISSING.match(error), error.rpartition(_AT)
    path = [part for part in re.split(r"[.\[\]]", place.removesuffix("`") if found else "") if part]
    field = _innermost(shape, [*path, *([missing[1]] if missing else [])])
    if field is None:
        return "the body must be an object"
    if not missing and "unknown field" in error:
        return _unknown(field, path, given)
    return _refusal(field, absent=missing is not None or _value(given, path) in (None, ""))


def _innermost(shape: type[msgspec.Struct], names: Sequence[str]) -> inspect.Field | None:
    fields, found = fields_of(shape), None
    for name in names:
        field = next((one for one in fields if one.encode_name == name), None)
        if field is None:
            break
        found, inner = field, _object_in(field)
        fields = fields_of(inner.cls) if inner is not None else ()
    return found


def _object_in(field: inspect.Field) -> inspect.StructType | None:
    return next((one for one in _plain(field.type) if isinstance(one, inspect.StructType)), None)


def _unknown(field: inspect.Field, path: Sequence[str], given: Mapping[str, Any]) -> str:
    inner = _object_in(field)
    known = [] if inner is None else names_of(inner.cls)
    strange = next(key for key in _value(given, path) if key not in known)
    return f"{field.encode_name} has no {strange[:64]!r}; known are {', '.join(known)}"


def _value(given: Any, path: Sequence[str]) -> Any:
    for part in path:
        given = given[int(part) if isinstance(given, list) else part]
    return given


def _refusal(field: inspect.Field, *, absent: bool = False) -> str:
    """Say what a field must be: in its own words, or from its type."""
    own = extra_of(field.type, "needed") if absent else None
    must = own or extra_of(field.type, "must") or f"be {_in_words(next(_plain(field.type)))}"
    name = extra_of(field.type, "header") or field.encode_name
    return f"{name} {must if must.startswith('may ') else f'must {must}'}"


def _in_words(kind: inspect.Type) -> str:
    match kind:
        case inspect.LiteralType(values=values):
            *others, last = map(str, values)
            return f"{', '.join(others)} or {last}" if others else last
        case inspect.IntType(ge=int(least), le=int(most)):
            return f"a whole number from {least} to {most}"
        case inspect.StrType(max_length=int(most), min_length=least):
            return f"text of {least} to {most} characters" if least else f"text of at most {most} characters"
        case _:
            return WORDS.get(type(kind), "an object")
