"""Messages for the model, in an order that keeps their beginning the same from turn to turn.

First what never changes while the agent's settings do not (instructions, facts), then the summary of the last
checkpoint, then the turns since then, and only at the end what belongs to this turn alone. A provider that caches what
it read before can use all but the end. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paddock_runners.toolkit.parts import in_words
from paddock_runners.toolkit.tokens import tokens_of, tokens_of_all
from paddock_runners.toolkit.transcript import Said, Turn, compact, input_message, shortened
from paddock_sdk.protocol.artifacts import ArtifactRef

NOTHING_SAID = frozenset({"message.received", "conversation.continued"})
"""Events that say nothing themselves: of the second, what there is to say is in the history."""
LEAST_RESULT_CHARS = 400
"""So much is left of a tool's result however little room there is."""
CUT_NOTE_CHARS = 60
SUMMARY = "Summary of the conversation before this point:\n"
SUMMARIZE = (
    "Summarize our conversation so far, for yourself: you will read it instead of the messages above. Keep names, "
    "numbers, decisions, open questions and what the user told you about themselves. Do not answer anything."
)


def system_message(instructions: str, context: Sequence[Mapping[str, Any]], summary: str) -> Said:
    facts = "\n".join(f"- {one.get('description')}: {one.get('value')}" for one in context)
    parts = [instructions, f"What you should know:\n{facts}" if facts else "", f"{SUMMARY}{summary}" if summary else ""]
    return {"role": "system", "content": "\n\n".join(part for part in parts if part)}


def note(preferences: Mapping[str, Any], passages: str) -> list[Said]:
    """Preferences and passages for this turn only. They stand right before the input."""
    told = " ".join(f"my {about} is {value}." for about, value in preferences.items())
    parts = [f"(The user said in earlier conversations: {told})" if told else "", passages]
    text = "\n\n".join(part for part in parts if part)
    return [{"role": "user", "content": text}] if text else []


def whole_prompt(system: Said, turns: Sequence[Turn], extra: Sequence[Said], current: Sequence[Said]) -> list[Said]:
    return [system, *(said for turn in turns for said in turn.messages), *extra, *current]


def within(room: int, messages: Sequence[Said], since: int) -> list[Said]:
    """The messages with results of tools, the oldest after `since` first, cut as far as it takes to fit the room."""
    over, fitting = tokens_of_all(messages) - room, [*messages]
    for at, said in enumerate(messages):
        if over > 0 and at >= since and said["role"] == "tool":
            fitting[at] = _cut(said, over)
            over -= tokens_of(said) - tokens_of(fitting[at])
    return fitting


def _cut(said: Said, over: int) -> Said:
    """A result that gives up its pictures, and of its words as much as it takes."""
    told = in_words(said)
    over -= tokens_of(said) - tokens_of(told)
    if over <= 0:
        return told
    tokens, text = tokens_of(told), told["content"]
    most = max(LEAST_RESULT_CHARS, int(len(text) * (1 - over / tokens)) - CUT_NOTE_CHARS)
    return {**told, "content": shortened(text, most)}


def current_input(text: str, attached: Sequence[ArtifactRef], event_type: str, data: Mapping[str, Any]) -> list[Said]:
    """The input of this run; an event that is no message is told in words."""
    said = input_message(text, attached)
    if said is not None:
        return [said]
    told = f"(event: {event_type} {compact(dict(data))})" if event_type not in NOTHING_SAID else ""
    return [{"role": "user", "content": told}] if told else []
