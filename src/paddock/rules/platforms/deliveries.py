"""Deliveries to a platform: the rows that follow from a run's facts, long texts split, and when to retry. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from unicodedata import combining

import msgspec

from paddock.rules.agents.specs import TextUnit
from paddock.rules.log.payloads import as_object
from paddock.rules.platforms.chat_questions import host_words, interactions
from paddock.rules.rows.deliveries import PARTS, DeliveryRow
from paddock.rules.rows.rows import Row, RunRow, TranscriptRow
from paddock.rules.run.context import RunInput
from paddock.rules.session.facts import Fact

_JOINED = frozenset({"\u200d", "\ufe0e", "\ufe0f", "\u20e3"})
"""What never begins a part: it belongs to the character before it."""
_CUTS = ("\n\n", "\n", "。", ". ", "! ", "? ", " ")
"""Where to cut, the best first."""
_LEAST = 0.5
"""A cut that would leave a part shorter than this share is passed over for a worse one further on."""
_MARKS = 30
"""So far back a character that belongs together is looked for; what is longer is a heap of accents, and is cut."""

_SIZES: Mapping[TextUnit, Callable[[str], int]] = {
    "characters": len,
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
}


def split(text: str, limit: int | None, unit: TextUnit = "characters", *, most: int | None = None) -> list[str]:
    """The parts of a text, each within the limit, in order; one when it fits. An empty text has one empty part.

    With `most` there are no more parts than that, and all that is left is the last one, however long.
    """
    size = _SIZES[unit]
    parts: list[str] = []
    start = 0
    while limit is not None and len(parts) + 1 != most:
        ahead = text[start : start + limit + 1]  # never the whole rest: a long text has many parts
        if len(ahead) <= limit and size(ahead) <= limit:
            break
        end = _cut(ahead[: _fits(ahead, limit, size)])
        if part := ahead[:end].rstrip():
            parts.append(part)
        start = _past_space(text, start + end)
    if (rest := text[start:]) or not parts:
        parts.append(rest)
    return parts


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _fits(text: str, limit: int, size: Callable[[str], int]) -> int:
    low, high = 1, min(len(text), limit)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) <= limit else (low, middle - 1)
    least = max(1, low - _MARKS)
    whole = next((at for at in range(low, least, -1) if not _joins(text, at)), least)
    return low if whole == least and low > _MARKS else whole


def _joins(text: str, at: int) -> bool:
    if at >= len(text):
        return False
    return text[at] in _JOINED or text[at - 1] == "\u200d" or combining(text[at]) != 0


def _cut(text: str) -> int:
    least = int(len(text) * _LEAST)
    for mark in _CUTS:
        found = text.rfind(mark)
        if found >= least:
            return found + len(mark)
    return len(text)


DELAYS = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 10_800.0)
"""Seconds before each further attempt; after the last one it is given up."""
MAX_RETRY_AFTER = 3600.0
NO_ANSWER = frozenset({"failed", "cancelled"})
"""Ends of a run after which nothing more is said."""
_encode = msgspec.json.Encoder().encode


def deliveries_after(
    given: RunInput, rows: Sequence[Row], workspace_id: str, now: float, fact: Fact | None = None
) -> list[DeliveryRow]:
    """Return the deliveries that follow from a fact and its rows: finished messages, questions a run leaves to a
    person, and failed or cancelled runs, so that nobody waits for more. Empty without a platform."""
    delivery = given.event.delivery if given.event is not None else None
    if delivery is None or not _capabilities(delivery).get("delivers"):
        return []
    found: list[DeliveryRow] = []
    for row in rows:
        if isinstance(row, TranscriptRow) and row.role == "assistant" and row.item_type == "message":
            found += _messages(row, delivery, workspace_id, now)
        elif isinstance(row, RunRow) and row.status in NO_ANSWER:
            found.append(_no_answer(row, delivery, now))
        elif isinstance(row, RunRow) and row.status == "completed" and fact is not None:
            found += _questions(row, delivery, as_object(as_object(fact.payload).get("data")), now)
    return found


def _capabilities(delivery: Mapping[str, Any]) -> Mapping[str, Any]:
    return delivery.get("platform_capabilities") or {}


def _messages(item: TranscriptRow, delivery: Mapping[str, Any], workspace_id: str, now: float) -> list[DeliveryRow]:
    whole = msgspec.Raw(item.content_json) if item.content_json else None
    about = {"message_id": item.item_id, "agent_id": item.agent_id}
    place = (workspace_id, item.session_id, str(item.run_id))
    return _in_parts(item.content, delivery, place, item.seq, about, now, whole)


def _in_parts(
    words: str,
    delivery: Mapping[str, Any],
    place: tuple[str, str, str],
    seq: int,
    about: Mapping[str, Any],
    now: float,
    whole: msgspec.Raw | None = None,
) -> list[DeliveryRow]:
    """A finished message as so many deliveries as the platform needs; the first has it whole."""
    unit = cast("TextUnit", _capabilities(delivery).get("size_in", "characters"))
    parts = split(words, delivery.get("max_message_size"), unit, most=PARTS - 1)
    return [
        _row(
            delivery,
            (*place, seq * PARTS + number),
            {
                "type": "message.completed",
                **about,
                "part": number + 1,
                "parts": len(parts),
                "text": part,
                **({"message": whole} if whole is not None and number == 0 else {}),
            },
            now,
        )
        for number, part in enumerate(parts)
    ]


def _questions(run: RunRow, delivery: Mapping[str, Any], end: Mapping[str, Any], now: float) -> Sequence[DeliveryRow]:
    """With choices where the platform can show them; else what the host asks, in words."""
    place = (run.workspace_id, run.session_id, run.run_id)
    if _capabilities(delivery).get("interactions"):
        asked = interactions(end)
        told = {"type": "interaction.requested", "agent_id": run.agent_id, "interactions": asked}
        return [_row(delivery, (*place, run.last_seq * PARTS), told, now)] if asked else ()
    if not (words := host_words(end)):
        return ()
    about = {"message_id": f"{run.run_id}.{run.last_seq}", "agent_id": run.agent_id}
    return _in_parts(words, delivery, place, run.last_seq, about, now)


def _no_answer(run: RunRow, delivery: Mapping[str, Any], now: float) -> DeliveryRow:
    place = (run.workspace_id, run.session_id, run.run_id, run.last_seq * PARTS)
    told = {"type": f"run.{run.status}", "agent_id": run.agent_id, "code": run.code, "message": run.message}
    return _row(delivery, place, told, now)


def _row(
    delivery: Mapping[str, Any], place: tuple[str, str, str, int], told: Mapping[str, Any], now: float
) -> DeliveryRow:
    workspace_id, session_id, run_id, number = place
    delivery_id = f"{run_id}.{number:015d}"
    body: dict[str, Any] = {
        "delivery_id": delivery_id,
        **told,
        "run_id": run_id,
        "reply_target": delivery.get("reply_target") or {},
        "timestamp": now,
    }
    return DeliveryRow(
        delivery_id=delivery_id,
        workspace_id=workspace_id,
        platform=str(delivery["surface"]),
        session_id=session_id,
        run_id=run_id,
        number=number,
        body=_encode(body),
        created_at=now,
        due_at=now,
    )


def after_failure(attempts: int, now: float, *, retry_after: float | None = None, gone: bool = False) -> float | None:
    """Return when to try again after so many attempts; None gives up. A platform's `retry_after` counts."""
    if gone or attempts > len(DELAYS):
        return None
    wait = DELAYS[attempts - 1]
    if retry_after is not None:
        wait = max(wait, min(retry_after, MAX_RETRY_AFTER))
    return now + wait
