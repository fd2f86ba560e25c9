"""A tool-calling agent on the host's models. It keeps nothing itself: history, state, files and keys are the host's."""

from contextlib import aclosing

from paddock_runners.local_agent import approvals
from paddock_runners.local_agent.config import FORM, Config, ConfigError
from paddock_runners.local_agent.knowledge import Knowledge
from paddock_runners.local_agent.loop import Desk, answer, refused
from paddock_runners.local_agent.memory import Memory, Remembering
from paddock_runners.local_agent.models import NOT_OFFERED, NoModelError, chosen, room_for_history, room_for_prompt
from paddock_runners.local_agent.own_tools import OwnTools, preferences_of
from paddock_runners.local_agent.prompt import current_input, note, system_message, whole_prompt
from paddock_runners.local_agent.steering import Steering
from paddock_runners.toolkit.album import Album
from paddock_runners.toolkit.calls import Toolbox, granted_tools
from paddock_runners.toolkit.replies import Asked, Called, added
from paddock_runners.toolkit.speakers import is_group, speaker_of, spoken_by
from paddock_runners.toolkit.transcript import Said
from paddock_runners.toolkit.words import both
from paddock_sdk import (
    AgentRunner,
    AgentRunnerCapabilities,
    AgentRunnerPermissions,
    HostApi,
    HostCallError,
    Results,
    RunContext,
    failed,
)
from paddock_sdk.protocol.manifest import AgentRunnerContextPolicy
from paddock_sdk.protocol.resources import ModelResource


class LocalAgent(AgentRunner):
    label = both("Local agent", "本地智能体")
    description = both(
        "Calls tools, remembers, searches knowledge, asks before it acts.",
        "调用工具、记住要点、检索知识，行动前先询问。",
    )
    capabilities = AgentRunnerCapabilities(
        streaming=True,
        tool_calling=True,
        knowledge_retrieval=True,
        multimodal_input=True,
        interrupt=True,
        stateful_session=True,
        steering=True,
    )
    permissions = AgentRunnerPermissions(
        models=["invoke", "stream"],
        tools=["call"],
        knowledge_bases=["list", "retrieve"],
        history=["page", "search"],
        artifacts=["metadata", "read"],
        storage=["plugin"],
    )
    context = AgentRunnerContextPolicy(supports_history_search=True)
    config_schema = tuple(FORM)

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        try:
            config = Config.read(ctx.config)
            model = chosen(config, ctx.resources.models)
            if again := approvals.asked_again(ctx):
                for result in again:
                    yield result
                return
            desk, waited = await prepared(ctx, api, config, model)
            async for result in decided(desk, waited):
                yield result
            async with aclosing(answer(desk)) as results:  # left at its last word: not to be found as garbage
                async for result in results:
                    yield result
        except ConfigError as problem:
            yield failed("agent.config_invalid", str(problem))
        except NoModelError as problem:
            yield failed(NOT_OFFERED, str(problem))
        except HostCallError as error:
            yield failed(error.code, error.error.message, error.retryable)


async def prepared(
    ctx: RunContext, api: HostApi, config: Config, model: ModelResource
) -> tuple[Desk, list[tuple[Called, bool]]]:
    """Everything the loop needs, and the calls that waited for this input."""
    own, knowledge = OwnTools(ctx, api, config.own_tools), Knowledge(ctx, api, config.top_k)
    offers = [*granted_tools(ctx.resources.tools), *own.offers()]
    if config.retrieval == "tool" and knowledge.bases:
        offers.append(knowledge.tool())
    toolbox = Toolbox(api, offers)
    asked = Asked(model.model_id, toolbox.shown, config.extra_args or None, "stream" in model.operations)
    fixed = str(system_message(config.instructions, config.context, "")["content"])
    room = room_for_prompt(model, toolbox.shown)
    remembering = Remembering(ctx, api, config, asked, room_for_history(config, room, fixed))
    waited = await approvals.answered(ctx, api)
    memory = await remembering.recall()
    passages = await knowledge.passages(ctx.text) if config.retrieval == "always" and knowledge.bases else ""
    spoken = spoken_by(speaker_of(ctx.actor, group=is_group(ctx)), ctx.text)
    current = current_input(spoken, ctx.input.attachments, ctx.event.event_type, ctx.event.data)
    messages = _messages(ctx, config, memory, passages, current)
    album = Album(api, sees=model.images is not False)
    desk = Desk(
        ctx, api, config, asked, toolbox, own, knowledge, Steering(api, group=is_group(ctx)), album, messages, room
    )
    for usage in remembering.usage:
        added(desk.usage, usage)
    return desk, waited


def _messages(ctx: RunContext, config: Config, memory: Memory, passages: str, current: list[Said]) -> list[Said]:
    system = system_message(config.instructions, config.context, memory.summary)
    return whole_prompt(system, memory.turns, note(preferences_of(ctx), passages), current)


async def decided(desk: Desk, waited: list[tuple[Called, bool]]) -> Results:
    """Calls that waited for a person: made, or not, before the model goes on."""
    if not waited:
        return
    calls = [call for call, _ in waited]
    ids = {call.call_id for call in calls}
    desk.seen |= ids
    desk.messages[:] = [*approvals.without_calls(desk.messages, ids), approvals.as_said(calls)]
    for call, approved in waited:
        if not approved:
            yield refused(desk.messages, call, approvals.NOT_APPROVED)
    async for result in desk.toolbox.perform([call for call, approved in waited if approved], desk.messages):
        if result.type != "tool.call.started":  # that was said when the question was asked
            yield result
