"""Where a run happens, for whom, and who and what its event is about. Pure."""

from paddock.rules.access.permissions import RunScope
from paddock.rules.log.payloads import PLATFORM, RunEvent, actor_of


def run_scope(
    run_id: str, workspace_id: str, user_id: str, agent_id: str, session_id: str, *, event: RunEvent | None, source: str
) -> RunScope:
    """Return the scope of a run; `user_id` is the owner of its session."""
    if event is None:
        return RunScope(run_id, workspace_id, user_id, agent_id, session_id)
    actor, subject = actor_of(event, user_id, source), event.subject or {}
    surface = event.delivery.get("surface") if event.delivery is not None else None
    return RunScope(
        run_id,
        workspace_id,
        user_id,
        agent_id,
        session_id,
        subthread_id=event.subthread_id,
        actor_type=str(actor.get("actor_type") or "user"),
        actor_id=actor.get("actor_id"),
        subject_type=subject.get("subject_type"),
        subject_id=subject.get("subject_id"),
        platform=surface if source == PLATFORM else None,
        surface=surface,
        named=surface is None or (source == PLATFORM and bool(event.actor)),
    )
