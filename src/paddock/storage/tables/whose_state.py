"""Schema step `whose_state`: what agents kept for an actor or a subject is given to whom it certainly belongs.

Before, its key had the bare id: a user, and people of different platforms, with one id shared one memory. The logs tell
who of that id there was. What was only one's goes on for them, a user of the workspace keeps what was theirs, and what
people of several platforms kept together is set aside: nobody is shown what somebody else said.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from paddock.rules.access.permissions import Grant, Identity, RunScope, scope_key, state_key
from paddock.rules.log.chain import StoredFact
from paddock.rules.log.payloads import HANDOVER, MESSAGE, RunEvent, as_object
from paddock.rules.log.projection import SUBTHREAD
from paddock.rules.run.scopes import run_scope
from paddock.storage.tables.conversations import TURNS
from paddock.storage.tables.log import facts_in_order
from paddock.storage.tables.statements import Work, ask

# ruff: noqa: S608 - the column lists are our own, values are always bound
ASIDE = "unclaimed:"
HANDED_OVER = "CONTROL:HANDOVER_CONTEXT"
INPUTS = frozenset({"USER_INPUT", "USER_INPUT:MENTION", HANDED_OVER})
ON_PLATFORMS = "select session_id from platform_conversations"
_SCHEDULER = ("system", "scheduler")


class _Agent(NamedTuple):
    """An agent of a workspace, with the runner that kept something for it."""

    workspace_id: str
    agent_id: str
    runner_id: str

    def old_key(self, scope: str, kind: object, name: object) -> str:
        identity: Identity = ((f"{scope}_type", _text(kind)), (f"{scope}_id", _text(name)))
        return scope_key(scope, self.workspace_id, self.agent_id, self.runner_id, identity)


def give_to_owners() -> Work[None]:
    found = yield ask(
        "select distinct scope_key from state where scope_key like 'actor:%' or scope_key like 'subject:%'"
    )
    kept = {key for (key,) in found}
    if not kept:
        return
    agents = {_Agent(*row) for row in (yield ask("select distinct workspace_id, agent_id, runner_id from runs"))}
    claims: defaultdict[str, set[str]] = defaultdict(set)
    for session in (yield from _sessions(kept, agents)):
        yield from _claim(session, claims)
    for agent, user in (yield from _users_at_our_doors(agents)):
        claims[(key := agent.old_key("actor", "user", user))].add(key)
    for old in sorted(kept & claims.keys()):
        if old not in claims[old]:
            new = next(iter(claims[old])) if len(claims[old]) == 1 else ASIDE + old
            yield ask("update state set scope_key = :new where scope_key = :old", new=new, old=old)


def _sessions(kept: set[str], agents: set[_Agent]) -> Work[Sequence[Sequence[Any]]]:
    """Sessions whose logs tell whose it is: those of platforms, and of agents that kept something for a schedule or for
    another agent."""
    columns = "session_no, session_id, workspace_id, user_id"
    found = {row[1]: row for row in (yield ask(f"select {columns} from sessions where session_id in ({ON_PLATFORMS})"))}
    for agent in agents:
        others = [("agent", other.agent_id) for other in agents if other.workspace_id == agent.workspace_id]
        if kept.isdisjoint(agent.old_key("actor", *who) for who in (_SCHEDULER, *others)):
            continue
        sql = f"""
select {columns} from sessions where session_id in (
  select session_id from runs
   where workspace_id = :workspace_id and agent_id = :agent_id and runner_id = :runner_id)"""
        found |= {row[1]: row for row in (yield ask(sql, **agent._asdict()))}
    return list(found.values())


def _claim(session: Sequence[Any], claims: Mapping[str, set[str]]) -> Work[None]:
    """Note for each old key of a session's runs which key is theirs now."""
    number, session_id, workspace_id, user_id = session
    sql = f"select run_id, agent_id, runner_id from runs where run_id in ({TURNS.format(number=':number')})"
    runs = {run_id: _Agent(workspace_id, *agent) for run_id, *agent in (yield ask(sql, number=number))}
    for fact in (yield from facts_in_order(session_id)):
        agent, told = runs.get(fact.turn_id or ""), _event_of(fact)
        if agent is None or told is None:
            continue
        event, source = told
        scope = run_scope("", workspace_id, user_id, agent.agent_id, session_id, event=event, source=source)
        old = agent.old_key("actor", scope.actor_type, scope.actor_id or user_id)
        claims[old].add(_new_key("actor", scope, agent))
        if scope.subject_id:
            old = agent.old_key("subject", scope.subject_type, scope.subject_id)
            claims[old].add(_new_key("subject", scope, agent))


def _event_of(fact: StoredFact) -> tuple[RunEvent | None, str] | None:
    """What an input says of whose it is, and where it came from; None for every other fact. It is read leniently: some
    of it may be erased."""
    payload: Mapping[str, Any] = as_object(fact.read_payload()) if fact.kind in INPUTS else {}
    if fact.kind == HANDED_OVER:
        actor = {"actor_type": "agent", "actor_id": payload.get("from_agent_id")}
        metadata = fact.read_metadata()
        about: Mapping[str, Any] = {
            "actor": actor,
            "delivery": metadata.get("delivery"),
            "thread_id": metadata.get(SUBTHREAD),
        }
        return _event(HANDOVER, about), "system"
    run: Mapping[str, Any] = as_object(payload.get("run"))
    if "source" not in run:
        return None
    event = as_object(run.get("event"))
    return _event(_text(event.get("event_type")) or MESSAGE, event) if event else None, str(run["source"])


def _event(event_type: str, given: Mapping[str, Any]) -> RunEvent:
    return RunEvent(
        event_type,
        actor=as_object(given.get("actor")) or None,
        subject=as_object(given.get("subject")) or None,
        delivery=as_object(given.get("delivery")) or None,
        subthread_id=_text(given.get("thread_id")),
    )


def _new_key(scope: str, at: RunScope, agent: _Agent) -> str:
    grant = Grant(agent.runner_id, frozenset(), frozenset(), frozenset(), scope=at, deadline_at=0.0)
    return state_key(scope, grant) or ""


def _users_at_our_doors(agents: Iterable[_Agent]) -> Work[set[tuple[_Agent, str]]]:
    """Users who spoke with an agent themselves; those of whose logs a part is gone may have spoken with any."""
    sql = f"""
select distinct workspace_id, agent_id, runner_id, user_id from runs where session_id not in ({ON_PLATFORMS})"""
    spoke = {(_Agent(*agent), user) for *agent, user in (yield ask(sql))}
    sql = f"""
select distinct workspace_id, user_id from sessions where trimmed_seq > 0 and session_id not in ({ON_PLATFORMS})"""
    for workspace_id, user in (yield ask(sql)):
        spoke |= {(agent, user) for agent in agents if agent.workspace_id == workspace_id}
    return spoke


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
