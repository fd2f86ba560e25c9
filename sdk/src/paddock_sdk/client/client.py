"""Client for a host: one method for each operation. Runs go on without the client; a broken stream can be resumed."""

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast
from urllib.parse import quote, urlencode

from paddock_sdk.client import shapes
from paddock_sdk.client.shapes import Accepted, FoundPage, HistoryDay, Me, Run, RunFailedError, Session
from paddock_sdk.client.types import AgUiEvent
from paddock_sdk.client.wire import UNAVAILABLE, GoneError, RefusedError, Wire

RUNS = "/api/v1/agent/runs"
SESSIONS = "/api/v1/agent/sessions"
ME = "/api/v1/users/me"
TERMINAL = frozenset({"RUN_FINISHED", "RUN_ERROR"})
PATIENCE_SECONDS = 30.0
"""How long a stream that broke is asked for again before we give up."""
PAUSE_SECONDS = 0.2
KEEP: Any = object()
"""Leave a setting as it is."""


class Client:
    def __init__(self, url: str, key: str = "") -> None:
        """`key` is an API key or a signed token; on loopback none is needed while the host has no keys."""
        self.wire = Wire(url.rstrip("/"), key)

    # --- runs --------------------------------------------------------------------------------------------------------

    def ask(self, text: str, *, thread_id: str | None = None, agent: str | None = None) -> str:
        """Say something and wait for the whole answer. Raises RunFailedError, RefusedError, GoneError."""
        accepted = self.send(text, thread_id=thread_id, agent=agent)
        return "".join(self.answer(accepted.task_id))

    def send(
        self,
        text: str,
        *,
        thread_id: str | None = None,
        agent: str | None = None,
        run_id: str | None = None,
        client_time: Mapping[str, Any] | None = None,
    ) -> Accepted:
        """Hand in a message. The same again, under the same `run_id`, is taken once."""
        body = run_input(text, thread_id or str(uuid.uuid4()), run_id or str(uuid.uuid4()), client_time)
        query = f"?agent={quote(agent, safe='')}" if agent else ""
        return shapes.accepted(self.wire.call("POST", RUNS + query, body))

    def answer(self, task_id: str) -> Iterator[str]:
        """The words of a run's messages as they come, messages apart by an empty line. Raises RunFailedError."""
        begun = ""
        for event in self.events(task_id):
            match event:
                case {"type": "TEXT_MESSAGE_CONTENT", "delta": str(words), "messageId": str(message)}:
                    yield words if begun in ("", message) else f"\n\n{words}"
                    begun = message
                case {"type": "RUN_ERROR"}:
                    raise RunFailedError(str(event.get("code", "")), str(event.get("message", "the run failed")))
                case {"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}:
                    raise RunFailedError("cancelled", "the run was cancelled")
                case _:
                    pass

    def events(self, task_id: str) -> Iterator[AgUiEvent]:
        """Every AG-UI event of a run, from its first to its last, each once, also when the connection breaks."""
        cursor, broken_since = "", None
        while True:
            try:
                for event in self.wire.events(f"{RUNS}/{quote(task_id, safe='')}/events", after=cursor):
                    cursor, broken_since = event.cursor or cursor, None
                    content = cast("AgUiEvent", json.loads(event.data))
                    yield content
                    if content.get("type") in TERMINAL:
                        return
            except (GoneError, RefusedError) as error:
                if not _worth_another_try(error, broken_since):
                    raise
            broken_since = broken_since or time.monotonic()
            time.sleep(PAUSE_SECONDS)

    def run(self, task_id: str) -> Run:
        return shapes.run(self.wire.call("GET", f"{RUNS}/{quote(task_id, safe='')}"))

    def cancel(self, task_id: str) -> Run:
        """The wish is on record when this returns; it may be repeated."""
        return shapes.run(self.wire.call("POST", f"{RUNS}/{quote(task_id, safe='')}/cancel", {}))

    # --- conversations -----------------------------------------------------------------------------------------------

    def history(self, thread_id: str | None = None, *, before: str | None = None) -> HistoryDay:
        """The latest day with a message, strictly before `before` (YYYY-MM-DD), of a thread or the one opened last."""
        asked = {name: value for name, value in (("threadId", thread_id), ("before", before)) if value is not None}
        return shapes.history_day(self.wire.call("GET", f"/api/v1/agent/history?{urlencode(asked)}"))

    def days(self, thread_id: str) -> Iterator[HistoryDay]:
        """All days of a thread, the latest first."""
        found = self.history(thread_id)
        while found.day is not None:
            yield found
            if not found.has_more:
                return
            found = self.history(thread_id, before=found.day)

    def sessions(self, *, limit: int = 50) -> Sequence[Session]:
        return [shapes.session(one) for one in self.wire.call("GET", f"{SESSIONS}?limit={limit}")["sessions"]]

    def search(
        self, query: str, *, before: int | None = None, archived: bool | None = None, limit: int = 50
    ) -> FoundPage:
        """Conversations by their titles and by what was said in them; `before` is `next` of the page before."""
        asked: dict[str, Any] = {"query": query, "limit": limit, "before": before}
        asked["archived"] = None if archived is None else str(archived).lower()
        given = urlencode({name: value for name, value in asked.items() if value is not None})
        return shapes.found_page(self.wire.call("GET", f"{SESSIONS}?{given}"))

    def rename(self, thread_id: str, title: str) -> None:
        self.wire.call("PATCH", f"{SESSIONS}/{quote(thread_id, safe='')}", {"title": title})

    def edit(self, thread_id: str, item_id: str, text: str) -> Accepted:
        """Say an earlier message differently; the conversation goes on from there."""
        path = f"{SESSIONS}/{quote(thread_id, safe='')}/edit"
        return shapes.accepted(self.wire.call("POST", path, {"itemId": item_id, "content": text}))

    def regenerate(self, thread_id: str, item_id: str) -> Accepted:
        path = f"{SESSIONS}/{quote(thread_id, safe='')}/regenerate"
        return shapes.accepted(self.wire.call("POST", path, {"itemId": item_id}))

    def rate(self, thread_id: str, item_id: str, rating: Literal["up", "down"] | None, comment: str = "") -> None:
        path = f"{SESSIONS}/{quote(thread_id, safe='')}/messages/{quote(item_id, safe='')}/feedback"
        self.wire.call("PUT", path, {"rating": rating, "comment": comment})

    # --- you ---------------------------------------------------------------------------------------------------------

    def me(self) -> Me:
        return shapes.me(self.wire.call("GET", ME))

    def set_me(self, *, timezone: str | None = KEEP, locale: str | None = KEEP) -> Me:
        """None takes a setting back; what is not named stays."""
        given = {name: value for name, value in (("timezone", timezone), ("locale", locale)) if value is not KEEP}
        return shapes.me(self.wire.call("PATCH", ME, {"profile": {"settings": given}}))


def run_input(text: str, thread_id: str, run_id: str, client_time: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One message of a user, as the native door wants it."""
    props: dict[str, Any] = {"runtime_mode": "chat"} | ({"client_time": dict(client_time)} if client_time else {})
    return {
        "threadId": thread_id,
        "runId": run_id,
        "state": {},
        "messages": [{"id": f"msg-{run_id}", "role": "user", "content": text}],
        "tools": [],
        "context": [],
        "forwardedProps": props,
    }


def _worth_another_try(error: GoneError | RefusedError, broken_since: float | None) -> bool:
    if isinstance(error, RefusedError) and error.status != UNAVAILABLE:
        return False
    return broken_since is None or time.monotonic() - broken_since < PATIENCE_SECONDS
