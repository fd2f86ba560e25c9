"""Answers of the demo model: a pure function of the messages and the tools it is shown. No clock, no chance.

In this order: tool results it asked for are told; it counts; `call NAME {json}` is obeyed; a summary is given; what the
person said about themselves is remembered; a sum is calculated and a tool that fits is called; a passage that answers
is read out; anything else is answered with what it heard.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from paddock_demo import tools as demo_tools
from paddock_demo.words import count
from paddock_sdk.protocol.messages import LLMTool, Message


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model wants made; `arguments` is JSON text."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Words or tool calls, and the words counted as tokens."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0


PACE = 0.1
"""Seconds before each number."""
LAST = 1000
_COUNTS = re.compile(
    r"\s*+(?:@\S++\s++)?(?:"
    r"(?:please\s++)?count\s++(?:slowly\s++)?(?:to\s++(?P<to>\d{1,20})|for\s*+ever)"
    r"|请?(?:从\s*+1\s*+)?(?:慢慢)?数到\s*+(?P<dao>\d{1,20})"
    r")\s*+[.!。！]?\s*+",
    re.IGNORECASE,
)


def counted(text: str) -> str | None:
    """The numbers that a message asks for, from 1."""
    asked = _COUNTS.fullmatch(text)
    if asked is None:
        return None
    last = int(asked["to"] or asked["dao"] or LAST)
    return " ".join(str(number) for number in range(1, max(1, min(last, LAST)) + 1))


def pace(messages: Sequence[Message]) -> float:
    """Return the default pause before each piece of the answer."""
    last = messages[-1] if messages else None
    return PACE if last is not None and last.role == "user" and _COUNTS.fullmatch(last.text) else 0.0


_QUESTION = re.compile(r"[?？]\s*$|^\s*(?:what|when|where|who|whose|which|how|why)\b|[吗呢]\s*$", re.IGNORECASE)
_PASSAGE = re.compile(r"^\[\d+\] (?P<source>[^\n]+?): (?P<text>.+?)(?=^\[\d+\] |\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)


def read_out(question: str, before: Sequence[Message]) -> str:
    """The first passage and where it is from; nothing for what is no question, or has no passage before it.

    A runner that looks documents up shows them as `[1] SOURCE: TEXT`, the best first, right before the question.
    """
    if not before or before[-1].role not in {"user", "system"} or not _QUESTION.search(question):
        return ""
    found = _PASSAGE.search(before[-1].text)
    text = " ".join(_HEADING.sub("", found["text"]).split()) if found else ""
    return f"{text} ({found['source']})" if found and text else ""


_END = r"(?=[.,;!?。，；！？\n]|\s+and\s+my\s|$)"
_STATED = re.compile(
    rf"\bmy\s+([a-z][a-z ]{{0,40}}?)\s+(?:is|are)\s+([^.,;!?。，；！？\n]{{1,80}}?){_END}", re.IGNORECASE
)
_NAMED = re.compile(r"\b(?:call me|i am called|i'm called)\s+([^\W\d_][\w'-]{0,40})", re.IGNORECASE)
_NAMED_ZH = re.compile(r"我(?:叫|的名字是|的名字叫)\s*([^\s，。！？、,.!?吗么什]{1,12})")
_STATED_ZH = re.compile(r"我的([^\s，。！？、,.!?]{1,8}?)是\s*([^\s，。！？、,.!?吗么什]{1,20})")
_ASKED = re.compile(
    r"\b(?:what(?:'s| is| are| was)|tell me|do you (?:know|remember)|remember)\s+my\s+([a-z][a-z ]{0,40})",
    re.IGNORECASE,
)
_ASKED_ZH = re.compile(
    r"我的?([^\s，。！？、,.!?我]{0,8}?)(?:叫|是)(?:什么|谁)|你(?:知道|记得)我的?([^\s，。！？、,.!?]{1,8})吗"
)


def told(texts: Iterable[str]) -> dict[str, str]:
    """Facts by what they are about, the newest last said: {"name": "Ann", "favourite colour": "blue"}."""
    facts: dict[str, str] = {}
    for text in texts:
        for about, value in _STATED.findall(text):
            facts[_about(about)] = value.strip(" \"'")
        facts |= {_about(about): value for about, value in _STATED_ZH.findall(text)}
        for name in (*_NAMED.findall(text), *_NAMED_ZH.findall(text)):
            facts["name"] = name
    return facts


def asked_for(text: str) -> str | None:
    """Return the fact a question asks for, or None."""
    if found := _ASKED.search(text):
        return _about(re.split(r"(?<!\s)\s+(?:is|are|was)\b", found[1])[0])
    if re.search(r"\bwho am i\b", text, re.IGNORECASE):
        return "name"
    if found := _ASKED_ZH.search(text):
        return _about(found[1] or found[2] or "名字")
    return None


def recall(about: str, facts: Mapping[str, str]) -> str:
    """The answer to such a question."""
    if about in facts:
        return f"Your {about} is {facts[about]}."
    return f"You have not told me your {about} in this conversation."


def _about(words: str) -> str:
    plain = " ".join(words.lower().split())
    return "name" if plain in {"名字", "姓名"} else plain


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


def answer(messages: Sequence[Message], tools: Sequence[LLMTool]) -> Answer:
    """Answer the last message of the user."""
    said = _say(_within_reach(messages), tools)
    prompt = count(message.text for message in messages)
    completion = count([said.content, *(call.arguments for call in said.tool_calls)])
    return replace(said, prompt_tokens=prompt, completion_tokens=completion)


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


def _say(messages: Sequence[Message], tools: Sequence[LLMTool]) -> Answer:
    last = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user"), None)
    if last is None:
        return Answer("I am the demo model. Nobody has said anything yet.")
    after = messages[last + 1 :]
    if any(message.role == "tool" for message in after):
        return Answer(_results(after))
    if numbers := counted(messages[last].text):
        return Answer(numbers)
    told = read_out(messages[last].text, messages[:last])
    return _reply(messages[last], messages, tools, sum(len(one.tool_calls or ()) for one in messages), told)


def _reply(asked: Message, messages: Sequence[Message], tools: Sequence[LLMTool], number: int, passage: str) -> Answer:
    text = asked.text
    if orders := demo_tools.ordered(text):
        return _obey(orders, tools, number)
    facts = told(message.text for message in messages if message.role in {"user", "system"})
    if _SUMMARY.match(text):
        return Answer(_summary(messages, facts))
    if about := asked_for(text):
        return Answer(recall(about, facts))
    if (said := demo_tools.sum_in(text)) and (tool := demo_tools.calculator(tools)):
        return _calls([(tool.name, demo_tools.as_json({demo_tools.PARAMETER: said}))], number)
    if picked := demo_tools.chosen(text, tools):
        return _calls([(picked[0].name, demo_tools.as_json(picked[1]))], number)
    reads_out = passage and not _HELP.match(text)
    return Answer(passage if reads_out else _small_talk(asked, facts, tools))


def _obey(orders: Sequence[tuple[str, str]], tools: Sequence[LLMTool], number: int) -> Answer:
    offered = [tool.name for tool in tools]
    missing = next((name for name, _ in orders if name not in offered), None)
    if missing is not None:
        return Answer(f"I was not given a tool called {missing}. {_offer(tools)}")
    return _calls(orders, number)


def _calls(orders: Sequence[tuple[str, str]], number: int) -> Answer:
    calls = [ToolCall(f"call_{number + at}", name, arguments) for at, (name, arguments) in enumerate(orders, 1)]
    return Answer("", tool_calls=tuple(calls))


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
    if _TELLS.search(text) and (stated := told([text])):
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
