"""Errors are sentences: none that reaches a person or the author of a runner names a class behind it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from http_api.described import DOCUMENT
from http_api.doors import open_doors
from paddock.host.calls.host_calls import read_params
from paddock.rules.errors import HostError
from paddock_sdk import AgentRunner, completed
from paddock_sdk.causes import cause_of
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.testing import pretend_host

pytestmark = pytest.mark.anyio

CLASS = re.compile(
    r"pydantic|msgspec|asyncpg|apsw|httpx|starlette|builtins|<class|Traceback|validation error for|instance of|NoneType"
    r"|\b[A-Z]\w*(Error|Exception|Params|Struct)\b"
)
"""How the name of a class looks, in the words of the libraries we use and in Python's own."""
BODIES = (
    b"",
    b"nul",
    b"[]",
    b"7",
    b'"words"',
    b"{",
    b'{"a": \xff}',
    b"[" * 2_000,
    b'{"a": NaN}',
    b"{}",
)
VALUES: tuple[Any, ...] = (None, 7, -1, 1e308, "", "x" * 300, [], {}, [7], {"a": {}}, True)


def bodies_of(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[Any]:
    """Objects in which one field after the other is wrong."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    schema = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    example = content.get("example") or next(iter(content.get("examples", {}).values()), {}).get("value") or {}
    good = example if isinstance(example, dict) else {}
    for name in schema.get("properties", {}):
        for value in VALUES:
            yield {**good, name: value}


async def test_every_refusal_at_every_door_is_a_sentence() -> None:
    document = DOCUMENT
    schemas, wrong, seen = document["components"]["schemas"], dict[str, str](), 0
    async with open_doors() as doors:
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if method == "get" or path.endswith("/events"):
                    continue
                url = re.sub(r"\{\w+\}", "0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10", path)
                json = {"content-type": "application/json"}
                asked = [{"content": body, "headers": json} for body in BODIES]
                asked += [{"json": body} for body in bodies_of(operation, schemas)]
                for each in asked:
                    answer = await doors.client.request(method.upper(), url, **each)
                    seen += answer.status_code >= 400
                    if answer.status_code >= 400 and (found := CLASS.search(answer.text)):
                        wrong.setdefault(f"{method} {path}: {found[0]}", answer.text[:300])
    assert wrong == {}
    assert seen > 500


def complaint(method: str, params: Any) -> str:
    try:
        read_params(method, params)
    except HostError as error:
        return error.message
    return ""


@pytest.mark.parametrize("method", sorted(HOST_CALLS))
def test_every_host_call_with_wrong_parameters_is_answered_with_a_sentence(method: str) -> None:
    fields = HOST_CALLS[method].params.model_fields
    for name in ("nothing", *fields):
        for value in VALUES:
            text = complaint(method, {name: value})
            assert not CLASS.search(text), text
    for params in (None, 7, "words", []):
        text = complaint(method, params)
        assert text
        assert not CLASS.search(text), text


class Failing(AgentRunner):
    async def run(self, ctx: Any, api: Any) -> Any:
        match ctx.input.text:
            case "silent":
                raise ValueError
            case "key":
                raise KeyError("colour")
            case "late":
                raise TimeoutError
            case "group":
                raise ExceptionGroup("several", [ConnectionResetError()])
            case _:
                raise ValueError("the kettle is empty")
        yield completed()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("silent", "no reason was given"),
        ("key", "the key 'colour' is missing"),
        ("late", "it took too long"),
        ("group", "the connection broke"),
        ("words", "the kettle is empty"),
    ],
)
async def test_a_runner_that_raises_is_reported_in_words(text: str, told: str) -> None:
    async with pretend_host(Failing()) as host:
        results = await host.run(text)
    shown = results.terminal.data.message
    assert told in shown
    assert not CLASS.search(shown)


def test_a_cause_without_words_is_still_a_sentence() -> None:
    for error in (ValueError(), RecursionError(), MemoryError(), OSError(), AssertionError(), StopIteration()):
        assert cause_of(error)
        assert not CLASS.search(cause_of(error))
