"""An event as a platform sends it. Read kindly: what is not known is passed over; what is needed is checked."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run_input import MAX_TEXT

Id = Annotated[str, Field(min_length=1, max_length=256)]
MAX_TIME = 1e11


def _seconds(given: object) -> float | None:
    """Since 1970. A moment without an offset would be read in the zone of this machine, which nobody meant."""
    if given is None or not isinstance(given, str):
        return None if given is None else _within(given)
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        return _within(given)
    return _within(moment.timestamp() if moment.tzinfo is not None else given)


def _within(seconds: object) -> float:
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= MAX_TIME:
        return float(seconds)
    example = "2026-03-15T10:00:00Z"
    raise PydanticCustomError("moment", f"send a moment with its offset, such as {example}, or seconds since 1970")


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class ActorShape(_Shape):
    actor_type: Id = "user"
    actor_id: Id
    actor_name: Annotated[str, Field(max_length=256)] | None = None


class SubjectShape(_Shape):
    subject_type: Id
    subject_id: Id | None = None
    data: dict[str, Any] = {}


class InputShape(_Shape):
    text: Annotated[str, Field(max_length=MAX_TEXT)] = ""


class DeliveryShape(_Shape):
    reply_target: dict[str, Any] = {}


class EventShape(_Shape):
    """The envelope of an event, in the words of the runner protocol."""

    event_id: Id
    event_type: Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$", max_length=100)]
    event_time: Annotated[float | None, BeforeValidator(_seconds)] = None
    source_event_type: Id | None = None
    bot_id: Id | None = None
    conversation_id: Id | None = None
    thread_id: Id | None = None
    actor: ActorShape | None = None
    subject: SubjectShape | None = None
    input: InputShape = InputShape()
    delivery: DeliveryShape = DeliveryShape()
    data: dict[str, Any] = {}

    @property
    def place(self) -> str:
        """What its conversation is called there: its own id, else whoever it is about, else all that has neither."""
        if self.conversation_id is not None:
            return f"conversation:{self.conversation_id}"
        return f"actor:{self.actor.actor_id}" if self.actor is not None else "events"

    def reply_target(self) -> dict[str, Any]:
        """Where an answer goes: as the event says, else where it came from."""
        if self.delivery.reply_target:
            return self.delivery.reply_target
        came = {"conversation_id": self.conversation_id, "thread_id": self.thread_id, "event_id": self.event_id}
        if self.conversation_id is None and self.actor is not None:
            came["actor_id"] = self.actor.actor_id
        return {name: value for name, value in came.items() if value is not None}


def read_event(given: Mapping[str, Any]) -> EventShape:
    """Raises HostError with a sentence that names the place."""
    try:
        return EventShape.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the event"
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{place}: {first['msg']}") from error
