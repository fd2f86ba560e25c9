"""Base classes and field types of what the API reads and answers.

A shape stands next to the operation that uses it. Reading, refusing, the OpenAPI document and the types of the clients
are made from it, so nothing of it is said anywhere else.
"""

from collections.abc import Callable
from datetime import date
from functools import cache, lru_cache
from typing import Annotated, Any, TypeVar, get_args, overload

import msgspec
from msgspec import Meta

from paddock.host.conversations.inbox import Accepted as AcceptedRun

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


class Accepted(Answer):
    """A run that is on record."""

    task_id: str
    thread_id: str
    run_id: str
    created: bool


def accepted(run: AcceptedRun) -> Accepted:
    return Accepted(run.task_id, run.thread_id, run.run_id, run.created)


def seen(shape: type[A], row: object, **named: Any) -> A:
    """Fill an answer from a value that has the same names, with moments in words; what is given by name comes first."""
    told: Json = {}
    for field, is_moment in _filled(shape):
        value = named[field] if field in named else getattr(row, field)
        told[field] = iso(value) if is_moment and isinstance(value, float | int) else value
    return shape(**told)


@cache
def _filled(shape: type[Answer]) -> tuple[tuple[str, bool], ...]:
    """The fields of an answer, and whether each is a moment."""
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
