"""A conversation as the host tells it, in the words of a model: turn by turn, every tool call with its result.

The same items always give the same messages, so that what a model was shown before stays as it was. No host calls.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddock_runners.toolkit.attachments import can_be_shown, name_of
from paddock_runners.toolkit.parts import in_words, parts_in_words, picture_part, pictures_in
from paddock_runners.toolkit.speakers import speaker_of, spoken_by
from paddock_runners.toolkit.tokens import tokens_of_all
from paddock_runners.toolkit.values import mapping
from paddock_sdk.protocol.artifacts import ArtifactRef
from paddock_sdk.protocol.history import TranscriptItem

Said = dict[str, Any]
"""One message as a model is shown it."""

MAX_RESULT_CHARS = 16_000
"""So much of a tool's result is shown to a model; the rest stays with the host."""
NO_RESULT = "(no result is known: the run ended before the tool answered)"


@dataclass(frozen=True, slots=True)
class Turn:
    """One input and what was said to it. `first` and `last` are its places in the transcript."""

    messages: tuple[Said, ...]
    tokens: int
    first: int
    last: int
    cursor: str
    items: int


def turns_of(items: Iterable[TranscriptItem], *, agent_id: str | None, group: bool = False) -> list[Turn]:
    """Turns in the order they began, from items in the order they were said. In a group people are told apart."""
    known = [_named(item) for item in items] if group else list(items)
    late = _late_answers(known)
    return [_turn(of_run, agent_id, late) for of_run in _groups(known)]


def _named(item: TranscriptItem) -> TranscriptItem:
    speaker = speaker_of(item, group=True) if item.role == "user" and item.content else ""
    return item.model_copy(update={"content": spoken_by(speaker, item.content or "")}) if speaker else item


def _groups(items: Sequence[TranscriptItem]) -> list[list[TranscriptItem]]:
    """Group items by run. Input can wait in line, so neighbours need not belong together; without run ids the order
    decides.
    """
    groups: dict[str, list[TranscriptItem]] = {}
    current = ""
    for item in items:
        if item.role in {"user", "system"}:
            current = item.transcript_id
        groups.setdefault(str(item.metadata.get("run_id") or current), []).append(item)
    return list(groups.values())


def _turn(items: Sequence[TranscriptItem], agent_id: str | None, late: Mapping[str, TranscriptItem]) -> Turn:
    messages = tuple(_messages(items, agent_id, late))
    if not _answered(items):
        messages = tuple(map(in_words, messages))
    seqs = [item.seq or 0 for item in items]
    last = max(items, key=lambda item: item.seq or 0)
    return Turn(messages, tokens_of_all(messages), min(seqs), max(seqs), last.cursor or "", len(items))


def _answered(items: Sequence[TranscriptItem]) -> bool:
    """True when the turn ended in words. A picture that no answer followed may be the reason for that: it is named, and
    not shown again and again.
    """
    return items[-1].role == "assistant" and items[-1].item_type == "message"


def _messages(items: Sequence[TranscriptItem], agent_id: str | None, late: Mapping[str, TranscriptItem]) -> list[Said]:
    answers = {_about(item).get("tool_call_id"): item for item in items if item.item_type == "tool_result"}
    messages: list[Said] = []
    open_calls: list[TranscriptItem] = []
    for item in items:
        if item.item_type == "tool_call":
            open_calls.append(item)
            continue
        messages += _called(open_calls, answers, late, messages)
        open_calls = []
        if item.item_type != "tool_result" and (said := _spoken(item, agent_id)) is not None:
            messages.append(said)
    return messages + _called(open_calls, answers, late, messages)


def _spoken(item: TranscriptItem, agent_id: str | None) -> Said | None:
    text = item.content or ""
    if item.role == "assistant":
        if item.bot_id in {None, agent_id}:
            return {"role": "assistant", "content": text} if text else None
        return {"role": "user", "content": f"({item.bot_id} said:) {text}"}
    if item.role == "system":
        return {"role": "user", "content": f"(event: {text})"}
    return input_message(text, item.attachment_refs)


def _called(
    calls: Sequence[TranscriptItem],
    answers: Mapping[Any, TranscriptItem],
    late: Mapping[str, TranscriptItem],
    before: list[Said],
) -> list[Said]:
    """Calls made together are one message, joined to the words that came with them; their results follow in order."""
    if not calls:
        return []
    if before and before[-1]["role"] == "assistant" and "tool_calls" not in before[-1]:
        opening = before.pop()
    else:
        opening = {"role": "assistant", "content": ""}
    results: list[Said] = []
    for call in calls:
        call_id = str(_about(call).get("tool_call_id") or call.transcript_id)
        answer = answers.get(call_id) or late.get(call_id)
        results.append(words_message(call_id, NO_RESULT) if answer is None else result_message(call_id, _about(answer)))
    return [{**opening, "tool_calls": [_call(call) for call in calls]}, *results]


def _call(item: TranscriptItem) -> dict[str, Any]:
    about = _about(item)
    call_id = str(about.get("tool_call_id") or item.transcript_id)
    return call_message(call_id, str(about.get("tool_name") or item.content), compact(about.get("parameters") or {}))


def _late_answers(items: Sequence[TranscriptItem]) -> dict[str, TranscriptItem]:
    """Results that came in a later turn than their call: the client's own tools are answered so."""
    return {
        str(about["tool_call_id"]): item
        for item in items
        if item.item_type == "tool_result" and "tool_call_id" in (about := _about(item))
    }


def _about(item: TranscriptItem) -> Mapping[str, Any]:
    return item.content_json or {}


# --- shapes, used for what is said now and for what is told again alike


def call_message(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def input_message(text: str, attached: Sequence[ArtifactRef]) -> Said | None:
    """Message of a user with its attachments: pictures as pictures, everything else by name."""
    pictures = [picture_part(ref) for ref in attached if can_be_shown(ref)]
    files = [f"(attached: {name_of(ref)}, {ref.artifact_id})" for ref in attached if not can_be_shown(ref)]
    words = "\n".join([*([text] if text else []), *files])
    if pictures:
        return {"role": "user", "content": [*([{"type": "text", "text": words}] if words else []), *pictures]}
    return {"role": "user", "content": words} if words else None


def result_message(call_id: str, about: Mapping[str, Any]) -> Said:
    """A tool's result, with the pictures in it."""
    said, pictures = words_message(call_id, result_text(about)), pictures_in(about.get("result"))
    if not pictures or about.get("error") is not None:
        return said
    return {**said, "content": [{"type": "text", "text": said["content"]}, *map(picture_part, pictures)]}


def words_message(call_id: str, text: str) -> Said:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def result_text(about: Mapping[str, Any]) -> str:
    """A tool's result as a model reads it: `result`, `error` and `artifact` as the runner reported them."""
    if about.get("error") is not None:
        return shortened(compact({"error": about["error"]}))
    result, artifact = about.get("result"), about.get("artifact")
    text = result if isinstance(result, str) else parts_in_words(result) or compact(result)
    if artifact is not None:
        text += f"\n(the whole result is in the artifact {mapping(artifact).get('artifact_id')})"
    return shortened(text)


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shortened(text: str, most: int = MAX_RESULT_CHARS) -> str:
    return text if len(text) <= most else f"{text[:most]}\n(cut here: {len(text)} characters in all)"
