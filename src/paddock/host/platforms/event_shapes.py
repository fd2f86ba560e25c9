"""The shape of an event as a platform sends it, and its validation. Unknown fields are ignored."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from paddock.rules.conversations.attachments import MAX_NAME_CHARS
from paddock.rules.conversations.client_history import Media
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.events import HOST_EVENTS
from paddock.rules.log.payloads import is_message
from paddock.rules.platforms.chat_questions import SUBMITTED, Submission
from paddock.rules.run.input import MAX_ATTACHMENTS, MAX_TEXT
from paddock_sdk.causes import complaint_of

Id = Annotated[str, Field(min_length=1, max_length=256)]
MAX_TIME = 1e11
MAX_ANSWERS = 128
ONLY_THE_HOST = "{event_type} is an event that only the host makes; send it under a name of the platform's own"
FILES_OF_MESSAGES = "only a message.received carries files"
ANSWERS_OF_SUBMISSIONS = "only an interaction.submitted may have input.interaction"


def _of_a_platform(event_type: str) -> str:
    if event_type in HOST_EVENTS:
        raise PydanticCustomError("host_event", ONLY_THE_HOST, {"event_type": event_type})
    return event_type


def _seconds(given: object) -> float | None:
    """Seconds since 1970. A time without an offset is refused: it would be read in the zone of this machine."""
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
    metadata: dict[str, Any] = {}

    @property
    def for_run(self) -> dict[str, Any]:
        given = self.model_dump(exclude_none=True)
        return given if self.metadata else {name: value for name, value in given.items() if name != "metadata"}


class SubjectShape(_Shape):
    subject_type: Id
    subject_id: Id | None = None
    data: dict[str, Any] = {}


class FileShape(_Shape):
    """A file of a message: its bytes, or a reference to a file of this host. Its type is judged by its content."""

    artifact_id: Id | None = None
    url: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    content: Annotated[str, Field(min_length=1)] | None = None
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)] | None = None

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if sum(given is not None for given in (self.artifact_id, self.url, self.content)) != 1:
            text = "give one of artifact_id, url (one that this host signed) and content (base64)"
            raise PydanticCustomError("file", text)
        return self

    @property
    def media(self) -> Media:
        return Media(data=self.content, url=self.url, file_id=self.artifact_id, filename=self.name)


class ChoiceShape(_Shape):
    interaction_id: Id | None = None
    action_id: Id | None = None
    values: dict[str, Any] = {}


class InputShape(_Shape):
    text: Annotated[str, Field(max_length=MAX_TEXT)] = ""
    attachments: Annotated[list[FileShape], Field(max_length=MAX_ATTACHMENTS)] = []
    interaction: ChoiceShape | Annotated[list[ChoiceShape], Field(min_length=1, max_length=MAX_ANSWERS)] | None = None

    @property
    def choices(self) -> list[Submission]:
        given = self.interaction
        listed = given if isinstance(given, list) else [given] if given is not None else []
        return [Submission(one.interaction_id, one.action_id, one.values) for one in listed]


class DeliveryShape(_Shape):
    reply_target: dict[str, Any] = {}


class EventShape(_Shape):
    """An event, with field names as in the runner protocol."""

    event_id: Id
    event_type: Annotated[
        str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$", max_length=100), AfterValidator(_of_a_platform)
    ]
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

    @model_validator(mode="after")
    def _input_of_its_kind(self) -> Self:
        if self.input.attachments and not is_message(self.event_type):
            raise PydanticCustomError("files", FILES_OF_MESSAGES)
        if self.input.interaction is not None and self.event_type != SUBMITTED:
            raise PydanticCustomError("answers", ANSWERS_OF_SUBMISSIONS)
        return self

    @property
    def answers(self) -> bool:
        return self.event_type == SUBMITTED and self.input.interaction is not None

    @property
    def place(self) -> str:
        """The conversation on the platform: its id, else the actor, else one for all other events."""
        if self.conversation_id is not None:
            return f"conversation:{self.conversation_id}"
        return f"actor:{self.actor.actor_id}" if self.actor is not None else "events"

    def reply_target(self) -> dict[str, Any]:
        """The target of answers: as given by the event, else where it came from."""
        if self.delivery.reply_target:
            return self.delivery.reply_target
        came = {"conversation_id": self.conversation_id, "thread_id": self.thread_id, "event_id": self.event_id}
        if self.conversation_id is None and self.actor is not None:
            came["actor_id"] = self.actor.actor_id
        return {name: value for name, value in came.items() if value is not None}


def inline_size(given: Mapping[str, Any]) -> int:
    """The size of inline files in an event; they have limits of their own."""
    message = given.get("input")
    files = cast("Mapping[str, Any]", message).get("attachments") if isinstance(message, dict) else None
    listed = cast("list[object]", files) if isinstance(files, list) else []
    contents = (cast("Mapping[str, Any]", one).get("content") for one in listed if isinstance(one, dict))
    return sum(len(content) for content in contents if isinstance(content, str))


def read_event(given: Mapping[str, Any]) -> EventShape:
    """Validate an event. Raises HostError with a sentence that names the field."""
    try:
        return EventShape.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the event"
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{place}: {complaint_of(first)}") from error
