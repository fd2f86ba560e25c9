"""For agents people already run: posts the event to a URL and streams back what it answers."""

import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from paddock_runners.http.answers import EventsInWords, text_in
from paddock_runners.toolkit.speakers import is_group, speaker_of
from paddock_runners.toolkit.values import listing, mapping
from paddock_runners.toolkit.words import both
from paddock_sdk import (
    AgentRunner,
    AgentRunnerCapabilities,
    HostApi,
    Result,
    Results,
    RunContext,
    failed,
    message,
    outbound,
)
from paddock_sdk.causes import cause_of
from paddock_sdk.protocol.history import TranscriptItem
from paddock_sdk.sse import EventReader, EventTooLargeError

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER_BYTES = 1024 * 1024
SILENCE_SECONDS = 60.0
USUAL_TAIL, LONGEST_TAIL = 20, 50
SAYS = "application/json, text/event-stream"
PAGES = ("text/html", "application/xhtml")
A_PAGE = (
    "a page for people (a login, perhaps) and no answer of an agent: expected is application/json, text/event-stream "
    "or text/plain; see whether config.url and config.authorization are right"
)


class HttpRunner(AgentRunner):
    label = "HTTP"
    description = both(
        "Posts the event to a URL and streams back what it answers.", "把事件发送到一个网址，并逐段返回它的回答。"
    )
    capabilities = AgentRunnerCapabilities(streaming=True, interrupt=True)
    bootstrap = "recent_tail"
    config_schema = (
        {
            "name": "url",
            "type": "string",
            "label": both("URL", "网址"),
            "host_only": True,
            "description": both("Where the agent is.", "智能体所在的地址。"),
        },
        {
            "name": "authorization",
            "type": "password",
            "label": both("Authorization", "授权"),
            "description": both("The header's value.", "该请求头的值。"),
        },
        {
            "name": "headers",
            "type": "json",
            "label": both("Further headers", "其他请求头"),
            "default": {},
            "host_only": False,
        },
        {
            "name": "body",
            "type": "select",
            "label": both("What is posted", "发送内容"),
            "default": "event",
            "options": [{"name": "event"}, {"name": "ag-ui"}],
        },
        {
            "name": "history",
            "type": "integer",
            "label": both("Earlier items", "之前的条目数"),
            "description": both(
                "How many of the last items are posted, at most 50; 0 for an agent that keeps the conversation itself.",
                "随请求发送对话中最近多少条，最多 50；智能体自己保存对话时填 0。",
            ),
            "default": USUAL_TAIL,
        },
    )

    def tail_length(self, ctx: RunContext) -> int:
        return _tail(ctx.config) or 0

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        import httpx2

        url = str(ctx.config.get("url") or "")
        if not _is_address(url):
            yield failed("agent.config_invalid", "config.url must be the http or https address of the agent to ask")
            return
        if _tail(ctx.config) is None:
            yield failed("agent.config_invalid", f"config.history must be a whole number from 0 to {LONGEST_TAIL}")
            return
        timeout = httpx2.Timeout(min(SILENCE_SECONDS, api.seconds_left()))
        began = False
        try:
            async with (
                outbound.client(ctx.runtime.reach or "any", timeout=timeout, verify=_trusted()) as client,
                client.stream("POST", url, json=body_of(ctx), headers=_headers(ctx.config)) as answer,
            ):
                began = answer.is_success
                async for result in _read(answer):
                    yield result
        except outbound.AddressRefusedError as error:
            yield failed("http.address_refused", f"config.url cannot be called: {error}")
        except httpx2.HTTPError as error:
            yield _lost(url, error, began=began)


def _lost(url: str, error: Exception, *, began: bool) -> Result:
    why = cause_of(error)
    if began:
        told = f"the agent at {_shown(url)} broke off in the middle of its answer: {why}"
        return failed("http.broken_off", told, retryable=True)
    return failed("http.unreachable", f"the agent at {_shown(url)} did not answer: {why}", retryable=True)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no port, half an IPv6 address
        return False


def _shown(url: str) -> str:
    """The address as people may see it: a key can stand before the host or after the question mark."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _tail(config: Mapping[str, Any]) -> int | None:
    asked = config.get("history", USUAL_TAIL)
    return asked if type(asked) is int and 0 <= asked <= LONGEST_TAIL else None


@cache
def _trusted() -> ssl.SSLContext:
    """Read once: making it costs more than a question."""
    import httpx2

    return httpx2.create_ssl_context()


def body_of(ctx: RunContext) -> dict[str, Any]:
    """The event with the last items of the conversation, or a run input for an agent that speaks AG-UI."""
    tail = [item for item in ctx.recent_tail if item.item_type == "message"]
    if ctx.config.get("body") == "ag-ui":
        return _run_input(ctx, tail)
    told = ctx.model_dump(mode="json", exclude_none=True)
    kept = {key: told[key] for key in ("run_id", "event", "conversation", "actor", "subject", "input") if key in told}
    return {**kept, "history": [_said(item, group=is_group(ctx)) for item in tail]}


def _said(item: TranscriptItem, *, group: bool) -> dict[str, str]:
    """One transcript item as a message; in a group with the speaker's name."""
    speaker = speaker_of(item, group=group)
    return {"role": item.role, "content": item.content or "", **({"name": speaker} if speaker else {})}


def _run_input(ctx: RunContext, tail: Sequence[TranscriptItem]) -> dict[str, Any]:
    """A message has its id of the transcript whenever it is sent along: agents that remember know by it what is new."""
    earlier = [{"id": item.transcript_id, "role": item.role, "content": item.content or ""} for item in tail]
    thread = ctx.conversation.conversation_id if ctx.conversation else None
    return {
        "threadId": thread or ctx.run_id,
        "runId": ctx.run_id,
        "state": {},
        "messages": [*earlier, {"id": f"{ctx.run_id}.0", "role": "user", "content": ctx.text}],
        "tools": [],
        "context": [mapping(one) for one in listing(ctx.config.get("context"))],
        "forwardedProps": {},
    }


def _headers(config: Mapping[str, Any]) -> dict[str, str]:
    given = {str(name): str(value) for name, value in mapping(config.get("headers")).items()}
    key = config.get("authorization")
    return {"Accept": SAYS, **given, **({"Authorization": str(key)} if key else {})}


async def _read(answer: "httpx2.Response") -> Results:
    kind = answer.headers.get("content-type", "").lower()
    if answer.status_code >= 300:
        said = (await _whole(answer)).decode(errors="replace")[:500]
        yield failed("http.refused", f"the agent answered {answer.status_code}: {said}", answer.status_code >= 500)
    elif kind.startswith("text/event-stream"):
        async for result in _streamed(answer):
            yield result
    else:
        body = await _whole(answer)
        yield _one_answer(body.decode(errors="replace"), kind) if len(body) <= MAX_ANSWER_BYTES else _too_large()


def _too_large() -> Any:
    return failed("http.too_large", f"the agent's answer has more than {MAX_ANSWER_BYTES} bytes; have it say less")


def _one_answer(body: str, kind: str) -> Any:
    if kind.startswith(PAGES) and body.lstrip().startswith("<"):  # some frameworks call any text so
        return failed("http.bad_answer", f"the agent answered with {kind}, {A_PAGE}")
    if not kind.startswith("application/json"):
        return message(body)
    try:
        text = text_in(json.loads(body))
    except ValueError:
        return failed("http.bad_answer", f"the agent's answer is no JSON: {body[:200]}")
    if text is None:
        return failed("http.bad_answer", f"the agent's answer has no text in it: {body[:200]}")
    return message(text)


async def _whole(answer: "httpx2.Response") -> bytes:
    """All of it, or a little more than can be used."""
    content = bytearray()
    async for piece in answer.aiter_bytes():
        content += piece
        if len(content) > MAX_ANSWER_BYTES:
            break
    return bytes(content)


async def _streamed(answer: "httpx2.Response") -> Results:
    said = EventsInWords()
    try:
        async for data in _events(answer):
            for result in said.read(data):
                yield result
            if said.ended is not None:
                yield said.ended
                return
    except EventTooLargeError as error:
        yield failed("http.too_large", f"the agent sent {error}; have it send smaller ones")
        return
    for result in said.last():
        yield result


async def _events(answer: "httpx2.Response") -> AsyncIterator[str]:
    reader = EventReader()
    async for piece in answer.aiter_bytes():
        for data in reader.feed(piece):
            yield data.decode(errors="replace")
    for data in reader.end():
        yield data.decode(errors="replace")
