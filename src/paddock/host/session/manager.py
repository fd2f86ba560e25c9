"""Session manager: looks agents up, stores and loads what is known of them, opens and closes sessions.

A session asks by a command that is on record; the answer comes back as a message and is on record too. Every request
has a timer. Asking again under the same name is safe, because every request may be done twice.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
import structlog

from paddock.host.agents.agents import Agents
from paddock.host.session.loop import SessionLoop
from paddock.ports import ConversationRecords, SessionRecords
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import AuditRow, KeptMemberRow
from paddock.rules.session.commands import AskManager, AwaitConfirm, AwaitManager, ChainCommand, SessionTimeouts
from paddock.rules.session.facts import ManagerAnswer
from paddock.rules.session.messages import ConfirmTimedOut, ManagerReplied, ManagerTimedOut, Message

log = structlog.get_logger("paddock.session_manager")

LOOK_BACK = 200
"""Items that are searched for an agent's last message."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.decode

_FAILED: Mapping[str, ManagerAnswer] = {
    "add_agent": "ADD_AGENT_FAILED",
    "remove_agent": "REMOVE_AGENT_FAILED",
    "session_open": "SESSION_FAILED",
    "session_close": "SESSION_FAILED",
}


class _Records(ConversationRecords, SessionRecords, Protocol): ...


class Readiness(Protocol):
    """Tells whether an agent can answer."""

    async def prepare(self, agent_id: str | None, workspace: str) -> None: ...
    def refusal(self, agent_id: str, workspace: str) -> HostError | None: ...


@dataclass(kw_only=True, eq=False)
class SessionManager:
    records: _Records
    agents: Agents
    readiness: Readiness
    clock: Callable[[], float]
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    timeouts: SessionTimeouts = field(default_factory=SessionTimeouts)
    _timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict[str, asyncio.TimerHandle], init=False)

    def __post_init__(self) -> None:
        self._requests = {
            "add_agent": self._add,
            "remove_agent": self._remove,
            "session_open": self._open,
            "session_close": self._close,
        }

    def perform(self, session: SessionLoop, command: ChainCommand) -> None:
        match command:
            case AskManager():
                self.spawn(self._answer(session, command))
            case AwaitManager(tx_id=tx_id):
                self._arm(tx_id, self.timeouts.manager, session, lambda: ManagerTimedOut(tx_id, self.clock()))
            case AwaitConfirm(tx_id=tx_id):
                self._arm(tx_id, self.timeouts.confirm, session, lambda: ConfirmTimedOut(tx_id, self.clock()))

    def over(self, tx_id: str) -> None:
        timer = self._timers.pop(tx_id, None)
        if timer is not None:
            timer.cancel()

    def _arm(self, tx_id: str, seconds: float, session: SessionLoop, news: Callable[[], Message]) -> None:
        """Start the timer of a transaction. It waits for one thing at a time, so its last timer is its only one."""
        self.over(tx_id)

        def ring() -> None:
            self._timers.pop(tx_id, None)
            session.post(news())

        self._timers[tx_id] = asyncio.get_running_loop().call_later(seconds, ring)

    # --- requests ----------------------------------------------------------------------------------------------------

    async def _answer(self, session: SessionLoop, asked: AskManager) -> None:
        try:
            async with asyncio.timeout(self.timeouts.manager):
                answer, payload = await self._requests[asked.request](session, asked)
        except HostError as error:
            answer, payload = _FAILED[asked.request], _error(str(error.code), error.message, retryable=error.retryable)
        except (StorageUnavailableError, TimeoutError):
            text = "the store cannot write now; try again shortly"
            answer, payload = _FAILED[asked.request], _error("storage_unavailable", text, retryable=True)
        except Exception:
            log.exception("a request failed", action=f"session_manager.{asked.request}", session_id=session.session_id)
            text = "the host made a mistake; its log has the details"
            answer, payload = _FAILED[asked.request], _error("runtime_error", text, retryable=False)
        session.post(ManagerReplied(asked.tx_id, answer, payload, self.clock()))

    async def _add(self, session: SessionLoop, asked: AskManager) -> tuple[ManagerAnswer, Mapping[str, Any]]:
        """Add a configured agent whose runner can be started, with what was kept of it."""
        agent_id, workspace = asked.agent_id or "", session.owner.workspace_id
        agents = self.agents
        if not agents.known(agent_id, workspace):
            known = ", ".join(binding.agent_id for binding in agents.list(workspace))
            return "ADD_AGENT_FAILED", _error("not_found", f"there is no agent {agent_id!r}; known are: {known}")
        with suppress(TimeoutError):  # one that is slow to start may join: its first run waits for it
            async with asyncio.timeout(self.timeouts.manager / 2):
                await self.readiness.prepare(agent_id, workspace)
        if (refusal := self.readiness.refusal(agent_id, workspace)) is not None:
            return "ADD_AGENT_FAILED", _error("agent_not_ready", refusal.message, retryable=True)
        kept = await self.records.kept_member(session.session_id, agent_id)
        return "ADD_AGENT_DONE", {} if kept is None else {"restored": True, "info": _decode(kept.info)}

    async def _remove(self, session: SessionLoop, asked: AskManager) -> tuple[ManagerAnswer, Mapping[str, Any]]:
        """Keep what is known of the agent here. What its runner keeps of the conversation stays there."""
        agent_id, now = asked.agent_id or "", self.clock()
        info = {"left_at": now, "reason": asked.about.get("reason") or "", **await self._last_word(session, agent_id)}
        row = KeptMemberRow(session.session_id, agent_id, now, _encode(info))
        await self.records.write([row, self._audit(session, "session.agent_kept", agent_id)])
        return "REMOVE_AGENT_DONE", {"info": info}

    async def _last_word(self, session: SessionLoop, agent_id: str) -> Mapping[str, Any]:
        items = await self.records.transcript(session.session_id, limit=LOOK_BACK)
        last = next((item for item in items if item.agent_id == agent_id), None)
        return {} if last is None else {"last_run_id": last.run_id, "last_seq": last.seq}

    async def _open(self, session: SessionLoop, _asked: AskManager) -> tuple[ManagerAnswer, Mapping[str, Any]]:
        """Return the members of a session that opens: those of before that still exist, else the default agent."""
        agents, workspace = self.agents, session.owner.workspace_id
        here = [agent_id for agent_id in session.state.members if agents.known(agent_id, workspace)]
        default = agents.default_agent_id
        if not here and default is not None and agents.known(default, workspace):
            here = [default]
        active = session.state.active_agent_id
        now_active = active if active in here else default if default in here else next(iter(here), None)
        return "SESSION_OPENED", {"members": here, "active_agent_id": now_active}

    async def _close(self, session: SessionLoop, _asked: AskManager) -> tuple[ManagerAnswer, Mapping[str, Any]]:
        """Record that the session was closed. Everything else is on record already."""
        await self.records.write([self._audit(session, "session.closed", session.session_id)])
        return "SESSION_CLOSED", {}

    def _audit(self, session: SessionLoop, action: str, resource: str) -> AuditRow:
        return AuditRow(
            time=self.clock(),
            workspace_id=session.owner.workspace_id,
            actor="session_manager",
            action=action,
            resource=resource,
            scope=session.session_id,
            result="allowed",
            reason="asked by the session",
            session_id=session.session_id,
        )


def _error(code: str, message: str, *, retryable: bool = False) -> Mapping[str, Any]:
    return {"code": code, "message": message, "retryable": retryable}
