"""What the demo model answers: a pure function of the messages and the tools it is shown. No clock, no chance.

In this order: tool results it asked for are told; it counts; `call NAME {json}` is obeyed; a summary is given; what the
person said about themselves is remembered; a sum is calculated and a tool that fits is called; a passage that answers
is read out; anything else is answered with what it heard.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from paddock.models import demo_memory, demo_sums, demo_tools
from paddock.models.demo_counting import counted
from paddock.models.demo_passages import read_out
from paddock.models.demo_words import count
from paddock.ports.models import CalledTool, ModelAnswer, Usage
from paddock_sdk.protocol.messages import LLMTool, Message

_SUMMARY = re.compile(
    r"^\s*(?:please\s+)?(?:summari[sz]e|give (?:me )?a summary|compact)\b|^\s*(?:请)?总结", re.IGNORECASE
)
_HELLO = re.compile(r"^\s*(?:hello|hi|hey|good (?:morning|evening|afternoon)|你好|您好)\b", re.IGNORECASE)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
ABOUT = (
    "I am the demo model: fixed rules, no key, no network. I remember what you tell me here. "
    "Say count to 30 to see a stream, and to stop it."
)
ABOUT_CHINESE = (
    "我是演示模型：规则固定，不需要密钥，也不联网。你在这里告诉我的事，我会记住。"
    "说“数到 30”，可以看我逐个回答，也可以随时停止。"
)
_HELP = re.compile(r"^\s*(?:help|what can you do|你能做什么|帮助)\b", re.IGNORECASE)
_TELLS = re.compile(r"\bmy\s+\w|\bcall me\b|我叫|我的", re.IGNORECASE)
SHOWN = 400
"""So much of a message is repeated in an answer."""
READ = 8_000
"""Characters of one message that are understood; what is behind them is counted and not read."""
REMEMBERED = 64_000
"""Characters of a conversation that are understood, the newest first."""


def answer(messages: Sequence[Message], tools: Sequence[LLMTool]) -> ModelAnswer:
    """The whole answer, usage included: words are its tokens."""
    said = _say(_within_reach(messages), tools)
    prompt = count(message.text for message in messages)
    completion = count([said.content, *(call.arguments for call in said.tool_calls)])
    return ModelAnswer(
        content=said.content,
        tool_calls=said.tool_calls,
        finish_reason="tool_calls" if said.tool_calls else "stop",
        usage=Usage(prompt, completion, prompt + completion),
    )


def _within_reach(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages without what is too long ago or too much: it works on the event loop, and people send anything.
    What tools answered is only repeated, so it stays whole."""
    if sum(len(message.text) for message in messages) <= READ:
        return messages
    kept: list[Message] = []
    left = REMEMBERED
    for message in reversed(messages):
        text = message.text
        if message.role != "tool":
            left -= min(len(text), READ)
        if left < 0:
            break
        cut = len(text) > READ and message.role != "tool"
        kept.append(message.model_copy(update={"content": text[:READ]}) if cut else message)
    return kept[::-1]


def used_by(*texts: str) -> Usage:
    """What a question without an answer in words used."""
    asked = count(texts)
    return Usage(asked, 0, asked)


def _say(messages: Sequence[Message], tools: Sequence[LLMTool]) -> ModelAnswer:
    last = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user"), None)
    if last is None:
        return ModelAnswer("I am the demo model. Nobody has said anything yet.")
    after = messages[last + 1 :]
    if any(message.role == "tool" for message in after):
        return ModelAnswer(_results(after))
    if numbers := counted(messages[last].text):
        return ModelAnswer(numbers)
    told = read_out(messages[last].text, messages[:last])
    return _reply(messages[last], messages, tools, sum(len(one.tool_calls or ()) for one in messages), told)


def _reply(
    asked: Message, messages: Sequence[Message], tools: Sequence[LLMTool], number: int, passage: str
) -> ModelAnswer:
    text = asked.text
    if orders := demo_tools.ordered(text):
        return _obey(orders, tools, number)
    facts = demo_memory.told(message.text for message in messages if message.role in {"user", "system"})
    if _SUMMARY.match(text):
        return ModelAnswer(_summary(messages, facts))
    if about := demo_memory.asked_for(text):
        return ModelAnswer(demo_memory.recall(about, facts))
    if (said := demo_sums.sum_in(text)) and (tool := demo_sums.calculator(tools)):
        return _calls([(tool.name, demo_tools.as_json({demo_sums.PARAMETER: said}))], number)
    if picked := demo_tools.chosen(text, tools):
        return _calls([(picked[0].name, demo_tools.as_json(picked[1]))], number)
    reads_out = passage and not _HELP.match(text)
    return ModelAnswer(passage if reads_out else _small_talk(asked, facts, tools))


def _obey(orders: Sequence[tuple[str, str]], tools: Sequence[LLMTool], number: int) -> ModelAnswer:
    offered = [tool.name for tool in tools]
    missing = next((name for name, _ in orders if name not in offered), None)
    if missing is not None:
        return ModelAnswer(f"I was not given a tool called {missing}. {_offer(tools)}")
    return _calls(orders, number)


def _calls(orders: Sequence[tuple[str, str]], number: int) -> ModelAnswer:
    calls = [CalledTool(f"call_{number + at}", name, arguments) for at, (name, arguments) in enumerate(orders, 1)]
    return ModelAnswer("", tool_calls=tuple(calls))


def _results(after: Sequence[Message]) -> str:
    names = {call.id: call.function.name for message in after for call in message.tool_calls or ()}
    lines = [
        _result(names.get(one.tool_call_id or "", one.name or "the tool"), one) for one in after if one.role == "tool"
    ]
    return "\n".join(lines)


def _result(name: str, message: Message) -> str:
    value = _read(message.text)
    if isinstance(value, dict) and [*cast("dict[str, Any]", value)] == ["error"]:
        return f"{name} failed: {value['error']}"
    return f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _summary(messages: Sequence[Message], facts: dict[str, str]) -> str:
    """Facts in words that this model understands when it reads them again, and what was said last."""
    known = " ".join(f"my {about} is {value}." for about, value in facts.items())
    heard = [message.text for message in messages if message.role == "user"][:-1][-5:]
    lines = [f"- {line[:SHOWN]}" for line in heard]
    return "\n".join(["Summary of the conversation.", *([f"The user said: {known}"] if known else []), *lines])


def _small_talk(asked: Message, facts: dict[str, str], tools: Sequence[LLMTool]) -> str:
    text = asked.text.strip()
    name = facts.get("name")
    if _HELP.match(text):
        about = ABOUT_CHINESE if _CHINESE.search(text) else ABOUT
        return f"{about} {_offer(tools)}"
    if _TELLS.search(text) and (stated := demo_memory.told([text])):
        return " ".join(f"I will remember that your {about} is {value}." for about, value in stated.items())
    if _HELLO.match(text) and _CHINESE.search(text):
        return f"你好{f'，{name}' if name else ''}。我是演示模型；说“帮助”可以看看我能做什么。"
    if _HELLO.match(text):
        return f"Hello{f', {name}' if name else ''}. I am the demo model; say help to see what I can do."
    pictures = sum(1 for one in asked.content or () if not isinstance(one, str) and one.type.startswith("image"))
    seen = f" I cannot look at the {'image' if pictures == 1 else f'{pictures} images'} you sent." if pictures else ""
    return f"You said: {text[:SHOWN]}{seen}"


def _offer(tools: Sequence[LLMTool]) -> str:
    if not tools:
        return "I was given no tools."
    example = demo_tools.as_json(demo_tools.example_for(tools[0]))
    return f"I can call: {', '.join(tool.name for tool in tools)}. For example: call {tools[0].name} {example}"
