"""Preparations that Gemini CLI needs before it continues a session."""

import re
from pathlib import Path

CHATS = ".gemini/tmp/*/chats"
ANOTHER_MINUTE = "2000-01-01T00-00"
_SHORT = re.compile(r"[0-9a-f]{8}")


def set_aside(home: Path, session_id: str) -> None:
    """It calls a session's file by the minute in which its process began, and begins that file anew: a turn in the same
    minute as the one before would overwrite the session. Under the name of another minute it finds it all the same, and
    goes on with it; the beginnings it leaves beside it would be taken for the session the next time."""
    short = session_id[:8]
    if _SHORT.fullmatch(short) is None:
        return
    for folder in home.glob(CHATS):
        found = sorted(folder.glob(f"session-*-{short}.jsonl"), key=_size)
        for beginning in found[:-1]:
            beginning.unlink()
        for whole in found[-1:]:
            whole.rename(folder / f"session-{ANOTHER_MINUTE}-{short}.jsonl")


def _size(file: Path) -> int:
    return file.stat().st_size
