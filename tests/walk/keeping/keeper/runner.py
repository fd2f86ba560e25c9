"""A runner that keeps things with the host and says what it finds there. `keep` first, then `look`."""

import json
from hashlib import sha256

from paddock_sdk import AgentRunner, HostApi, Results, RunContext, artifact_created, message, serve

BLOB = bytes(range(256)) * 28_000  # seven million bytes: more than one frame
FILE = b"a line of text\n" * 60_000


class Keeper(AgentRunner):
    permissions = {  # noqa: RUF012
        "storage": ["plugin"],
        "events": ["get", "page"],
        "artifacts": ["metadata", "read", "create"],
    }

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        if ctx.text == "keep":
            await api.storage.set("plugin", "blob", BLOB)
            made = await api.artifacts.create(FILE, name="lines.txt")
            await api.state.set("conversation", "file", made.artifact_id, expected_version="")
            yield artifact_created("file", artifact_id=made.artifact_id)
            yield artifact_created("note", content=b"came along", name="note.txt")
        file = await api.state.get("conversation", "file")
        streamed = b"".join([piece async for piece in api.artifacts.open_stream(file)])
        events = await api.events.page(limit=5)
        found = {
            "blob": await api.storage.get("plugin", "blob") == BLOB,
            "file": sha256(streamed).hexdigest() == sha256(FILE).hexdigest(),
            "type": (await api.artifacts.metadata(file)).mime_type,
            "events": [item.event_type for item in events.items],
        }
        yield message(json.dumps(found))


serve(Keeper())
