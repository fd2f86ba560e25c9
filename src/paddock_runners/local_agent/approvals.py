"""Calls that a person must agree to: the run ends with the question, the next one brings the answer.

The question is an interrupt for clients that know them and a sentence for everybody else. What waits is kept in
conversation state and taken out before anything is called, so an approval counts once. Words that are neither a yes nor
a no leave it waiting, and the question is asked again. In a group whatever somebody else says is a no: the question was
not theirs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from paddock_runners.toolkit.asked import asked_of, may_answer
from paddock_runners.toolkit.consent import consent_in, to_be_seen
from paddock_runners.toolkit.language import speaks_chinese
from paddock_runners.toolkit.replies import Called
from paddock_runners.toolkit.transcript import Said, call_message, shortened
from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import HostApi, HostCallError, Result, RunContext, completed, message

KEY = "local_agent.waiting_for_approval"
NOT_APPROVED = "the user did not approve this call; do not repeat it unless they ask for it"
NO_PLACE = "this call needs the user's approval, and this agent may keep no state in which to wait for it"
UNCLEAR = (
    "I did nothing yet: I could not tell whether that is a yes or a no. A yes does exactly what stands here; for "
    "anything else, say no and what you want instead."
)
UNCLEAR_CHINESE = (
    "我还没有做任何事：我看不出这是同意还是拒绝。同意就会照下面原样执行；想要别的，请先拒绝，再说你要什么。"
)
SCHEMA = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
SAID = "message.received"
MAX_SHOWN = 4000
"""Of what a call is made with."""


async def ask(
    ctx: RunContext, api: HostApi, calls: Sequence[Called], usage: Mapping[str, int], also_pending: Sequence[str] = ()
) -> list[Result]:
    """Keep the calls and end the run with the question. Raises HostCallError when they cannot be kept.

    `also_pending` are calls of the same answer that the client makes itself."""
    about = {"asked": asked_of(ctx)}
    kept = [{"id": call.call_id, "name": call.name, "arguments": call.arguments, **about} for call in calls]
    await api.state.set("conversation", KEY, kept)
    return _asking(ctx, calls, usage, also_pending)


def asked_again(ctx: RunContext) -> list[Result]:
    """The question once more, when what was said is no answer to it; else nothing. All that waits goes on waiting."""
    kept = ctx.state.conversation.get(KEY)
    calls = _kept(kept)
    if not calls or _resumes(ctx) or _word(ctx, kept) is not None:
        return []
    return _asking(ctx, calls, None, unclear=True)


def _asking(
    ctx: RunContext,
    calls: Sequence[Called],
    usage: Mapping[str, int] | None,
    also_pending: Sequence[str] = (),
    *,
    unclear: bool = False,
) -> list[Result]:
    listed = "\n".join(f"- {shown(call)}" for call in calls)
    chinese = speaks_chinese(ctx)
    text, hints = _question(listed, chinese=chinese)
    if unclear:
        text = f"{UNCLEAR_CHINESE if chinese else UNCLEAR}\n\n{text}"
    ids = [*(call.call_id for call in calls), *also_pending]
    interrupts = [_interrupt(call) for call in calls]
    return [message(text, ui_hints=hints), completed(usage=usage, pending_tool_call_ids=ids, interrupts=interrupts)]


def shown(call: Called) -> str:
    return f"{call.name} {to_be_seen(shortened(call.arguments, MAX_SHOWN))}"


def _question(listed: str, *, chinese: bool) -> tuple[str, dict[str, Any]]:
    if chinese:
        items = [{"label": "同意", "text": "同意"}, {"label": "拒绝", "text": "拒绝"}]
        return f"以下操作需要你的批准：\n{listed}\n\n请回答“同意”或“拒绝”。", {
            "kind": "choices",
            "title": "是否同意？",
            "items": items,
        }
    items = [{"label": "Yes", "text": "yes"}, "No"]
    hints = {"kind": "choices", "title": "Do you approve?", "items": items}
    return f"I need your approval for:\n{listed}\n\nAnswer yes or no.", hints


def _interrupt(call: Called) -> dict[str, Any]:
    return {
        "id": call.call_id,
        "reason": "tool_call",
        "tool_call_id": call.call_id,
        "message": shown(call),
        "response_schema": SCHEMA,
    }


def waiting(ctx: RunContext) -> list[str]:
    """Names of the tools that wait for this input's word."""
    return [call.name for call in _kept(ctx.state.conversation.get(KEY))]


async def answered(ctx: RunContext, api: HostApi) -> list[tuple[Called, bool]]:
    """The calls that waited, each with the person's word. They wait no longer, whatever it was."""
    if KEY not in ctx.state.conversation:
        return []
    kept, version = await api.state.get_with_version("conversation", KEY)
    calls = _kept(kept)
    try:
        await api.state.set("conversation", KEY, [], expected_version=version)
    except HostCallError as error:
        if not error.retryable:
            raise
        return []  # another run took them
    return [(call, _approved(ctx, call, kept)) for call in calls]


def _kept(state: object) -> list[Called]:
    return [call for one in listing(state) if (call := _read(one)) is not None]


def _read(one: object) -> Called | None:
    said = mapping(one)
    parts = [said.get(name) for name in ("id", "name", "arguments")]
    return Called(*cast("list[str]", parts)) if all(isinstance(part, str) for part in parts) else None


def _approved(ctx: RunContext, call: Called, kept: object) -> bool:
    """The interrupt's own answer if there is one, else what the person said."""
    for entry in _resumes(ctx):
        if (entry.get("interruptId") or entry.get("interrupt_id")) == call.call_id:
            return entry.get("status") == "resolved" and mapping(entry.get("payload")).get("approved") is True
    return not _resumes(ctx) and _word(ctx, kept) is True


def _word(ctx: RunContext, kept: object) -> bool | None:
    """Read a yes or no from the input. An event that is nobody's message, such as a schedule's, is a no, and so are
    words of whoever was not asked."""
    theirs = all(may_answer(ctx, mapping(one).get("asked")) for one in listing(kept))
    return consent_in(ctx.text) if theirs and ctx.event.event_type == SAID else False


def _resumes(ctx: RunContext) -> list[Mapping[str, Any]]:
    params = mapping(ctx.adapter.extra.get("params")) if ctx.adapter else {}
    return [mapping(entry) for entry in listing(params.get("resume"))]


def without_calls(messages: Sequence[Said], ids: set[str]) -> list[Said]:
    """The conversation without calls that are only made now: they are told where they are made."""
    kept: list[Said] = []
    for said in messages:
        if said["role"] == "tool" and said.get("tool_call_id") in ids:
            continue
        calls = [call for call in said.get("tool_calls") or () if call["id"] not in ids]
        whole = {key: value for key, value in said.items() if key != "tool_calls"} | (
            {"tool_calls": calls} if calls else {}
        )
        if calls or whole.get("content"):
            kept.append(whole)
    return kept


def as_said(calls: Sequence[Called]) -> Said:
    made = [call_message(one.call_id, one.name, one.arguments) for one in calls]
    return {"role": "assistant", "content": "", "tool_calls": made}
