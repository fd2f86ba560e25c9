"""A runner that leaves something in every store of the host, and says what it finds there."""

import asyncio
import json
from hashlib import sha256

from paddock_sdk import AgentRunner, HostApi, Results, RunContext, artifact_created, delta, message, serve, title

FILE = b"a line of the archive\n" * 20


class Archivist(AgentRunner):
    permissions = {  # noqa: RUF012
        "storage": ["plugin", "workspace"],
        "events": ["get", "page"],
        "artifacts": ["metadata", "read", "create"],
        "platform_api": ["message.edit"],
    }
    config_schema = ({"type": "password", "name": "api_key"},)

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        match ctx.text:
            case "keep":
                await api.storage.set("plugin", "blob", FILE)
                await api.state.set("conversation", "place", "shelf 4")
                await api.state.set("actor", "visits", 7)
                made = await api.artifacts.create(FILE, name="lines.txt")
                await api.state.set("conversation", "file", made.artifact_id)
                yield artifact_created("file", artifact_id=made.artifact_id)
                yield artifact_created("note", content=b"came along", name="note.txt")
                yield title("The archive")
                yield message("kept")
            case "look":
                yield message(json.dumps(await self.found(ctx, api), sort_keys=True))
            case "edit":
                asked = await api.platform.request_action("message.edit", {"message_id": "m-1"}, {"text": "better"})
                yield message(f"asked: {asked.status}")
            case "revise":
                yield delta("my first thought was marzipan")
                while not await said_before(api, "message.received"):
                    await asyncio.sleep(0.01)
                yield message("my second thought is nougat")
            case "stay":
                yield delta("half an ans")
                await asyncio.sleep(3600)
            case words:
                for word in f"heard: {words}".split(" "):
                    yield delta(f"{word} ")
                yield message(f"heard: {words}")

    async def found(self, ctx: RunContext, api: HostApi) -> dict[str, object]:
        file = await api.state.get("conversation", "file")
        content = b"".join([piece async for piece in api.artifacts.open_stream(file)]) if file else b""
        return {
            "blob": sha256(await api.storage.get("plugin", "blob") or b"").hexdigest(),
            "file": sha256(content).hexdigest(),
            "place": await api.state.get("conversation", "place"),
            "visits": await api.state.get("actor", "visits"),
            "api_key": ctx.config.get("api_key"),
        }


async def said_before(api: HostApi, event_type: str) -> bool:
    return any(item.event_type == event_type for item in (await api.events.page(limit=5)).items)


serve(Archivist())
