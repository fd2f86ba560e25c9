"""The demo model: the same answer every time, by rules a person can predict."""

import json
import time
from typing import Any

import pytest

from paddock.models.demo import DemoModel
from paddock.ports.models import ModelCall
from paddock.rules.errors import HostError
from paddock.tools.builtin import calculate
from paddock_demo.answers import LAST, PACE, answer
from paddock_demo.words import likeness, vector
from paddock_sdk.protocol.messages import LLMTool, Message
from patience import at_most

pytestmark = pytest.mark.anyio

ADD = LLMTool(
    name="add",
    description="Add two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
)
TIME = LLMTool(
    name="current_time",
    description="Tell what time and date it is now in a time zone.",
    parameters={"type": "object", "properties": {"zone": {"type": "string", "default": "UTC"}}},
)
WEATHER = LLMTool(
    name="get_weather",
    description="Weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
CALCULATE = LLMTool(
    name="calculate",
    description="Calculate an arithmetic expression.",
    parameters={"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
)
TOOLS = [ADD, TIME, WEATHER]


def said(*texts: str) -> list[Message]:
    return [Message(role="user", content=text) for text in texts]


def a_call(messages: list[Message], **more: Any) -> ModelCall:
    about: dict[str, Any] = {"tools": (), "extra_args": {}, "workspace_id": "w", "user_id": "u", "run_id": "r"}
    return ModelCall(model_id="demo", messages=messages, deadline_at=1e12, **{**about, **more})


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("add 2 and 3", "add", {"a": 2, "b": 3}),
        ("please add -1.5 to 4", "add", {"a": -1.5, "b": 4}),
        ("what time is it?", "current_time", {}),
        ("what time is it in Asia/Shanghai?", "current_time", {"zone": "Asia/Shanghai"}),
        ("how is the weather in Paris?", "get_weather", {"city": "Paris"}),
        ('weather of "New York", please', "get_weather", {"city": "New York"}),
        ("what time is it in Tokyo?", "current_time", {"zone": "Asia/Tokyo"}),
        ("现在北京几点了？", "current_time", {"zone": "Asia/Shanghai"}),
        ("现在几点", "current_time", {}),
        ("今天几号？", "current_time", {}),
        ('call add {"a": 1, "b": "x"}', "add", {"a": 1, "b": "x"}),
        ("call current_time", "current_time", {}),
    ],
)
def test_a_message_that_speaks_of_a_tool_and_holds_its_arguments_calls_it(
    text: str, name: str, arguments: dict[str, Any]
) -> None:
    (call,) = answer(said(text), TOOLS).tool_calls
    assert (call.name, json.loads(call.arguments)) == (name, arguments)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("what is 2 + 3", "2 + 3"),
        ("What is 2+3?", "2+3"),
        ("2+2=?", "2+2"),
        ("7/2", "7/2"),
        ("how much is (2 + 3) * 4 ?", "(2 + 3) * 4"),
        ("what is 12 plus 30, please", "12 + 30"),
        ("12 divided by 4", "12 / 4"),
        ("what is 6 x 7?", "6 * 7"),
        ("what's 15% of 80", "15 / 100 * 80"),
        ("2加3等于多少？", "2 + 3"),
        ("计算一下 12 乘以 3", "12 * 3"),
        ("I have 3 apples and buy 4 + 5 more", "4 + 5"),
    ],
)
def test_a_sum_is_given_to_a_tool_that_can_calculate(text: str, expression: str) -> None:
    (call,) = answer(said(text), [TIME, CALCULATE]).tool_calls
    assert (call.name, json.loads(call.arguments)) == ("calculate", {"expression": expression})
    assert calculate(expression) is not None
    assert answer(said(text), [TIME, ADD]).tool_calls == ()


@pytest.mark.parametrize(
    "text",
    [
        "see you on 2026-11-16",
        "11/16/2026",
        "call +49 30 1234",
        "pages 3-7 of it",
        "I am 30 and you are 40",
        "either/or",
        "what is my name?",
        "(2 + 3",
        "加油",
    ],
)
def test_dates_numbers_and_ranges_are_no_sums(text: str) -> None:
    assert answer(said(text), [CALCULATE]).tool_calls == ()


@pytest.mark.parametrize("text", ["add 2", "I like trains", "the sum of it all"])
def test_a_tool_whose_arguments_are_not_there_is_not_called(text: str) -> None:
    assert answer(said(text), TOOLS).tool_calls == ()


def test_several_tools_can_be_called_at_once_one_per_line() -> None:
    calls = answer(said('call add {"a": 1, "b": 2}\ncall current_time'), TOOLS).tool_calls
    assert [call.name for call in calls] == ["add", "current_time"]
    assert len({call.call_id for call in calls}) == 2


def test_a_tool_it_was_not_given_is_named_in_the_answer_with_those_it_has() -> None:
    text = answer(said("call launch {}"), TOOLS).content
    assert "launch" in text
    assert "add, current_time, get_weather" in text


def test_the_result_of_a_tool_is_told_and_so_is_its_error() -> None:
    asked = Message.from_wire(
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}},
                {"id": "call_2", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}},
            ],
        }
    )
    results = [
        Message(role="tool", tool_call_id="call_1", content="5"),
        Message(role="tool", tool_call_id="call_2", content='{"error": "no such city"}'),
    ]
    assert answer([*said("add 2 and 3"), asked, *results], TOOLS).content == (
        "add: 5\nget_weather failed: no such city"
    )


@pytest.mark.parametrize(
    ("told", "question", "known"),
    [
        ("My name is Ann.", "what is my name?", "Ann"),
        ("call me Bob", "who am I?", "Bob"),
        ("my name is Ann and my favourite colour is dark blue", "what's my favourite colour?", "dark blue"),
        ("我叫小明", "我叫什么名字？", "小明"),
        ("我的名字是王五。", "你知道我的名字吗？", "王五"),
    ],
)
def test_it_remembers_what_the_messages_say(told: str, question: str, known: str) -> None:
    assert known in answer(said(told, "hello", question), TOOLS).content
    assert known not in answer(said(question), TOOLS).content


def test_the_newest_word_counts_and_a_summary_keeps_what_was_told() -> None:
    summary = answer(said("my name is Ann", "my name is Eve", "summarize the conversation"), []).content
    later = [Message(role="system", content=summary), *said("what is my name?")]
    assert answer(later, []).content == "Your name is Eve."


@pytest.mark.parametrize(
    ("text", "begins"),
    [("hello", "Hello. I am"), ("你好", "你好。我是"), ("help", "I am the demo model:"), ("帮助", "我是演示模型：")],
)
def test_it_greets_and_explains_itself_in_the_language_it_was_asked_in(text: str, begins: str) -> None:
    assert answer(said(text), TOOLS).content.startswith(begins)


def test_the_example_it_gives_has_values_of_the_right_kinds() -> None:
    kinds = {
        "player": {"type": "string"},
        "points": {"type": "integer"},
        "bonus": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "final": {"type": "boolean"},
        "rounds": {"type": "array", "items": {"type": "integer"}},
        "level": {"$ref": "#/$defs/Level"},
    }
    whole = {"type": "object", "properties": kinds, "$defs": {"Level": {"enum": ["easy", "hard"], "type": "string"}}}
    said = answer([Message(role="user", content="help")], [LLMTool(name="score", description="x", parameters=whole)])
    example = json.loads(said.content.partition("For example: call score ")[2])
    assert example == {"player": "...", "points": 1, "bonus": 1, "final": True, "rounds": [1], "level": "easy"}


async def test_a_stream_says_the_same_as_an_answer_and_ends_with_usage() -> None:
    call = a_call(said("I like trains, 也喜欢船"))
    whole = await DemoModel().invoke(call)
    pieces = [piece async for piece in DemoModel().stream(call)]
    assert len(pieces) > 3
    assert "".join(piece.content for piece in pieces) == whole.content
    assert pieces[-1].final
    assert pieces[-1].usage == whole.usage
    assert whole.usage is not None
    assert whole.usage.total_tokens == (whole.usage.prompt_tokens or 0) + (whole.usage.completion_tokens or 0)


async def test_a_pause_that_is_no_small_number_is_refused() -> None:
    with pytest.raises(HostError, match="pause"):
        await DemoModel().invoke(a_call(said("hi"), extra_args={"pause": 100}))


async def test_documents_are_ranked_by_the_words_they_share_with_the_query() -> None:
    documents = ["cats sleep", "a train to Berlin", "the Berlin zoo has cats"]
    ranked = await DemoModel().rerank(a_call([]), "cats in Berlin", documents, 2)
    assert [entry.index for entry in ranked.entries] == [2, 0]
    assert ranked.entries[0].relevance_score == 1.0


def test_texts_that_share_words_are_near_each_other() -> None:
    def near(one: str, other: str) -> float:
        return sum(a * b for a, b in zip(vector(one), vector(other), strict=True))

    assert near("blue train to Berlin", "the blue train") > near("blue train to Berlin", "an apple a day")
    assert near("上海的天气", "上海天气很好") > near("上海的天气", "我喜欢苹果")
    assert near("same", "same") == pytest.approx(1.0)
    assert likeness("", "anything") == 0.0


FOUND = """(Passages that may help; name their source when you use one.)
[1] handbook.md, Handbook > 请假: ## 请假
员工每年有十五天年假，提前一周申请。
[2] handbook.md, Handbook > Travel: Book trains first."""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("年假有几天？", "员工每年有十五天年假，提前一周申请。 (handbook.md, Handbook > 请假)"),
        ("how many days of leave", "员工每年有十五天年假，提前一周申请。 (handbook.md, Handbook > 请假)"),
        ("年假真好", "You said: 年假真好"),
        ("what can you do?", "I am the demo model: fixed rules"),
    ],
)
async def test_a_question_is_answered_with_the_passage_that_was_found_for_it(text: str, told: str) -> None:
    assert answer(said("before", FOUND, text), ()).content.startswith(told)
    assert answer(said(FOUND, "something else", "and this?"), ()).content == "You said: and this?"


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("count to 3", 3),
        ("Please count slowly to 12.", 12),
        ("@assistant count to 3", 3),
        ("数到 5", 5),
        ("请从1数到 5。", 5),
        ("count for ever", LAST),
        ("count to 99999999999", LAST),
        ("count to 0", 1),
    ],
)
def test_it_counts_when_it_is_asked_to_whatever_tools_there_are(text: str, last: int) -> None:
    told = answer(said(text), TOOLS)
    assert (told.content.split(), told.tool_calls) == ([str(number) for number in range(1, last + 1)], ())


@pytest.mark.parametrize("text", ["add 2, then count to 3", "I can count to 3", "count me in", "countless"])
def test_what_only_speaks_of_counting_is_no_order(text: str) -> None:
    assert not answer(said(text), []).content.startswith("1 ")


async def test_it_counts_so_slowly_that_somebody_can_stop_it_unless_it_is_told_a_pace() -> None:
    async def took(**more: Any) -> float:
        begun = time.monotonic()
        words = [piece.content async for piece in DemoModel().stream(a_call(said("count to 4"), **more))]
        assert "".join(words) == "1 2 3 4"
        return time.monotonic() - begun

    assert await took() >= 4 * PACE
    assert await took(extra_args={"pause": 0}) < at_most(4 * PACE)
