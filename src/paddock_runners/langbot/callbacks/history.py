"""Calls for history, events, the prompt, the run's own record, and input that arrives meanwhile."""

from paddock_runners.langbot.callbacks.asking import Asking, Data, filled, number, page_of, text
from paddock_runners.langbot.context import langbot_input, system_prompt, whole_seconds
from paddock_runners.langbot.refusal import RefusedError
from paddock_runners.toolkit.values import listing

VERSION = "4.11.2"
"""The LangBot whose wire this is. A plugin that asks wants to know what it may expect of it."""


async def version(_: Asking, __: Data) -> Data:
    return {"version": VERSION, "api_features": []}


async def prompt(run: Asking, _: Data) -> Data:
    return {"prompt": system_prompt(run.ctx.config)}


async def page(run: Asking, data: Data) -> Data:
    found = await run.api.history.page(
        conversation_id=data.get("conversation_id"),
        before_cursor=data.get("before_cursor"),
        after_cursor=data.get("after_cursor"),
        limit=number(data, "limit") or 50,
        direction="forward" if data.get("direction") == "forward" else "backward",
        include_artifacts=data.get("include_attachments") is True,
    )
    return page_of(found)


async def search(run: Asking, data: Data) -> Data:
    top = number(data, "top_k") or 10
    return page_of(await run.api.history.search(text(data, "query"), filled(data, "filters"), top))


async def event(run: Asking, data: Data) -> Data:
    return whole_seconds((await run.api.events.get(text(data, "event_id"))).to_wire())


async def events(run: Asking, data: Data) -> Data:
    _check_own(run, data.get("conversation_id"))
    found = page_of(await run.api.events.page(data.get("before_cursor"), number(data, "limit") or 50))
    wanted = listing(data.get("event_types"))
    return {**found, "items": [one for one in found["items"] if not wanted or one["event_type"] in wanted]}


def _check_own(run: Asking, conversation: object) -> None:
    if conversation is not None and conversation != run.ctx.context.conversation_id:
        raise RefusedError("unauthorized", "events of another conversation are not granted to this run")


async def steering(run: Asking, data: Data) -> Data:
    limit = 1 if data.get("mode") in ("one", "one-at-a-time") else number(data, "limit")
    told = [whole_seconds(item.to_wire()) for item in await run.api.steering.pull(limit)]
    for item in told:
        item["event"], item["input"] = whole_seconds(item["event"]), langbot_input(item["input"])
    return {"items": told}


async def run_record(run: Asking, data: Data) -> Data:
    """The run about itself, so that a runner of the development branch learns that it was cancelled."""
    if data.get("target_run_id") not in (None, run.ctx.run_id):
        raise RefusedError("unauthorized", "a run may ask about itself alone")
    place = run.ctx.conversation
    return {
        "run_id": run.ctx.run_id,
        "event_id": run.ctx.event.event_id,
        "conversation_id": place.conversation_id if place else None,
        "bot_id": place.bot_id if place else None,
        "workspace_id": place.workspace_id if place else None,
        "status": "running",
        "cancel_requested_at": run.cancel_requested_at,
    }
