"""Constructors for the results a runner yields. Run id, number and time are added when they are sent."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from paddock_sdk.protocol.results import StateScope


class Result:
    """One result: its type and its payload."""

    __slots__ = ("data", "type")

    def __init__(self, type: str, data: Mapping[str, Any]) -> None:  # noqa: A002 - the wire's word
        self.type = type
        self.data = data

    def __repr__(self) -> str:
        return f"Result({self.type!r}, {dict(self.data)!r})"


class Delta(Result):
    """A piece of text on its way. It has its own class because there are thousands of them a second."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:  # the parent's dictionary is built only when somebody asks
        self.text = text

    @property
    def type(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "message.delta"

    @property
    def data(self) -> Mapping[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return {"chunk": {"role": "assistant", "content": self.text}}


def _said(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def delta(text: str) -> Result:
    """The next piece of the answer."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not every author has a type checker
        raise TypeError(f"delta() takes text, not {type(text).__name__}")
    return Delta(text)


def message(content: str | Sequence[Mapping[str, Any]], *, ui_hints: object = None) -> Result:
    """A whole message: text, or a list of content elements. After deltas it states the final text."""
    if not isinstance(content, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"message() takes text or a list of content elements, not {type(content).__name__}")
    return Result("message.completed", _said(message={"role": "assistant", "content": content}, ui_hints=ui_hints))


def tool_started(tool_call_id: str, tool_name: str, parameters: Mapping[str, Any] | None = None) -> Result:
    """A tool is being called; shown to people, nothing is executed by saying so."""
    return Result("tool.call.started", _said(tool_call_id=tool_call_id, tool_name=tool_name, parameters=parameters))


def tool_completed(
    tool_call_id: str,
    tool_name: str,
    *,
    result: object = None,
    artifact: Mapping[str, Any] | None = None,
    error: str | None = None,
) -> Result:
    """The tool has answered, or failed with `error`; the run goes on either way."""
    return Result(
        "tool.call.completed",
        _said(tool_call_id=tool_call_id, tool_name=tool_name, result=result, artifact=artifact, error=error),
    )


def step_started(step_name: str) -> Result:
    """A stage of the run begins; shown to people. Paddock's own, optional: a host that does not know it ignores it."""
    return Result("step.started", {"step_name": step_name})


def step_finished(step_name: str) -> Result:
    """That stage is over. One still open at the run's end is closed by the host."""
    return Result("step.finished", {"step_name": step_name})


def artifact_created(
    artifact_type: str,
    *,
    artifact_id: str | None = None,
    content: bytes | None = None,
    mime_type: str | None = None,
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Result:
    """A file was made: one stored before (`artifact_id`), or a small one that comes along (`content`)."""
    encoded = None if content is None else b64encode(content).decode()
    return Result(
        "artifact.created",
        _said(
            artifact_type=artifact_type,
            artifact_id=artifact_id,
            content_base64=encoded,
            mime_type=mime_type,
            name=name,
            metadata=metadata,
        ),
    )


def state_updated(scope: StateScope, key: str, value: object) -> Result:
    """Ask the host to remember a small JSON value. `api.state.set` does the same and tells whether it worked."""
    return Result("state.updated", {"scope": scope, "key": key, "value": value})


def request_action(
    action: str, target: Mapping[str, Any] | None = None, payload: Mapping[str, Any] | None = None
) -> Result:
    """Ask for a platform action. It is recorded; whether it is done is the host's and the user's decision."""
    return Result("action.requested", {"action": action, "target": target or {}, "payload": payload or {}})


def handover(agent_id: str, *, reason: str = "", summary: str = "") -> Result:
    """Ask for another agent to go on. Say what is left to say, then end; the user decides, and the other agent gets
    what you said in this run, with `summary`."""
    payload = {"target_agent_id": agent_id, "reason": reason, "summary": summary}
    return request_action("session.handover", payload=payload)


def title(text: str) -> Result:
    """Suggest what to call this conversation; a title that is there already stays. Paddock's own, optional."""
    return request_action("session.title", payload={"title": text})


def completed(
    *,
    usage: Mapping[str, Any] | None = None,
    pending_tool_call_ids: Sequence[str] | None = None,
    interrupts: Sequence[Mapping[str, Any]] | None = None,
) -> Result:
    """The run is over and went well. Said for you when `run()` just returns.

    `interrupts` are questions that a person has to answer before it can go on; the answer comes with the next input.
    """
    said = _said(usage=usage, pending_tool_call_ids=pending_tool_call_ids, interrupts=interrupts)
    return Result("run.completed", said)


def failed(code: str, message: str, retryable: bool = False) -> Result:
    """The run is over and did not work. An exception that leaves `run()` says this for you with code runner.error."""
    return Result("run.failed", {"code": code, "message": message[:10_000], "retryable": retryable})
