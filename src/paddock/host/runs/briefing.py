"""The beginning of a run: its context, and the place where it is put.

The context holds its input, the state it may see, and the words it takes over. Most runs need nothing looked up and
nothing set up, and begin without a wait.
"""

from functools import partial
from typing import Any, Protocol, get_args

import msgspec
import structlog

from paddock.host.outage import Outage
from paddock.host.runs.live_run import LiveRun
from paddock.host.runs.surroundings import RunSurroundings
from paddock.ports import ConversationRecords, KeptRecords, Placement
from paddock.rules.access.permissions import state_key
from paddock.rules.log.events import KINDS
from paddock.rules.log.payloads import HANDOVER
from paddock.rules.rows.rows import TranscriptRow, View
from paddock.rules.run.context import NO_STATE, StateShown, run_context, unseen_tools
from paddock.rules.values import replace
from paddock_sdk.protocol.results import StateScope

log = structlog.get_logger("paddock.runs")

SNAPSHOT_BYTES = 256 * 1024
"""Most bytes of state in a run's context; a run reads more by `state.get`."""
SNAPSHOT_SCOPES = frozenset(get_args(StateScope))
LOOK_BACK = 500
MAX_NAMED = 10
"""Names of a client's tools in one line of the log."""
MAX_HANDOVER_CHARS = 100_000
"""Most characters of one agent's words that another gets as its input; the rest is in the history."""

_decode = msgspec.json.decode


class _Records(ConversationRecords, KeptRecords, Protocol): ...


class Briefing:
    def __init__(
        self, records: _Records, outage: Outage, *, host_version: str, surroundings: RunSurroundings | None = None
    ) -> None:
        self._records = records
        self._outage = outage
        self._version = host_version
        self._surroundings = surroundings

    def at_once(self, run: LiveRun) -> tuple[dict[str, Any], Placement] | None:
        """The context and the place of a run that needs nothing looked up and nothing set up; None for other runs."""
        if "state.get" in run.grant.actions or _began_elsewhere(run) or self._needs_surroundings(run):
            return None
        return self._context(run, NO_STATE), _usual_place(run)

    async def prepared(self, run: LiveRun) -> tuple[dict[str, Any], Placement]:
        """The context and the place of any run. Raises HostError and StorageUnavailableError."""
        context = self._context(run, await self._outage.outlast(partial(self._look_up, run)))
        if self._surroundings is None or not self._needs_surroundings(run):
            return context, _usual_place(run)
        run.close_surroundings = self._surroundings.close
        return context, await self._surroundings.prepare(run, context)

    def _needs_surroundings(self, run: LiveRun) -> bool:
        grant, isolation = run.grant, run.agent.extras.isolation
        return self._surroundings is not None and (grant.mcp or grant.working_directory or isolation is not None)

    async def _look_up(self, run: LiveRun) -> StateShown:
        state = await self._state(run) if "state.get" in run.grant.actions else NO_STATE
        if _takes_over(run):
            await self._fill_in(run)
        if _began_elsewhere(run):
            await self._find_place(run)
        return state

    async def _find_place(self, run: LiveRun) -> None:
        """Fill in where the conversation stood when the run began, as far as the run can read it."""
        given, _ = run.session.input_of(run.run_id)
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
        run.session.fill_input(run.run_id, found)

    def _context(self, run: LiveRun, state: StateShown) -> dict[str, Any]:
        given, trace_id = run.session.input_of(run.run_id)
        if unseen := unseen_tools(run.agent, given):
            text, named = "tools of a client have the names of others", unseen[:MAX_NAMED]
            log.warning(text, action="run.start", run_id=run.run_id, tools=named, count=len(unseen))
        return run_context(run.agent, run.grant, given, trace_id=trace_id, state=state, host_version=self._version)

    async def _fill_in(self, run: LiveRun) -> None:
        given, _ = run.session.input_of(run.run_id)
        parent = given.event.data.get("parent_run_id") if given.event else None
        items = await self._records.transcript(run.session.session_id, limit=LOOK_BACK)
        words = [item.content for item in reversed(items) if item.run_id == parent and _is_message(item)]
        text = "\n\n".join(words)[-MAX_HANDOVER_CHARS:]
        run.session.fill_input(run.run_id, replace(given, text=text))

    async def _state(self, run: LiveRun) -> StateShown:
        """Read the values this run may see, by scope. Those that do not fit are only named."""
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


def _usual_place(run: LiveRun) -> Placement:
    return Placement(checked_for=run.agent.checked_for, workspace=run.grant.scope.workspace_id)


def _takes_over(run: LiveRun) -> bool:
    given, _ = run.session.input_of(run.run_id)
    return given.event is not None and given.event.event_type == HANDOVER


def _began_elsewhere(run: LiveRun) -> bool:
    """True when the input may not be the newest item: it waited, or is not a plain message."""
    given, _ = run.session.input_of(run.run_id)
    return given.waited or given.event is not None


def _is_message(item: TranscriptRow) -> bool:
    return item.role == "assistant" and item.item_type == "message"
