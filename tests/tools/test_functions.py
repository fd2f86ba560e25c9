"""Python functions as tools: the schema says what the function says, arguments are checked, nothing breaks the host."""

import json
import threading
import time
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import msgspec
import pytest
from pydantic import BaseModel, Field

from paddock.ports.tools import ToolFile, ToolUse
from paddock.tools import builtin, functions
from paddock.tools.catalog import ToolCatalog
from paddock.tools.functions import FunctionTool, FunctionTools, ToolDefinitionError, signature_of
from paddock.tools.loading import load_tools, tools_in

pytestmark = pytest.mark.anyio


def a_use(name: str, deadline_in: float = 30.0, **parameters: Any) -> ToolUse:
    return ToolUse("c1", name, parameters, "w", "u", "a", "s", "r", time.time() + deadline_in)


def offering(*functions: Any, timeout_seconds: float = 10.0) -> FunctionTools:
    tools = [FunctionTool(function, signature_of(function)) for function in functions]
    return FunctionTools(tools, clock=time.time, timeout_seconds=timeout_seconds)


async def said(tools: FunctionTools, name: str, **parameters: Any) -> Any:
    answer = await tools.call(a_use(name, **parameters))
    assert not answer.is_error, answer.content
    return json.loads(answer.content)


async def test_bytes_that_are_no_text_are_a_file_alone_or_among_words() -> None:
    def chart() -> bytes:
        """Draw."""
        return b"\x89PNG\r\n\x1a\n"

    def both() -> list[Any]:
        """Draw and tell."""
        return ["a chart", b"\xff\xd8\xff", {"points": 3}]

    def words() -> bytes:
        """Tell."""
        return b"plain"

    tools = offering(chart, both, words)
    assert (await tools.call(a_use("chart"))).parts == (ToolFile(b"\x89PNG\r\n\x1a\n"),)
    told, drawn, points = (await tools.call(a_use("both"))).parts
    assert (told, drawn) == ({"type": "text", "text": "a chart"}, ToolFile(b"\xff\xd8\xff"))
    assert points == {"type": "text", "text": '{"points":3}'}
    assert await said(tools, "words") == "plain"


async def error_of(tools: FunctionTools, name: str, **parameters: Any) -> str:
    answer = await tools.call(a_use(name, **parameters))
    assert answer.is_error
    return json.loads(answer.content)["error"]


class Place(BaseModel):
    city: str
    floor: int = 0


def book(
    day: date,
    kind: Literal["desk", "room"],
    place: Place,
    seats: Annotated[int, Field(ge=1, description="How many people come.")] = 1,
    json: str | None = None,
) -> dict[str, Any]:
    """Book a desk or a room.

    Longer words about it.

    Args:
        day: The day, like 2026-01-31.
        kind: What to book.
    """
    return {"day": day, "kind": kind, "city": place.city, "seats": seats, "note": json}


def test_the_schema_is_made_of_annotations_and_docstring() -> None:
    info = signature_of(book).info
    assert info.description == "Book a desk or a room.\n\nLonger words about it."
    properties = info.parameters["properties"]
    assert list(properties) == ["day", "kind", "place", "seats", "json"]
    assert properties["day"] == {"description": "The day, like 2026-01-31.", "format": "date", "type": "string"}
    assert properties["kind"]["enum"] == ["desk", "room"]
    assert properties["seats"]["description"] == "How many people come."
    assert info.parameters["required"] == ["day", "kind", "place"]
    assert "title" not in str(info.parameters)


async def test_arguments_arrive_in_their_types_and_the_result_goes_out_as_json() -> None:
    result = await said(offering(book), "book", day="2026-01-31", kind="room", place={"city": "Bonn"}, json="n")
    assert result == {"day": "2026-01-31", "kind": "room", "city": "Bonn", "seats": 1, "note": "n"}


async def test_numbers_that_json_does_not_have_are_said_in_words() -> None:
    def mean(values: list[float]) -> dict[str, float]:
        """The mean."""
        return {"mean": sum(values) / len(values) if values else float("nan"), "most": float("inf"), "many": 2**70}

    answer = await offering(mean).call(a_use("mean", values=[]))
    assert msgspec.json.decode(answer.content) == {"mean": "NaN", "most": "Infinity", "many": 2**70}


async def test_wrong_arguments_are_refused_before_the_call_in_words_for_the_model() -> None:
    called: list[str] = []

    def note(text: str) -> None:
        """Write a note."""
        called.append(text)

    tools = offering(note)
    assert "text: Field required" in await error_of(tools, "note")
    assert "It takes: text." in await error_of(tools, "note", text="a", colour="red")
    assert called == []


async def test_whatever_a_tool_raises_is_an_answer() -> None:
    def divide(a: float, b: float) -> float:
        """Divide."""
        return a / b

    async def leave() -> None:
        """Leave."""
        raise SystemExit(3)

    def secretive() -> Any:
        """Give something odd."""
        return object()

    tools = offering(divide, leave, secretive)
    assert await error_of(tools, "divide", a=1, b=0) == "divide failed: float division by zero"
    assert "tried to end the program" in await error_of(tools, "leave")
    assert "cannot be said in JSON" in await error_of(tools, "secretive")


async def test_a_function_whose_turn_does_not_come_is_said_not_to_have_been_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(functions, "MAX_AT_ONCE", 1)
    calls = list[str]()

    async def hold(who: str) -> None:
        """Stay."""
        calls.append(who)
        await anyio.sleep_forever()

    tools = offering(hold)
    async with anyio.create_task_group() as group:
        group.start_soon(tools.call, a_use("hold", who="first"))
        await anyio.wait_all_tasks_blocked()
        answer = await tools.call(a_use("hold", deadline_in=0.2, who="second"))
        assert (answer.is_error, answer.unknown, calls) == (True, False, ["first"])
        assert b"was not called" in answer.content
        group.cancel_scope.cancel()


async def test_a_function_that_takes_too_long_is_left_behind_and_its_outcome_said_to_be_unknown() -> None:
    go = threading.Event()

    def wait() -> str:
        """Wait."""
        go.wait(30)
        return "done"

    async def wait_too() -> None:
        """Wait too."""
        await anyio.sleep_forever()

    tools = offering(wait, wait_too, timeout_seconds=0.05)
    try:
        for name in ("wait", "wait_too"):
            answer = await tools.call(a_use(name))
            assert answer.is_error
            assert answer.unknown
            assert b"not known" in answer.content
        past = await offering(wait).call(a_use("wait", deadline_in=-1))
        assert past.is_error
    finally:
        go.set()


async def test_calls_go_side_by_side() -> None:
    both = threading.Barrier(2, timeout=30)

    def meet() -> str:
        """Meet the other call."""
        both.wait()
        return "met"

    tools, results = offering(meet), list[Any]()

    async def once() -> None:
        results.append(await said(tools, "meet"))

    async with anyio.create_task_group() as group:
        group.start_soon(once)
        group.start_soon(once)
    assert results == ["met", "met"]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("def f(x): 'Do.'", "the parameter 'x' has no type; write for example x: str"),
        ("def f(x: int): pass", "has no docstring"),
        ("def f(*args: int): 'Do.'", "a tool's parameters are named"),
        ("def f(x: 'Nothing'): 'Do.'", "an annotation cannot be read"),
        ("x = 1", "defines no public function"),
        ("__all__ = ['g']\ndef f(): 'Do.'", "'g' in __all__ is no function"),
        ("import no_such_module", "cannot be imported: ModuleNotFoundError: No module named"),
        ("raise SystemExit(1)", "cannot be imported: SystemExit"),
        ("def f(", "cannot be imported: SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_a_sentence(tmp_path: Path, code: str, sentence: str) -> None:
    path = tmp_path / "my_tools.py"
    path.write_text(code)
    with pytest.raises(ToolDefinitionError) as refused:
        load_tools([str(path)])
    assert sentence in str(refused.value)
    assert "my_tools.py" in str(refused.value)


def test_tools_come_from_files_and_modules_and_have_names_of_their_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("from json import dumps\ndef hello(name: str) -> str:\n    'Greet.'\ndef _own(): 'No.'\n")
    two.write_text("def hello() -> str:\n    'Greet too.'\n")
    tools = load_tools([str(one), "paddock.tools.builtin"])
    assert [tool.info.name for tool in tools] == ["hello", "calculate", "current_time"]
    with pytest.raises(ToolDefinitionError, match="there is a tool 'hello' in"):
        load_tools([str(one), str(two)])
    with pytest.raises(ToolDefinitionError, match="no such file"):
        load_tools([str(tmp_path / "three.py")])


async def test_the_built_in_tools_do_what_they_say() -> None:
    tools = FunctionTools(tools_in(builtin, "paddock"), clock=time.time)
    assert await said(tools, "calculate", expression="(2 + 3) * 4 ** 2 - 7 // 2") == 77
    assert "only numbers" in await error_of(tools, "calculate", expression="__import__('os')")
    assert "exponent" in await error_of(tools, "calculate", expression="9 ** 9 ** 9")
    now = await said(tools, "current_time", zone="Asia/Shanghai")
    assert now["time"].endswith("+08:00")
    assert "IANA" in await error_of(tools, "current_time", zone="Mars/Base")
    assert all(info.read_only for info in tools.list("w"))


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("(10 ** 300) ** 300", "at most some 4000 digits"),
        ("((9 ** 1000) ** 999) % ((7 ** 999) ** 500)", "at most some 4000 digits"),
        ("*".join(["9 ** 900"] * 30), "at most some 4000 digits"),
        ("(-8) ** 0.5", "a root of a negative number"),
        ("0.1 ** -1000", "the result is too large"),
        ("1 // 0", "nothing can be divided by zero"),
    ],
)
async def test_what_cannot_be_calculated_is_refused_with_a_sentence_of_ours(expression: str, says: str) -> None:
    tools = FunctionTools(tools_in(builtin, "paddock"), clock=time.time)
    assert says in await error_of(tools, "calculate", expression=expression)


@pytest.mark.parametrize("zone", ["Europe", "x" * 10_000, "localtime", "Factory", "", "UTC\0", "../UTC"])
async def test_what_is_no_time_zone_tells_nothing_of_this_machine(zone: str) -> None:
    tools = FunctionTools(tools_in(builtin, "paddock"), clock=time.time)
    told = await error_of(tools, "current_time", zone=zone)
    assert told == f"current_time failed: there is no time zone {zone[:100]!r}; use an IANA name such as Europe/Berlin"


async def test_of_two_tools_with_one_name_the_earlier_source_wins_and_a_broken_source_is_an_answer() -> None:
    def first() -> str:
        """One."""
        return "one"

    def other() -> str:
        """Two."""
        return "two"

    other.__name__ = "first"
    catalog = ToolCatalog([offering(first), offering(other)])
    assert [info.description for info in catalog.list("w")] == ["One."]
    assert json.loads((await catalog.call(a_use("first"))).content) == "one"
    assert (await catalog.call(a_use("gone"))).is_error


async def test_the_tool_in_the_guide_works_and_is_refused_as_the_guide_says(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "tools.md").read_text()
    path = tmp_path / "my_tools.py"
    path.write_text(guide.partition("```python\n")[2].partition("```")[0])
    tools = FunctionTools(load_tools([str(path)]), clock=time.time)
    assert await said(tools, "convert", amount=10, to="km") == 16.09
    refused = await error_of(tools, "convert", amount=10, to="feet")
    assert refused in " ".join(guide.split())
    assert [info.read_only for info in tools.list("w")] == [True]
