"""An event as a platform sends it. Read kindly: what is not known is passed over; what is needed is checked."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run_input import MAX_TEXT

Id = Annotated[str, Field(min_length=1, max_length=256)]
MAX_DATA_BYTES = 64 * 1024


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
    event_time: Annotated[float, Field(ge=0, le=1e11)] | datetime | None = None
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
    def time(self) -> float | None:
        return self.event_time.timestamp() if isinstance(self.event_time, datetime) else self.event_time

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
