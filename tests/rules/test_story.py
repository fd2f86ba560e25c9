"""The story of a run, as far as it is decided without asking anybody."""

from paddock.rules.rows.rows import AuditRow
from paddock.rules.run.story import states_changed


def row(action: str, result: str) -> AuditRow:
    return AuditRow(
        time=1.0,
        workspace_id="w",
        actor="plugin:a/b",
        run_id="r",
        action=action,
        resource="conversation/mood",
        scope="",
        result=result,
        reason="",
    )


def test_what_a_run_kept_or_dropped_is_told_and_what_it_only_tried_or_read_is_not() -> None:
    rows = [row("state.set", "allowed"), row("state.set", "unauthorized"), row("state.get", "allowed")]
    told = states_changed([*rows, row("state.delete", "allowed")])
    assert [(one.kind, one.name) for one in told] == [("state", "state.set"), ("state", "state.delete")]
    assert told[0].detail["resource"] == "conversation/mood"
