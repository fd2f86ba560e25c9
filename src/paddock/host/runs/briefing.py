"""The context a run begins with: its input, the state it may see, and the words it takes over.

Most runs need nothing looked up, and begin without a wait.
"""

from functools import partial
from typing import Any, Protocol

import msgspec
import structlog

from paddock.host.cluster.outage import Outage
from paddock.host.runs.live_run import LiveRun
from paddock.ports import ConversationRecords, KeptRecords
from paddock.rules.access.permissions import state_key
from paddock.rules.log.events import KINDS
from paddock.rules.rows.rows import TranscriptRow, View
from paddock.rules.run.context import NO_STATE, StateShown, run_context, unseen_tools
from paddock.rules.run.events import HANDOVER
from paddock.rules.values import replace

log = structlog.get_logger("paddock.runs")

SNAPSHOT_BYTES = 256 * 1024
"""Most bytes of state in a run's context; more is read by `state.get`."""
SNAPSHOT_SCOPES = frozenset({"conversation", "actor", "subject", "runner"})
LOOK_BACK = 500
MAX_NAMED = 10
"""Names of a client's tools in one line of the log."""
MAX_HANDOVER_CHARS = 100_000
"""Most characters of one agent's words that another gets as its input; the rest is in the history."""

_decode = msgspec.json.decode


class _Records(ConversationRecords, KeptRecords, Protocol):
    """The ports of the store that are used here."""


class Briefing:
    def __init__(self, records: _Records, outage: Outage, *, host_version: str) -> None:
        self._records = records
        self._outage = outage
        self._version = host_version

    def needs_lookup(self, run: LiveRun) -> bool:
        """Tell whether something for the context must be read from the store."""
        return "state.get" in run.grant.actions or _began_elsewhere(run)

    def at_once(self, run: LiveRun) -> dict[str, Any]:
        """The context of a run that needs nothing looked up."""
        return self._context(run, NO_STATE)

    async def looked_up(self, run: LiveRun) -> dict[str, Any]:
        """The context of a run, with what the store knows. Raises StorageUnavailableError."""
        return self._context(run, await self._outage.outlast(partial(self._look_up, run)))

    async def _look_up(self, run: LiveRun) -> StateShown:
        """Read what the run is told from the store: the state it may see, and what it takes over."""
        state = await self._state(run) if "state.get" in run.grant.actions else NO_STATE
        if _takes_over(run):
            await self._fill_in(run)
        if _began_elsewhere(run):
            await self._find_place(run)
        return state

    async def _find_place(self, run: LiveRun) -> None:
        """Where the conversation stood when the run began, of what the run can read of it."""
        given, _ = run.session.input_of(run.turn_id)
        session_id, begun = run.session.session_id, given.begun_seq or given.seq
        view = View(run.grant.scope.subthread_id)
        events = await self._records.events(session_id, kinds=KINDS, before=begun + 1, limit=1, view=view)
        items = await self._records.transcript(session_id, before=begun, limit=1, view=view)
        earlier = await self._records.transcript(session_id, before=begun, limit=1, view=replace(view, as_of=begun))
        found = replace(
            given,
            newest_event=events[0].seq if events else given.seq,
            newest_item=items[0].seq if items else 0,
            earlier_history=bool(earlier),
        )
        run.session.fill_input(run.turn_id, found)

    def _context(self, run: LiveRun, state: StateShown) -> dict[str, Any]:
        given, trace_id = run.session.input_of(run.turn_id)
        if unseen := unseen_tools(run.part, given):
            text, named = "tools of a client have the names of others", unseen[:MAX_NAMED]
            log.warning(text, action="run.start", run_id=run.turn_id, tools=named, count=len(unseen))
        return run_context(run.part, run.grant, given, trace_id=trace_id, state=state, host_version=self._version)

    async def _fill_in(self, run: LiveRun) -> None:
        """Give the words of the agent before as input to the one that takes over."""
        given, _ = run.session.input_of(run.turn_id)
        parent = given.event.data.get("parent_run_id") if given.event else None
        items = await self._records.transcript(run.session.session_id, limit=LOOK_BACK)
        said = [item.content for item in reversed(items) if item.run_id == parent and _is_said(item)]
        text = "\n\n".join(said)[-MAX_HANDOVER_CHARS:]
        run.session.fill_input(run.turn_id, replace(given, text=text))

    async def _state(self, run: LiveRun) -> StateShown:
        """The values this run may see, by scope; what does not fit is named and left for it to ask."""
        keys = {scope: key for scope in run.grant.state_scopes if (key := state_key(scope, run.grant)) is not None}
        shown = {scope: key for scope, key in keys.items() if scope in SNAPSHOT_SCOPES}
        kept = await self._records.state_snapshot(list(shown.values()), max_bytes=SNAPSHOT_BYTES)
        snapshot: dict[str, dict[str, Any]] = {}
        left_out: dict[str, list[str]] = {}
        for scope, key in keys.items():
            there = kept.get(key)
            run.state_sizes[scope] = await self._records.state_size(key) if there is None else there.size
            if there is not None:
                snapshot[scope] = {name: _decode(value) for name, value in there.values.items()}
                if there.left_out:
                    left_out[scope] = list(there.left_out)
        return StateShown(snapshot, left_out)


def _takes_over(run: LiveRun) -> bool:
    given, _ = run.session.input_of(run.turn_id)
    return given.event is not None and given.event.event_type == HANDOVER


def _began_elsewhere(run: LiveRun) -> bool:
    """Tell if the input need not be the newest item: it waited, or no plain message of a session with one thread."""
    given, _ = run.session.input_of(run.turn_id)
    return given.waited or given.event is not None


def _is_said(item: TranscriptRow) -> bool:
    return item.role == "assistant" and item.item_type == "message"
