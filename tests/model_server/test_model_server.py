"""The scripted server speaks what the official clients understand; else tests against it would prove nothing."""

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from model_server import ModelServer, Says, model_server

CALLING = Says("Let me see. ", calls=(("add", '{"a": 2, "b": 3}'), ("now", "{}")))
QUESTION: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def openai_of(server: ModelServer) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=server.url, max_retries=0)


def anthropic_of(server: ModelServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=server.url.removesuffix("/v1"), max_retries=0)


def test_chat_completions_whole_and_streamed(server: ModelServer) -> None:
    server.says(CALLING, CALLING)
    whole = openai_of(server).chat.completions.create(model="m", messages=QUESTION)
    assert whole.choices[0].message.content == CALLING.text
    assert [call.function.name for call in whole.choices[0].message.tool_calls or [] if call.type == "function"] == [
        "add",
        "now",
    ]
    with openai_of(server).chat.completions.stream(model="m", messages=QUESTION) as stream:
        final = stream.get_final_completion().choices[0].message
    assert final.content == CALLING.text
    assert [call.function.arguments for call in final.tool_calls or []] == ['{"a": 2, "b": 3}', "{}"]


def test_responses_whole_and_streamed(server: ModelServer) -> None:
    server.says(CALLING, CALLING)
    whole = openai_of(server).responses.create(model="m", input="hi")
    assert whole.output_text == CALLING.text
    with openai_of(server).responses.stream(model="m", input="hi") as stream:
        final = stream.get_final_response()
    assert final.output_text == CALLING.text
    assert [item.name for item in final.output if item.type == "function_call"] == ["add", "now"]


def test_messages_whole_and_streamed(server: ModelServer) -> None:
    server.says(CALLING, CALLING)
    asked: dict[str, Any] = {"model": "claude-x", "max_tokens": 100, "messages": QUESTION}
    whole = anthropic_of(server).messages.create(**asked)
    with anthropic_of(server).messages.stream(**asked) as stream:
        final = stream.get_final_message()
    for message in (whole, final):
        assert [block.text for block in message.content if block.type == "text"] == [CALLING.text]
        assert [block.input for block in message.content if block.type == "tool_use"] == [{"a": 2, "b": 3}, {}]
        assert message.stop_reason == "tool_use"


def test_errors_are_the_clients_own(server: ModelServer) -> None:
    server.says(Says(status=429), Says(status=500), Says(status=429), Says(status=529))
    for expected in (openai.RateLimitError, openai.InternalServerError):
        with pytest.raises(expected):
            openai_of(server).chat.completions.create(model="m", messages=QUESTION)
    for kind in (anthropic.RateLimitError, anthropic.APIStatusError):
        with pytest.raises(kind):
            anthropic_of(server).messages.create(model="claude-x", max_tokens=1, messages=QUESTION)
