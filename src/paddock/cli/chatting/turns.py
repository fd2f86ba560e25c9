"""One turn with an agent, seen from the outside: send the input once, follow its events to the end, cancel on demand.

A broken connection costs nothing: the input is sent again under the same label, and the stream goes on after the last
event that arrived. Nothing here prints.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from paddock.cli.client import RUNS, UNAUTHENTICATED, UNAVAILABLE, Event, HostGoneError, RefusedError, at
from paddock_sdk.client.client import run_input

TERMINAL = frozenset({"RUN_FINISHED", "RUN_ERROR"})
PATIENCE_SECONDS = 30.0
PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)


class Host(Protocol):
    """The two requests that a turn makes."""

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any: ...

    def events(self, path: str, *, after: str = "") -> Iterator[Event]: ...


@dataclass(slots=True)
class ChatTurn:
    """A turn under way. `reconnect` gives a fresh client, as a host that came back may have another address."""

    reconnect: Callable[[], Host]
    thread_id: str
    text: str
    agent: str | None = None
    on_lost: Callable[[], None] = lambda: None
    task_id: str = ""
    _run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    _cursor: str = ""
    _ended: bool = False

    def start(self) -> None:
        """Hand the input in. Raises HostGoneError when there is no host at all, RefusedError when it says no."""
        accepted = self.reconnect().call(
            "POST", at(*RUNS, agent=self.agent or None), run_input(self.text, self.thread_id, self._run_id)
        )
        self.task_id = str(accepted["taskId"])

    def events(self) -> Iterator[dict[str, Any]]:
        """Every event not seen yet, until the turn ends; safe to call again after an interruption."""
        broken_since: float | None = None
        while not self._ended:
            try:
                for event in self.reconnect().events(at(*RUNS, self.task_id, "events"), after=self._cursor):
                    broken_since = None
                    yield self._seen(event)
            except (HostGoneError, RefusedError) as error:
                if isinstance(error, RefusedError) and not _passes(error.status, lost=broken_since is not None):
                    raise
                if broken_since is not None and time.monotonic() - broken_since > PATIENCE_SECONDS:
                    raise
            if not self._ended:
                broken_since = self._pause(broken_since)

    def agent_name(self) -> str:
        """Return the answering agent; empty while unknown or queued."""
        try:
            run = self.reconnect().call("GET", at(*RUNS, self.task_id))
        except (HostGoneError, RefusedError):
            return ""
        return str(run.get("agentId") or "")

    def cancel(self) -> None:
        self.reconnect().call("POST", at(*RUNS, self.task_id, "cancel"), {})

    def _seen(self, event: Event) -> dict[str, Any]:
        content = cast("dict[str, Any]", json.loads(event.data))
        self._cursor = event.cursor or self._cursor
        self._ended = content.get("type") in TERMINAL
        return content

    def _pause(self, broken_since: float | None) -> float:
        """Wait a little longer each time; say so once."""
        if broken_since is None:
            self.on_lost()
            time.sleep(PAUSES[0])
            return time.monotonic()
        gone = time.monotonic() - broken_since
        time.sleep(next((pause for pause in PAUSES if pause >= gone / 2), PAUSES[-1]))
        return broken_since


def _passes(status: int, *, lost: bool) -> bool:
    """Return true if a refusal may be over soon: a restarted host has another local token."""
    return status == UNAVAILABLE or (status == UNAUTHENTICATED and lost)
