"""The tool loop: the model answers or wants tools, the tools are called, until it answers or has had enough rounds."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddock_runners.local_agent import approvals
from paddock_runners.local_agent.config import Config
from paddock_runners.local_agent.knowledge import Knowledge
from paddock_runners.local_agent.own_tools import OwnTools
from paddock_runners.local_agent.prompt import within
from paddock_runners.local_agent.steering import Steering
from paddock_runners.local_agent.titles import suggested
from paddock_runners.toolkit.album import Album
from paddock_runners.toolkit.calls import Toolbox, started
from paddock_runners.toolkit.language import speaks_chinese
from paddock_runners.toolkit.replies import Asked, Called, Reply, added, speak, unique
from paddock_runners.toolkit.transcript import Said, result_message
from paddock_sdk import HostApi, Result, Results, RunContext, completed, message, tool_completed


@dataclass(slots=True)
class Desk:
    """Everything one run works with."""

    ctx: RunContext
    api: HostApi
    config: Config
    asked: Asked
    toolbox: Toolbox
    own: OwnTools
    knowledge: Knowledge
    steering: Steering
    album: Album
    messages: list[Said]
    """Pictures are named in them; they are read when the model is shown them."""
    room: int
    """Tokens that the messages may take."""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    seen: set[str] = field(default_factory=set[str])
    """Names of calls in this run."""

    @property
    def ui_hints(self) -> Any:
        return self.own.ui_hints or self.knowledge.ui_hints()


async def answer(desk: Desk) -> AsyncGenerator[Result]:
    """Everything from the first question to the run's end."""
    before = len(desk.messages)
    for _ in range(desk.config.max_iterations):
        reply = Reply()
        async for piece in speak(desk.api, desk.asked, await desk.album.shown(desk.messages), reply):
            yield piece
        added(desk.usage, reply.usage)
        unique(reply.calls, desk.seen)
        desk.messages.append(reply.as_message())
        if not reply.calls:
            later = await desk.steering.taken()
            yield message(
                reply.text + (_cut(desk.ctx) if reply.was_cut else ""), ui_hints=None if later else desk.ui_hints
            )
            if not later:
                named = await suggested(desk.ctx, desk.api, desk.config, desk.asked, reply.text, desk.usage)
                if named is not None:
                    yield named
                yield completed(usage=desk.usage or None)
                return
            desk.messages += later
            continue
        async for result in _use_tools(desk, reply):
            yield result
            if result.type == "run.completed":
                return
        desk.messages += await desk.steering.taken()
        desk.messages[:] = within(desk.room, desk.messages, before)
    yield message(_enough(desk.ctx, desk.config.max_iterations))
    yield completed(usage=desk.usage or None)


async def _use_tools(desk: Desk, reply: Reply) -> Results:
    """Call what can be called now; what the client or a person has to answer first ends the run."""
    if reply.text:
        yield message(reply.text)
    now, asking, pending = _sorted(desk, reply.calls)
    async for result in desk.toolbox.perform(now, desk.messages):
        yield result
    for call in [*asking, *pending]:
        yield started(call)
    if asking and not desk.ctx.context.available_apis.state:
        for call in asking:
            yield refused(desk.messages, call, approvals.NO_PLACE)
        asking = []
    if asking:
        also = [call.call_id for call in pending]
        for result in await approvals.ask(desk.ctx, desk.api, [*asking], desk.usage, also):
            yield result
    elif pending:
        yield completed(usage=desk.usage or None, pending_tool_call_ids=[call.call_id for call in pending])


def _sorted(desk: Desk, calls: Sequence[Called]) -> tuple[list[Called], list[Called], list[Called]]:
    """Calls to make now, calls a person must agree to, calls the client answers."""
    pending = [call for call in calls if desk.toolbox.by_client(call)]
    rest = [call for call in calls if not desk.toolbox.by_client(call)]
    asking = [call for call in rest if desk.config.needs_approval(call.name)]
    return [call for call in rest if call not in asking], asking, pending


def refused(messages: list[Said], call: Called, why: str) -> Any:
    """Tell the model and everybody else that a call was not made."""
    messages.append(result_message(call.call_id, {"error": why}))
    return tool_completed(call.call_id, call.name, error=why)


def _enough(ctx: RunContext, rounds: int) -> str:
    if speaks_chinese(ctx):
        return f"我先停在这里：{rounds} 轮工具调用还不够完成，而这已是上限（max_iterations）。说“继续”，我就接着做。"
    return (
        f"I stopped here: {rounds} rounds of tool calls were not enough to finish, and that is the limit "
        f"(max_iterations). Say “go on” and I will continue from here."
    )


def _cut(ctx: RunContext) -> str:
    if speaks_chinese(ctx):
        return "\n\n（回答被截断：已达到模型的输出上限。）"
    return "\n\n(The answer was cut: the model reached its output limit.)"
