"""Rows of the calls that runs made to tools, models and platforms, and their outcomes."""

from paddock.rules.values import Value


class ToolCallRow(Value, frozen=True):
    """One call of a tool: written before the call is made, written again when it has ended.

    A call that has begun and not ended when its run is over has an outcome nobody knows: it is on record as
    `unknown`, and it is never made a second time.
    """

    call_id: str
    run_id: str
    session_id: str
    workspace_id: str
    user_id: str
    agent_id: str
    tool_name: str
    status: str
    """started, completed, failed (the tool said so) or unknown"""
    parameters: bytes
    result: bytes
    """JSON; of a large result only the preview, the rest is the artifact."""
    artifact_id: str | None
    started_at: float
    ended_at: float | None


class PlacedCall(Value, frozen=True):
    """A call of a tool, and where it stands in its conversation: after the fact of that number."""

    row: ToolCallRow
    after: int
    number: int
    """The order among the calls that stand after the same fact."""


class ModelUsageRow(Value, frozen=True):
    """One call of a model and what it used. What the provider did not count is None, which is not zero.

    One that takes a while is written while it is under way, too. If it has not ended when its run is over, nobody knows
    what came of it: it is on record as `unknown`, with an estimate of what was asked.
    """

    call_id: str
    run_id: str
    session_id: str
    workspace_id: str
    user_id: str
    agent_id: str
    model_id: str
    answered_by: str
    """The model that answered: another than was asked when a fallback stepped in."""
    operation: str
    result: str
    """started, ok, cancelled, unknown, or the code of the error"""
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    cost: float | None
    started_at: float
    ended_at: float
    """While it is under way: when it began."""
    estimated: bool = False
    """The host's own guess: the provider did not come to count, or never does."""


class ApprovalRow(Value, frozen=True):
    """A platform action that a run asked for; written once. What became of it is in its steps."""

    approval_id: str
    workspace_id: str
    user_id: str
    session_id: str
    run_id: str
    agent_id: str
    action: str
    target: bytes
    payload: bytes
    created_at: float
    expires_at: float


class ApprovalStepRow(Value, frozen=True):
    """One step of an approval, `decided` or `done`; written once, by the first writer, which `token` names. A
    second one is a conflict, and what was to be written with it is not written."""

    approval_id: str
    step: str
    result: str
    actor: str
    time: float
    token: str
    detail: str = ""


Calls = ToolCallRow | ModelUsageRow | ApprovalRow | ApprovalStepRow
