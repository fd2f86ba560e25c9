"""Tool use of the demo model: it finds sums in a message, picks a tool and fills in its parameters. Pure.

What looks like a date, a telephone number or a range is none: a minus or a slash counts where there is space on both
sides of it, or where the message is nothing but the sum.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from paddock_demo.words import telling, words
from paddock_sdk.protocol.messages import LLMTool

PARAMETER = "expression"
"""A tool that requires a text of this name can be asked for a sum."""
LONGEST = 500
"""Longer messages are no sums."""
_WORDS: Sequence[tuple[str, str]] = (
    (r"(?<=[\d)])\s*%\s*(?:of|的)\s*(?=[\d(])", " / 100 * "),
    (r"\b(?:divided by|over)\b|除以|÷", " / "),
    (r"\bplus\b|加上?|＋", " + "),
    (r"\bminus\b|减去?|－", " - "),
    (r"\btimes\b|\bmultiplied by\b|乘以?|×|(?<=\d)\s*[xX]\s*(?=\d)", " * "),
    (r"\bto the power of\b|的?次方|\^", " ** "),
)
_SUMMAND = r"(?:\( ?)*+-?\d++(?:\.\d++)?+(?: ?\))*+"
"""A number with its brackets. Here, as below, there is one way to read any text, so nothing is tried twice."""
_LOOSE = re.compile(rf"{_SUMMAND}(?:(?: ?(?:\*\*|[+*]) ?| (?://|[-/%]) ){_SUMMAND})++")
_TIGHT = re.compile(rf" ?{_SUMMAND}(?: ?(?:\*\*|//|[-+*/%]) ?{_SUMMAND})++ ?")
_BEFORE = re.compile(
    r"^(?:please )?(?:what(?:'s| is)|how much is|calculate|compute|请问|计算(?:一下)?)? ?:? ?", re.IGNORECASE
)
_AFTER = re.compile(r"(?:=|是多少|等于(?:多少|几)?|得多少)? ?[=?？.。!]*$")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{2,4}")


def sum_in(text: str) -> str | None:
    """The sum that a message holds, in digits and signs: `what is 2 plus 3` gives `2 + 3`."""
    if len(text) > LONGEST:
        return None
    said = " ".join(text.split())
    for spoken, sign in _WORDS:
        said = re.sub(spoken, sign, said, flags=re.IGNORECASE)
    said = " ".join(said.split())
    alone = _AFTER.sub("", _BEFORE.sub("", said))
    found = None if _DATE.search(said) else _TIGHT.fullmatch(alone) or _LOOSE.search(said)
    whole = " ".join(found[0].split()) if found else ""
    return whole if whole and whole.count("(") == whole.count(")") else None


def calculator(tools: Sequence[LLMTool]) -> LLMTool | None:
    """The first tool that a sum can be given to."""
    return next((tool for tool in tools if (tool.parameters.get("required") or []) == [PARAMETER]), None)


CALL = re.compile(r"^\s*+call\s++([\w.:/-]++)\s*+(\{.*\})?\s*+$", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])")
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'|“([^”]*)”|「([^」]*)」")
_ZONE = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?\b|\bUTC\b")


_CITIES = {
    **dict.fromkeys(("beijing", "shanghai", "shenzhen", "北京", "上海", "深圳"), "Asia/Shanghai"),
    **dict.fromkeys(("hong kong", "香港"), "Asia/Hong_Kong"),
    **dict.fromkeys(("tokyo", "东京"), "Asia/Tokyo"),
    **dict.fromkeys(("singapore", "新加坡"), "Asia/Singapore"),
    **dict.fromkeys(("london", "伦敦"), "Europe/London"),
    **dict.fromkeys(("paris", "巴黎"), "Europe/Paris"),
    **dict.fromkeys(("berlin", "柏林"), "Europe/Berlin"),
    **dict.fromkeys(("new york", "纽约"), "America/New_York"),
    **dict.fromkeys(("san francisco", "los angeles", "旧金山", "洛杉矶"), "America/Los_Angeles"),
    **dict.fromkeys(("sydney", "悉尼"), "Australia/Sydney"),
    **dict.fromkeys(("delhi", "mumbai", "德里", "孟买"), "Asia/Kolkata"),
}
"""Where people ask for the time of, when they do not know the zone's name."""
_EXAMPLES: Mapping[Any, Any] = {"integer": 1, "number": 1, "boolean": True, "object": {}}
"""What stands for a value of this type; a text is dots."""


def zone_in(text: str) -> str | None:
    """The time zone that a text names, by its own name or by a city's."""
    if named := _ZONE.search(text):
        return named[0]
    heard = text.lower()
    return next((zone for city, zone in _CITIES.items() if city in heard), None)


def ordered(text: str) -> list[tuple[str, str]] | None:
    """Tools a message calls by name, `call NAME {json}`, one per line; None when it is no such message."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = [CALL.match(line) for line in lines] if len(lines) > 1 else [CALL.match(text)]
    if not all(found):
        found = [CALL.match(text)]
    return [(one[1], one[2] or "{}") for one in found if one] or None


def chosen(text: str, tools: Sequence[LLMTool]) -> tuple[LLMTool, dict[str, Any]] | None:
    """The tool that fits best and what to call it with; of equals the first offered."""
    best: tuple[int, LLMTool, dict[str, Any]] | None = None
    said = telling(text)
    for tool in tools:
        score = _fitness(said, tool)
        if score and (best is None or score > best[0]) and (filled := parameters_for(text, tool)) is not None:
            best = (score, tool, filled)
    return (best[1], best[2]) if best else None


def _fitness(said: frozenset[str], tool: LLMTool) -> int:
    named = len(said & telling(tool.name))
    described = len(said & telling(tool.description.split("\n\n")[0]))
    return 3 * named + described if named or described >= 2 else 0


def parameters_for(text: str, tool: LLMTool) -> dict[str, Any] | None:
    """Arguments read from the text, or None when a required one is not there."""
    source = _Source(text, tool.name)
    required: set[str] = set(tool.parameters.get("required") or ())
    properties: Mapping[str, Mapping[str, Any]] = tool.parameters.get("properties") or {}
    filled: dict[str, Any] = {}
    for name, schema in properties.items():
        value = source.value(name, _plain(schema, tool.parameters), needed=name in required)
        if value is not None:
            filled[name] = value
        elif name in required:
            return None
    return filled


def example_for(tool: LLMTool) -> dict[str, Any]:
    """Arguments of the right kinds, for somebody to put their own in."""
    properties: Mapping[str, Mapping[str, Any]] = tool.parameters.get("properties") or {}
    return {name: _example(schema, tool.parameters) for name, schema in properties.items()}


def _example(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Any:
    plain = _plain(schema, whole)
    if options := plain.get("enum"):
        return options[0]
    if plain.get("type") == "array":
        items: Mapping[str, Any] = plain.get("items") or {}
        return [_EXAMPLES.get(_plain(items, whole).get("type"), "...")]
    return _EXAMPLES.get(plain.get("type"), "...")


def _plain(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """A parameter's schema without references and without the "or null"."""
    if reference := schema.get("$ref"):
        shared: Mapping[str, Mapping[str, Any]] = whole.get("$defs") or {}
        return shared.get(str(reference).rsplit("/", 1)[-1], {})
    options = [one for one in schema.get("anyOf") or () if one.get("type") != "null"]
    return _plain(options[0], whole) if options else schema


class _Source:
    """A message, used up as parameters take their values from it."""

    def __init__(self, text: str, tool_name: str) -> None:
        self._text = text
        self._tool_name = tool_name
        self._quoted = ["".join(groups) for groups in _QUOTED.findall(text)]
        self._numbers = _NUMBER.findall(_QUOTED.sub(" ", text))

    def value(self, name: str, schema: Mapping[str, Any], *, needed: bool) -> Any:
        if options := schema.get("enum"):
            return next((one for one in options if str(one).lower() in words(self._text)), None)
        return self._typed(name, schema, needed=needed)

    def _typed(self, name: str, schema: Mapping[str, Any], *, needed: bool) -> Any:
        match schema.get("type"):
            case "integer":
                return int(float(self._numbers.pop(0))) if self._numbers else None
            case "number":
                return _number(self._numbers.pop(0)) if self._numbers else None
            case "array" if needed or self._numbers:
                return self._list(schema.get("items") or {})
            case "boolean":
                return name.lower() in words(self._text) or None
            case "string":
                return self._string(name, needed=needed)
            case _:
                return None

    def _list(self, items: Mapping[str, Any]) -> list[Any] | None:
        if items.get("type") in {"integer", "number"}:
            taken, self._numbers = [_number(one) for one in self._numbers], []
            return [int(one) if items["type"] == "integer" else one for one in taken] or None
        taken, self._quoted = self._quoted, []
        return list(taken) or None

    def _string(self, name: str, *, needed: bool) -> str | None:
        if "zone" in name.lower() and (zone := zone_in(self._text)):
            return zone
        if self._quoted:
            return self._quoted.pop(0)
        if named := re.search(rf"\b{re.escape(name)}(?:\s*+[:=])?\s++([^\s,;]+)", self._text, re.IGNORECASE):
            return named[1].rstrip(".?!")
        if not needed:
            return None
        return self._after_name()

    def _after_name(self) -> str | None:
        """Return the text after the tool's name: "weather in Paris" gives Paris, "search for blue cars" blue cars."""
        last = (words(self._tool_name) or [self._tool_name])[-1]
        linked = rf"\b{re.escape(last)}\w*\s+(?:(?:for|in|of|at|to|about|on|is|the)\s+)*(.+)"
        found = re.search(linked, self._text, re.IGNORECASE | re.DOTALL)
        return found[1].strip().rstrip(".?!") or None if found else None


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def as_json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)
