"""Permissions of a harness: decided by the agent's settings, or by the person, with the next input.

No process is kept waiting while somebody thinks. The turn ends with the question; a yes allows the same call once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from paddock_runners.harness.config import Config, matches
from paddock_runners.harness.heard import Permission, Question
from paddock_runners.toolkit.asked import asked_of, may_answer
from paddock_runners.toolkit.consent import consent_in, to_be_seen
from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import HostApi, HostCallError, Result, RunContext, completed, message

KEY = "harness.waiting_for_approval"
QUESTION = "external.question"
NO_PERSON = frozenset({"scheduler", "system"})
"""Who starts a run with nobody there to ask."""
OBEYED = "it would write settings that the harness obeys without asking; a person writes those"
REFUSED = "the settings of this agent do not allow it"
NOBODY = "it needs a person's approval, and nobody can be asked in this run"
VAGUE = "it needs a person's approval, and the harness does not say what exactly it would do"
WAITS = "waits for the user's approval"
SHOWN = "the question is shown to the user, whose answer comes with the next message"
NOBODY_TO_TELL = "nobody can be asked in this run; decide for yourself, and say what you decided"
SCHEMA = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
MAX_SHOWN = 4000
"""Of what a call is made with: all of a command, the beginning of a file."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One call that a person is asked about."""

    call_id: str
    name: str
    arguments: str
    """Canonical JSON: the same call is the same text."""

    @classmethod
    def of(cls, asked: Permission) -> "Waiting":
        return cls(asked.call_id, asked.name, canonical(asked.parameters))

    def said(self) -> str:
        left_out = len(self.arguments) - MAX_SHOWN
        more = f"…\n({left_out} further characters are not shown)" if left_out > 0 else ""
        return f"{self.name} {self.arguments[:MAX_SHOWN]}{more}"

    def shown(self) -> str:
        return to_be_seen(self.said())


def canonical(parameters: Mapping[str, Any]) -> str:
    return json.dumps(parameters, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


Verdict = Literal["allow", "refuse", "ask"]


class Policy:
    """Judges requests of one run."""

    def __init__(self, config: Config, approved: Sequence[Waiting], *, can_ask: bool) -> None:
        self._config, self._can_ask = config, can_ask
        self._once = [(call.name, call.arguments) for call in approved]

    def judge(self, asked: Permission) -> tuple[Verdict, str]:
        """Return the verdict and its reason."""
        if asked.obeyed or matches(asked.name, self._config.deny):
            return "refuse", OBEYED if asked.obeyed else REFUSED
        call = (asked.name, canonical(asked.parameters))
        if asked.exact and call in self._once:
            self._once.remove(call)
            return "allow", ""
        if asked.own or matches(asked.name, self._config.allow) or self._config.on_permission == "allow":
            return "allow", ""
        if self._config.on_permission == "deny":
            return "refuse", REFUSED
        if not asked.exact:
            return "refuse", VAGUE
        return ("ask", WAITS) if self._can_ask else ("refuse", NOBODY)


def can_ask(ctx: RunContext) -> bool:
    """True when there is somebody to ask, and a place to keep the question."""
    return ctx.trigger.source not in NO_PERSON and ctx.context.available_apis.state


async def ask(ctx: RunContext, api: HostApi, waiting: Sequence[Waiting], usage: Mapping[str, Any]) -> list[Result]:
    """Keep what waits and end the run with the question. Raises HostCallError when it cannot be kept."""
    about = {"asked": asked_of(ctx)}
    kept = [{"id": call.call_id, "name": call.name, "arguments": call.arguments, **about} for call in waiting]
    await api.state.set("conversation", KEY, kept)
    listed = "\n".join(f"- {call.shown()}" for call in waiting)
    hints = {"kind": "choices", "title": "Do you approve?", "items": [{"label": "Yes", "text": "yes"}, "No"]}
    words = f"I need your approval for:\n{listed}\n\nAnswer yes or no."
    return [message(words, ui_hints=hints), completed(usage=usage, interrupts=[_interrupt(call) for call in waiting])]


async def put(api: HostApi, question: Question, usage: Mapping[str, Any]) -> list[Result]:
    """End the run with a question of the harness's own; whatever the person says next is the answer. It is kept because
    a harness that was stopped remembers only that."""
    await api.state.set("conversation", QUESTION, question.words)
    hints = {"kind": "choices", "items": list(question.choices)} if question.choices else None
    return [message(question.words, ui_hints=hints), completed(usage=usage)]


def _interrupt(call: Waiting) -> dict[str, Any]:
    about = {"id": call.call_id, "reason": "tool_call", "tool_call_id": call.call_id, "message": call.shown()}
    return {**about, "response_schema": SCHEMA}


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions of a person about the calls that waited."""

    approved: tuple[Waiting, ...] = ()
    refused: tuple[Waiting, ...] = ()
    asked: str = ""
    """What the harness had asked, and the input is the answer to."""

    def told(self, words: str) -> str:
        """The person's input, with what the harness has to know of the decision before it."""
        notes = [f"The user approved this call: {call.said()}\nMake exactly this call again." for call in self.approved]
        notes += [f"You asked the user:\n{self.asked}\n\nThe user answers:"] if self.asked else []
        notes += [f"The user did not approve this call; do not repeat it: {call.said()}" for call in self.refused]
        return "\n\n".join([*notes, words]) if words else "\n\n".join(notes)


async def decided(ctx: RunContext, api: HostApi) -> Decided:
    """The person's word about what waited. It waits no longer, whatever the word was; to a call all but yes is no."""
    asked = ctx.state.conversation.get(QUESTION)
    if asked and ctx.trigger.source not in NO_PERSON:
        await api.state.set("conversation", QUESTION, "")
        return Decided(asked=str(asked))
    if not ctx.state.conversation.get(KEY):
        return Decided()
    kept, version = await api.state.get_with_version("conversation", KEY)
    waiting = [call for one in listing(kept) if (call := _read(one)) is not None]
    try:
        await api.state.set("conversation", KEY, [], expected_version=version)
    except HostCallError as error:
        if not error.retryable:
            raise
        return Decided()  # another run took them
    theirs = all(may_answer(ctx, mapping(one).get("asked")) for one in listing(kept))
    said = {call: _approved(ctx, call, theirs=theirs) for call in waiting}
    return Decided(
        tuple(call for call, yes in said.items() if yes), tuple(call for call, yes in said.items() if not yes)
    )


def _read(one: object) -> Waiting | None:
    said = mapping(one)
    parts = [said.get(name) for name in ("id", "name", "arguments")]
    return Waiting(*map(str, parts)) if all(isinstance(part, str) for part in parts) else None


def _approved(ctx: RunContext, call: Waiting, *, theirs: bool) -> bool:
    """The interrupt's own answer if there is one, else what the person said; of somebody else that is no answer."""
    params = mapping(ctx.adapter.extra.get("params")) if ctx.adapter else {}
    resumes = [mapping(entry) for entry in listing(params.get("resume"))]
    for entry in resumes:
        if (entry.get("interruptId") or entry.get("interrupt_id")) == call.call_id:
            return entry.get("status") == "resolved" and mapping(entry.get("payload")).get("approved") is True
    return theirs and not resumes and consent_in(ctx.text) is True
