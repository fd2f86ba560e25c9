"""Prompt of a turn: the person's words, where the files that came with them lie, or the event."""

import json
from collections.abc import Sequence

from paddock_runners.toolkit.speakers import is_group, speaker_of, spoken_by
from paddock_runners.toolkit.transcript import shortened
from paddock_sdk import RunContext

MAX_EVENT = 4000


ATTACHED = "Attached files, in the working directory (the host's tool artifact_read reads them too, by id):"


def prompt_of(ctx: RunContext, files: Sequence[str] = ()) -> str:
    """Never empty: a harness that is asked nothing does nothing, or fails."""
    text = spoken_by(speaker_of(ctx.actor, group=is_group(ctx)), ctx.text)
    return with_files(text, files) or _event(ctx)


def with_files(words: str, files: Sequence[str]) -> str:
    return "\n".join(part for part in (words, *([ATTACHED, *files] if files else [])) if part)


def _event(ctx: RunContext) -> str:
    about = shortened(json.dumps(ctx.event.data, ensure_ascii=False), MAX_EVENT) if ctx.event.data else ""
    return f"This happened: {ctx.event.event_type}\n{about}".rstrip()
