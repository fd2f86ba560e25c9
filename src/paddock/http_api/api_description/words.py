"""What the descriptions are written with: schemas in few words, operations, and the answers that all of them have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddock.http_api.api_description.examples import BY_NAME

Schema = Mapping[str, Any]
JSON = "application/json"
SSE = "text/event-stream"

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TRUTH: Schema = {"type": "boolean"}
ANYTHING: Schema = {}
OBJECT: Schema = {"type": "object"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
NULL: Schema = {"type": "null"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, NULL]}


def list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def text(*, least: int = 0, most: int, **more: Any) -> Schema:
    return {"type": "string", "minLength": least, "maxLength": most, **more}


def shape(
    required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None, *, strict: bool = False
) -> Schema:
    """An object. A strict one has no other fields: what we read strictly, and nothing that we say."""
    whole: dict[str, Any] = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        whole["required"] = list(required)
    return {**whole, "additionalProperties": False} if strict else whole


@dataclass(frozen=True, slots=True)
class Said:
    """A body, asked for or answered."""

    schema: Schema
    example: Any = None
    media_type: str = JSON
    other: "Said | None" = None
    """The same in another form, when the caller asks for it."""

    def content(self) -> dict[str, Any]:
        shown = {} if self.example is None else {"example": self.example}
        others = self.other.content() if self.other is not None else {}
        return {self.media_type: {"schema": self.schema, **shown}, **others}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    says: str
    schema: Schema = field(default_factory=lambda: TEXT)
    place: str = "query"
    required: bool = False
    own_example: Any = None
    """Where the name does not mean what it means everywhere else."""

    @property
    def example(self) -> Any:
        return BY_NAME.get(self.name) if self.own_example is None else self.own_example

    def described(self) -> dict[str, Any]:
        about = {"name": self.name, "in": self.place, "description": self.says, "schema": self.schema}
        about |= {} if self.example is None else {"example": self.example}
        return {**about, "required": True} if self.required or self.place == "path" else about


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    summary: str
    room: str
    answers: Mapping[int, tuple[str, Said | None]]
    """By status: when it comes, and what it holds."""
    body: Sequence[Said] = ()
    parameters: Sequence[Parameter] = ()
    problems: Sequence[int] = ()
    """Statuses of refusals beyond those that every call has."""
    says: str = ""
    admin: bool = False
    public: bool = False
    body_optional: bool = False


THREAD = Parameter("thread", "The thread: a UUID, or the caller's own name for it.", place="path")
RUN = Parameter("run", "A taskId, or the caller's own runId when it names one run.", place="path")
OF_THREAD = Parameter("threadId", "Which thread a runId is of, when it names runs in several.")
