"""Replies a LangBot runner makes by a call and not by a result. Here they are the run's own messages."""

from collections.abc import Mapping
from typing import Any

from paddock_runners.langbot.callbacks.asking import Asking, Data, text
from paddock_runners.langbot.context import REPLY_TOOL
from paddock_runners.langbot.refusal import RefusedError, not_offered
from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import Result, delta, message

STREAMS_AT_ONCE = 16


async def say_message(run: Asking, words: str) -> Data:
    if not words:
        raise RefusedError("invalid_argument", "a reply must say something")
    await run.say([message(words)])
    return {"result": {"sent": True}}


async def reply_stream(run: Asking, data: Data) -> Data:
    """Each update holds all the text so far. What was shown cannot be taken back; the last word is the whole."""
    key, words = text(data, "stream_id"), str(data.get("text") or "")
    match data.get("operation"):
        case "update":
            await run.say(_shown(run, key, words))
        case "finish":
            run.replies.pop(key, None)
            await run.say([message(words)] if words else [])
        case "abort":
            shown = run.replies.pop(key, "")
            await run.say([message(shown)] if shown else [])
        case other:
            raise RefusedError("invalid_argument", f"a reply stream knows no {str(other)[:40]!r}")
    return {"result": {"sent": True}}


def _shown(run: Asking, key: str, words: str) -> list[Result]:
    if key not in run.replies and len(run.replies) >= STREAMS_AT_ONCE:
        raise RefusedError("rate_limited", f"at most {STREAMS_AT_ONCE} replies are streamed at once")
    before = run.replies.setdefault(key, "")
    if not words.startswith(before) or words == before:
        return []
    run.replies[key] = words
    return [delta(words[len(before) :])]


async def platform_api(run: Asking, data: Data) -> Data:
    """Only the reply to the event at hand; the rest of a platform is asked for with `action.requested`."""
    if data.get("context_tool") != REPLY_TOOL or data.get("action") != "send_message":
        raise not_offered(f"call_platform_api {data.get('action')}")
    elements = [_element(mapping(one)) for one in listing(mapping(data.get("params")).get("message"))]
    said = [element for element in elements if element]
    if not said:
        raise RefusedError("invalid_argument", "a reply must say something")
    words = "".join(str(element.get("text", "")) for element in said)
    await run.say([message(words if all(element["type"] == "text" for element in said) else said)])
    return {"result": {"sent": True}}


def _element(part: Mapping[str, Any]) -> Data:
    """One part of a platform's message; what has no form here is left out."""
    match part.get("type"):
        case "Plain":
            return {"type": "text", "text": str(part.get("text") or "")}
        case "Image" if part.get("base64"):
            return {"type": "image_base64", "image_base64": str(part["base64"])}
        case "Image" if part.get("url"):
            return {"type": "image_url", "image_url": {"url": str(part["url"])}}
        case _:
            return {}
