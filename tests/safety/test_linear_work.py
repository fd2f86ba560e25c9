"""Nothing that strangers write makes the event loop work more than its length: what they hand in, at its worst, is
measured at one length and at four times that length, and every regular expression of the source is attacked."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

import pytest
from starlette.requests import Request

from paddock.host.automation.calendar_export import as_ics
from paddock.host.runs import stored_results as titles
from paddock.http_api.edge.requests import read_body
from paddock.http_api.edge.tokens import TokenRules, Tokens
from paddock.knowledge.formats import sections_of
from paddock.rules.agents import config as agent_config
from paddock.rules.agents.addresses import without_secrets
from paddock.rules.content_types import HEAD_BYTES, content_type
from paddock.rules.platforms.deliveries import split
from paddock.rules.rows import rows as naming
from paddock.rules.rows.automation import CalendarEventRow
from paddock.rules.run.request_bodies import decode_object, holds_more_values
from paddock.rules.schedule import schedule
from paddock.rules.schedule.calendar import CalendarEvent, to_body
from paddock.rules.schedule.schedule import Schedule
from paddock.rules.search.passages import Section, chunks_of
from paddock.rules.search.queries import MAX_QUERY, snippet, thread_phrases
from paddock.rules.search.tokens import contains_all, phrases_of, tokens_of
from paddock.rules.ui_schema.compile_budget import DEFAULT
from paddock.rules.ui_schema.compiler import compile_hints
from paddock.runners.wire import frames
from paddock.tools import builtin, mcp_transports
from paddock_demo import answers, tools
from paddock_sdk.protocol.manifest import DynamicFormItemSchema
from paddock_sdk.protocol.messages import LLMTool, Message
from safety.growth import Case, in_a_child, problem_of
from safety.patterns import LONG, Found, every_pattern, worst_of

BODY = 256 * 1024
"""Characters of the longest message that a door takes."""
FRAME = 4 * 1024 * 1024
"""Bytes of the longest line that a runner may say."""
QUESTION = 1_200_000
"""Characters of what a runner asks a model."""
ZONE = ZoneInfo("America/New_York")
START = 1_795_000_000.0
A_TOOL = LLMTool(
    name="find_note",
    description="Find a note by its title",
    parameters={"properties": {"title": {"type": "string"}, "much": {"type": "string"}}, "required": ["title", "much"]},
)


def ask_demo(text: str) -> object:
    return answers.answer([Message(role="user", content=text)], [A_TOOL] * 20)


def read_pieces(pieces: list[bytes]) -> object:
    """As a client sends them that dawdles: the host is handed each by itself."""
    left = iter(pieces)

    async def receive() -> dict[str, object]:
        piece = next(left, None)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    scope = {"type": "http", "headers": [], "method": "POST", "path": "/"}
    return asyncio.run(read_body(Request(scope, receive), 2 * FRAME, "too long"))


def read_token(token: bytes) -> object:
    return asyncio.run(Tokens(TokenRules(), secret=b"x" * 40).principal(token))


def read_events(pieces: list[bytes]) -> object:
    """As they come of an MCP server, on their way to the library that reads them."""

    async def received() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def read() -> int:
        return sum([len(piece) async for piece in mcp_transports.events_in(received())])

    return asyncio.run(read())


def follow(text: str) -> object:
    rule = Schedule("rrule", text, START)
    schedule.check(rule, ZONE)
    later = START + 300.5 * 86_400
    return schedule.next_tick(rule, ZONE, START + 3650 * 86_400), schedule.due(rule, ZONE, START, later, "skip")


def a_calendar(events: int, text: str, **more: Any) -> list[CalendarEventRow]:
    """As many events as are told, each with as much text as one may have, in every zone there is."""
    zones = sorted(available_timezones())
    first = {"start": "2026-11-18T10:00:00", "end": "2026-11-18T11:00:00"}
    rows: list[CalendarEventRow] = []
    for number in range(events):
        event = CalendarEvent(
            text[:200], zones[number % len(zones)], **first, location=text[:300], description=text, **more
        )
        rows.append(CalendarEventRow(f"e{number}", "w", "u", to_body(event), bool(event.rrule), 1.0, None, 1.0, 1.0))
    return rows


def of(text: str) -> Case:
    """A schedule has at most 500 characters, so it is its meaning that could grow: how far its ticks are apart."""
    return Case(lambda _: text, follow, most=4)


def nested(depth: int) -> object:
    node: object = {"type": "text", "text": "x"}
    for _ in range(depth):
        node = {"type": "stack", "children": [node]}
    return [node]


FORM = [
    DynamicFormItemSchema.model_validate(
        {"id": f"f{i}", "name": f"field{i}", "type": "string", "label": {"en_US": "x"}}
    )
    for i in range(20)
]
HOURS, MINUTES = ",".join(map(str, range(24))), ",".join(map(str, range(60)))
DAYS = ",".join(map(str, range(1, 90)))
CASES: dict[str, Case] = {
    "content_type: comments": Case(lambda n: b"<!---->" * (n // 7) + b"x", content_type, HEAD_BYTES),
    "content_type: comments that do not end": Case(lambda n: b"<!--" * (n // 4), content_type, HEAD_BYTES),
    "content_type: documents": Case(lambda n: b"<!doctype svg>" * (n // 14), content_type, HEAD_BYTES),
    "content_type: space": Case(lambda n: b"<?xml " + b" " * n, content_type, HEAD_BYTES),
    "tokens: heaps of accents": Case(lambda n: "a" + "\u0301" * (n // 2) + "\u0323" * (n // 2), tokens_of, BODY // 2),
    "tokens: accents by turns": Case(lambda n: "a" + "\u0301\u0323" * (n // 2), tokens_of, BODY // 2),
    "tokens: letters with accents": Case(lambda n: "e\u0301\u0323" * (n // 3), tokens_of, 60_000),
    "tokens: a long word": Case(lambda n: "a" * n, tokens_of, BODY),
    "search: the same word again": Case(
        lambda n: "ab " * (n // 3), lambda t: contains_all(t, phrases_of("ab ba")), BODY
    ),
    "search: what nearly stands there": Case(
        lambda n: "中" * n, lambda t: contains_all(t, phrases_of("中" * 900 + "国")), 20_000
    ),
    "search: what is shown": Case(lambda n: "a " * (n // 2), lambda t: snippet(t, thread_phrases("a " * 100)), 60_000),
    "search: a query": Case(lambda n: "\u0301" * n, thread_phrases, MAX_QUERY),
    "knowledge: a heading of signs": Case(
        lambda n: ("# " + "#" * (n // 2) + " " * (n // 2) + "x").encode(),
        lambda c: list(sections_of("text/markdown", c)),
        200_000,
    ),
    "knowledge: a heading of space": Case(
        lambda n: b"# a" + b" " * n + b"x", lambda c: list(sections_of("text/markdown", c)), 200_000
    ),
    "knowledge: many headings": Case(
        lambda n: b"# a\n## b\n" * (n // 9), lambda c: list(sections_of("text/markdown", c)), 100_000, seconds=0.3
    ),
    "split: heaps of accents": Case(lambda n: "a" + "\u0301" * n, lambda t: split(t, 4000), BODY),
    "split: letters of two bytes": Case(lambda n: "é" * n, lambda t: split(t, 4000, "bytes"), BODY),
    "split: space": Case(lambda n: " \n" * (n // 2), lambda t: split(t, 4000), BODY),
    "config: settings nobody knows": Case(
        lambda n: {f"fiel{i}d": 1 for i in range(n // 10)}, lambda c: agent_config.problems(c, FORM), BODY
    ),
    "config: a long name": Case(lambda n: {"field" * (n // 5): 1}, lambda c: agent_config.problems(c, FORM), BODY),
    "config: many values": Case(
        lambda n: {"a": ["secret:env:A"] * (n // 15)}, lambda c: agent_config.masked(c, FORM), BODY
    ),
    "names: how a conversation begins": Case(lambda n: "a " * (n // 2), naming.shortened, FRAME),
    "names: a suggested title": Case(lambda n: {"payload": {"title": "\x00" * n}}, titles.title_in, FRAME),
    "cards: hidden characters": Case(
        lambda n: [{"type": "text", "content": "\u200b" * n, "text": "\u200b" * n}], compile_hints, FRAME
    ),
    "cards: many parts": Case(
        lambda n: [{"type": "table", "rows": [["\u200b" * 100] * 10] * (n // 1000)}] * 50, compile_hints, FRAME // 8
    ),
    "cards: one in the other": Case(lambda n: nested(n // 40), compile_hints, 20_000),
    "json: nested": Case(lambda n: b'{"a":' + b"[" * n, lambda b: decode_object(b, "body"), BODY),
    "json: digits": Case(lambda n: b'{"a":' + b"9" * n + b"}", lambda b: decode_object(b, "body"), BODY),
    "json: a fraction": Case(lambda n: b'{"a":0.' + b"9" * n + b"}", lambda b: decode_object(b, "body"), BODY),
    "bodies: very many pieces": Case(lambda n: [b"x" * 64] * (n // 64), read_pieces, 4 * 1024 * 1024, seconds=1.0),
    "json: values that are counted": Case(
        lambda n: b'{"a":["' + b'\\"' * (n // 2), lambda b: holds_more_values(b, 1), 4 * FRAME
    ),
    "json: commas in a text": Case(
        lambda n: b'{"a":"' + b"," * n + b'"}', lambda b: holds_more_values(b, 1_000), 2 * FRAME
    ),
    "json: texts that are counted": Case(
        lambda n: b'""' * (n // 2) + b"," * 10, lambda b: holds_more_values(b, 5), FRAME
    ),
    "json: keys": Case(
        lambda n: b"{" + b",".join(b'"k%d":1' % i for i in range(n // 10)) + b"}",
        lambda b: decode_object(b, "body"),
        BODY,
    ),
    "calculate: powers of powers": Case(
        lambda n: "%".join(["(9**1000)**999", "(7**999)**500"] * (n // 30 + 1))[:n], builtin.calculate, 500
    ),
    "calculate: factors": Case(lambda n: "*".join(["9**900"] * (n // 7)), builtin.calculate, 500),
    "frames: half characters": Case(
        lambda n: b'{"method":"run_result","params":{"a":"' + b"\\ud800" * (n // 6), frames.decode, FRAME
    ),
    "frames: half a character and escapes": Case(
        lambda n: b'{"id":1,"method":"m","params":{"a":"\\ud800' + b"\\n" * (n // 2) + b'"}}', frames.decode, FRAME
    ),
    "frames: half characters behind escapes": Case(
        lambda n: b'{"id":1,"method":"m","params":{"a":"' + b"\\\\" * (n // 2) + b'\\ud800"}}', frames.decode, FRAME
    ),
    "frames: lists in lists": Case(
        lambda n: b'{"id":1,"method":"m","params":[' + b",".join([b"[" * 50 + b"]" * 50] * (n // 101)) + b"]}",
        frames.decode,
        FRAME,
    ),
    "frames: numbers": Case(lambda n: b'{"id":1,"method":"m","params":[' + b"1," * (n // 2), frames.decode, FRAME),
    "frames: names of runs": Case(lambda n: b'{"' + b'"run_id" : "' * (n // 12), frames.decode, FRAME),
    "frames: space": Case(lambda n: b'{"method":"run_result" "run_id"' + b" " * n, frames.decode, FRAME),
    "frames: brackets": Case(lambda n: b"{" + b"[]" * (n // 2), frames.decode, FRAME),
    "knowledge: passages of one word": Case(lambda n: [Section("a" * n)], chunks_of, BODY),
    "knowledge: passages of space": Case(lambda n: [Section("\n " * (n // 2))], chunks_of, BODY),
    "content_type: bytes of nothing": Case(lambda n: b"\x00" * n, content_type, HEAD_BYTES),
    "content_type: archives": Case(lambda n: b"PK\x03\x04\x00" * (n // 5), content_type, HEAD_BYTES),
    "addresses: accents": Case(lambda n: "https://" + "\u0301\u0323" * (n // 2), urlsplit, DEFAULT.url_chars),
    "errors without secrets": Case(lambda n: "/" * n + "@" * n, without_secrets, 200_000),
    "demo: words": Case(lambda n: "word " * (n // 5), ask_demo, QUESTION),
    "demo: one word": Case(lambda n: "a" * n, ask_demo, QUESTION),
    "demo: space": Case(lambda n: "title" + " " * n, ask_demo, QUESTION),
    "demo: a count": Case(lambda n: "count to 1" + " " * n + "x", ask_demo, QUESTION),
    "demo: a call": Case(lambda n: "call a" + " " * n + "x", ask_demo, QUESTION),
    "demo: braces": Case(lambda n: "call a {" + "} " * (n // 2) + "x", ask_demo, QUESTION),
    "demo: what is told": Case(lambda n: "my a is my a is " * (n // 16), ask_demo, QUESTION),
    "demo: quotes": Case(lambda n: "find note '" + '"' * n, ask_demo, QUESTION),
    "demo: a tool's parameter": Case(lambda n: "find note title" + " =" * (n // 2), ask_demo, QUESTION),
    "demo: brackets": Case(lambda n: "(" * n, tools.sum_in, tools.LONGEST),
    "demo: a sum": Case(lambda n: "1 + " * (n // 4) + "x", tools.sum_in, tools.LONGEST),
    "demo: a sum of space": Case(lambda n: "%\u3000" * (n // 2), tools.sum_in, tools.LONGEST),
    "demo: tools called by name": Case(lambda n: "call a\n" * (n // 7) + "x", tools.ordered, answers.READ),
    "rrule: a day that never comes, by the year": of("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
    "rrule: a day that never comes, by the month": of("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30"),
    "rrule: a place that is never reached": of("FREQ=MONTHLY;BYSETPOS=300;BYDAY=MO"),
    "rrule: years that never leap": of("FREQ=YEARLY;BYYEARDAY=366;INTERVAL=4"),
    "rrule: every minute of half a day": of("FREQ=MINUTELY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11"),
    "rrule: every hour of a season": of(f"FREQ=YEARLY;BYYEARDAY={DAYS};BYHOUR={HOURS}"),
    "rrule: every minute of a year": of(f"FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR={HOURS};BYMINUTE={MINUTES}"),
    "rrule: days far apart": of("FREQ=DAILY;INTERVAL=365;BYMONTH=2"),
    "ics: texts of signs": Case(lambda n: a_calendar(n, ';,\\\n\r"' * 666), as_ics, 100, seconds=3.0),
    "ics: letters of many bytes": Case(lambda n: a_calendar(n, "\U0001f468\u200d" * 2000), as_ics, 100, seconds=3.0),
    "ics: lines that look like others": Case(
        lambda n: a_calendar(n, "\r\nEND:VEVENT\r\nBEGIN:VALARM" * 130), as_ics, 100, seconds=3.0
    ),
    "ics: rules without end": Case(
        lambda n: a_calendar(n, "x", rrule=f"FREQ=YEARLY;BYYEARDAY={DAYS};BYHOUR={HOURS}"), as_ics, 100, seconds=3.0
    ),
    "tokens: a header": Case(lambda n: b".".join([b"eyJhbGciOiJIUzI1NiJ9" * (n // 20)] * 3), read_token, 16 * 1024),
    "tokens: a body": Case(lambda n: b"eyJhbGciOiJIUzI1NiJ9." + b"W1tb" * (n // 4) + b".AAAA", read_token, 16 * 1024),
    "mcp: events": Case(lambda n: [b"data: " + b'{"a":[' * (n // 6), b"\n\n"], read_events, 4 * FRAME, seconds=3.0),
    "mcp: events of lines": Case(lambda n: [b"\n:" * (n // 2)], read_events, 4 * FRAME, seconds=3.0),
    "mcp: events in drops": Case(lambda n: [b'"\\'] * (n // 2), read_events, FRAME // 16, seconds=3.0),
    "cron: a rare day": Case(
        lambda _: "59 23 29 2 0#5", lambda t: schedule.check(Schedule("cron", t, START), ZONE), most=4
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_work_grows_no_faster_than_what_strangers_write(name: str) -> None:
    assert problem_of(CASES[name]) is None


# --- regular expressions ----------------------------------------------------------------------------------------------

SHORT = {
    "paddock_demo.tools:_LOOSE": tools.LONGEST,
    "paddock_demo.tools:_TIGHT": tools.LONGEST,
    "paddock_demo.tools:_AFTER": tools.LONGEST,
    "paddock_demo.answers:_STATED": answers.READ,
}
"""Patterns that only ever see texts of at most so many characters."""
ONLY = {
    "paddock.rules.access.explain:_FILLED": ("fullmatch",),
    "paddock.settings.kinds:operator_name": ("fullmatch",),
}
"""How patterns are used where their module does not say it beside their name."""
PUT_TOGETHER = {
    "paddock_demo.tools:sum_in": "demo: a sum",
    "paddock_demo.tools:_Source._string": "demo: a tool's parameter",
    "paddock_demo.tools:_Source._after_name": "demo: one word",
    "paddock.rules.search.queries:_pattern": "search: what is shown",
}
"""Patterns that are made from what is known only then, each with the case above that attacks it."""
PATTERNS = list(every_pattern())


def test_patterns_that_are_put_together_at_work_are_attacked_by_name() -> None:
    assert {found.place for found in PATTERNS if found.pattern is None} == set(PUT_TOGETHER)
    assert set(PUT_TOGETHER.values()) <= set(CASES)


@pytest.mark.parametrize("found", [one for one in PATTERNS if one.pattern is not None], ids=lambda one: one.place)
def test_no_pattern_takes_longer_than_its_text_is_long(found: Found) -> None:
    """A new pattern is attacked by itself; one that cannot stand a long text says here how short its texts are."""
    plain = found.place.partition("[")[0]
    used = Found(found.place, found.pattern, ONLY.get(plain, found.ways))
    said = in_a_child(lambda say: say(worst_of(used, SHORT.get(plain, LONG)) or ""))
    assert said == "", said or "it has no end in sight"


def test_the_attack_finds_patterns_that_are_known_to_be_bad() -> None:
    import re

    bad = (r"(<!--.*?-->\s*)*x", r"(a+)+$", r"\s*(\d+)\s*=\s*$", r"^(\w+\s?)*$", r"(x|x)*y", r"\s+$", r"a.*b.*c")
    for text in bad:
        found = Found(text, re.compile(text), ("search",))
        assert in_a_child(lambda say, found=found: say(worst_of(found, 2 * LONG) or ""), seconds=1) != "", text
