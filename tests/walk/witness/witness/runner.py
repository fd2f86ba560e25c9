"""Tells in its answer everything a run is given and can read: the context, the history, the events. Asked to, it waits
for a file, calls a tool, hands over, or reads what is elsewhere."""

import asyncio
import json
from pathlib import Path

from paddock_sdk import AgentRunner, HostCallError, handover, message, serve


class Witness(AgentRunner):
    permissions = {  # noqa: RUF012 - as authors write it
        "history": ["page", "search"],
        "events": ["get", "page"],
        "artifacts": ["metadata", "read"],
        "tools": ["detail", "call"],
        "storage": ["plugin"],
        "history_scope": "workspace",
    }
    context = {"supports_history_search": True}  # noqa: RUF012

    async def run(self, ctx, api):
        words = (ctx.text or "").split()
        if words[:1] == ["hold"]:
            while not Path(words[1]).exists():
                await asyncio.sleep(0.01)
        if words[:1] == ["add"]:
            await api.tools.call("calculate", {"expression": words[1]})
        if words[:1] == ["leave"]:
            yield handover(words[1], reason="not mine", summary="they want maps")
        yield message(json.dumps(shortened(await self.seen(ctx, api, words))))

    async def seen(self, ctx, api, words):
        place = ctx.context
        return {
            "ctx": ctx.to_wire(),
            "before": (await api.history.page(before_cursor=place.latest_cursor, limit=100)).to_wire(),
            "history": (await api.history.page(limit=100)).to_wire(),
            "found": (await api.history.search("secret")).to_wire(),
            "events": await self.events(api),
            "own": (await api.events.get(ctx.event.event_id)).to_wire(),
            "asked": await self.asked(api, words),
        }

    async def events(self, api):
        """All of them, by pages of three."""
        items, cursor = [], None
        while True:
            page = await api.events.page(cursor, limit=3)
            items += [item.to_wire() for item in page.items]
            cursor = page.next_cursor
            if not page.has_more:
                return items

    async def asked(self, api, words):
        """What a call gives that somebody asked for: `ask METHOD JSON`."""
        if words[:1] != ["ask"]:
            return None
        group, _, name = words[1].partition(".")
        try:
            return (await getattr(getattr(api, group), name)(**json.loads(" ".join(words[2:])))).to_wire()
        except HostCallError as error:
            return {"code": error.code}


def shortened(value):
    """Without the long answers of earlier runs, which hold those of the ones before."""
    if isinstance(value, dict):
        return {name: shortened(held) for name, held in value.items()}
    if isinstance(value, list):
        return [shortened(held) for held in value]
    return value[:40] if isinstance(value, str) and len(value) > 400 else value


serve(Witness())
