"""What a harness is asked in this turn: the person's words, the files that came with them, or the event. Pure."""

import json

from paddock_runners.toolkit.transcript import shortened
from paddock_sdk import RunContext

MAX_EVENT = 4000


def prompt_of(ctx: RunContext) -> str:
    """Never empty: a harness that is asked nothing does nothing, or fails."""
    files = [
        f"- {file.name or file.artifact_id} ({file.mime_type or 'file'}, id {file.artifact_id})"
        for file in ctx.input.attachments
    ]
    attached = ["Attached files; read one with the host's tool artifact_read:", *files] if files else []
    told = "\n".join(part for part in (ctx.text, *attached) if part)
    return told or _event(ctx)


def _event(ctx: RunContext) -> str:
    about = shortened(json.dumps(ctx.event.data, ensure_ascii=False), MAX_EVENT) if ctx.event.data else ""
    return f"This happened: {ctx.event.event_type}\n{about}".rstrip()
