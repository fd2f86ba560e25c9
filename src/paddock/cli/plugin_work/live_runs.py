"""Which runs a plugin under work has, seen from the lines that are carried to it and back. Decides nothing."""

import asyncio
import json
from typing import Any, cast

from paddock_sdk.protocol.results import TERMINAL_TYPES


class LiveRuns:
    def __init__(self) -> None:
        self._runs: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._runs)

    def heard(self, line: bytes) -> None:
        """A line from the host: it begins a run, or has it stopped, and then nobody waits for it any more."""
        if b'"run_agent"' in line and (started := _params(line, "run_agent")):
            self._runs.add(str(started["context"]["run_id"]))
        elif b'"cancel_run"' in line:
            self._runs.discard(str(_params(line, "cancel_run").get("run_id")))
        self._look()

    def said(self, line: bytes) -> None:
        """A line from the plugin, perhaps the last one of a run."""
        if b'"run.' in line:
            params = _params(line, "run_result")
            if params.get("type") in TERMINAL_TYPES:
                self._runs.discard(str(params.get("run_id")))
                self._look()

    async def over(self) -> None:
        """Wait until none is under way."""
        await self._idle.wait()

    def _look(self) -> None:
        self._idle.clear() if self._runs else self._idle.set()


def _params(line: bytes, method: str) -> dict[str, Any]:
    """What a frame of this kind carries; nothing when it is of another kind, or none."""
    try:
        frame: Any = json.loads(line)
        return cast("dict[str, Any]", frame["params"]) if frame["method"] == method else {}
    except (ValueError, LookupError, TypeError):
        return {}
