"""Two fixed stages: a router picks what the input is about and which tools it needs, a worker answers with them.

Both are steps of the stream. The worker is the local agent with fewer tools, and its settings are the same.
"""

from collections.abc import Mapping
from typing import Any

from paddock_runners.local_agent import LocalAgent, approvals, decided, prepared
from paddock_runners.local_agent.config import Config, ConfigError
from paddock_runners.local_agent.loop import answer
from paddock_runners.local_agent.models import NOT_OFFERED, NoModelError, chosen
from paddock_runners.router_worker.routing import Mode, Route, enabled, mode_of, narrowed, route
from paddock_runners.toolkit.replies import Asked, Reply, added
from paddock_runners.toolkit.words import both
from paddock_sdk import HostApi, HostCallError, Result, Results, RunContext, failed, step_finished, step_started
from paddock_sdk.protocol.resources import ModelResource
from paddock_sdk.protocol.results import TERMINAL_TYPES

ROUTER, WORKER = "router", "worker"


class RouterWorker(LocalAgent):
    label = both("Router and worker", "路由与执行")
    description = both("Picks intent and tools first, then answers with them.", "先判断意图并挑选工具，再用它们作答。")

    bootstrap = "recent_tail"
    bootstrap_limit = 6

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        try:
            config = Config.read(ctx.config)
            model = chosen(config, ctx.resources.models)
            if again := approvals.asked_again(ctx):
                for result in again:
                    yield result
                return
            async for result in _stages(ctx, api, config, model):
                yield result
        except ConfigError as problem:
            yield failed("agent.config_invalid", str(problem))
        except NoModelError as problem:
            yield failed(NOT_OFFERED, str(problem))
        except HostCallError as error:
            yield failed(error.code, error.error.message, error.retryable)


async def _stages(ctx: RunContext, api: HostApi, config: Config, model: ModelResource) -> Results:
    mode, reply = mode_of(ctx), Reply()
    yield step_started(ROUTER)
    asked = Asked(model.model_id, (), config.extra_args or None, "stream" in model.operations)
    tools = enabled(ctx, mode)
    way = await route(ctx, api, asked, tools, reply)
    approved = [name for name in approvals.waiting(ctx) if name in tools]
    yield step_finished(ROUTER)
    yield step_started(WORKER)
    async for result in _work(narrowed(ctx, [*way.tools, *approved], mode.context), api, model, way, reply.usage):
        if result.type in TERMINAL_TYPES:
            yield step_finished(WORKER)
        yield _with_hints(result, way, mode)


async def _work(ctx: RunContext, api: HostApi, model: ModelResource, way: Route, spent: Mapping[str, int]) -> Results:
    """The local agent's loop, told what the router found out."""
    config = Config.read({**ctx.config, "context": [*ctx.config["context"], _told(way)]})
    desk, waited = await prepared(ctx, api, config, model)
    added(desk.usage, spent)
    async for result in decided(desk, waited):
        yield result
    async for result in answer(desk):
        yield result


def _told(way: Route) -> dict[str, str]:
    return {"description": "what the user wants now", "value": way.intent}


def _with_hints(result: Result, way: Route, mode: Mode) -> Result:
    """An answer without a card of its own gets one that names what it is about."""
    if result.type != "message.completed" or "ui_hints" in result.data:
        return result
    text: Any = result.data["message"]["content"]
    card = {"kind": "summary", "title": way.intent, "text": text, "label": mode.name, "status": "success"}
    return Result(result.type, {**result.data, "ui_hints": card})
