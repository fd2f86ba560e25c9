"""Messages as models and people exchange them: content, tool calls, usage. Shared by results, models and history."""

from typing import Any, Literal

from paddock_sdk.protocol.model import WireModel

MessageRole = Literal["user", "system", "assistant", "tool", "command", "plugin"]


class ImageUrl(WireModel):
    url: str


class ContentElement(WireModel):
    """One piece of a message. `type` names the field that is filled: text, image_url, image_base64, file_url, ..."""

    type: str
    text: str | None = None
    image_url: ImageUrl | None = None
    image_base64: str | None = None
    file_url: str | None = None
    file_base64: str | None = None
    file_name: str | None = None


class FunctionCall(WireModel):
    name: str
    arguments: str
    """A JSON text, as models write it."""


class ToolCall(WireModel):
    id: str
    type: str = "function"
    function: FunctionCall
    provider_specific_fields: dict[str, Any] | None = None


class Message(WireModel):
    role: MessageRole
    name: str | None = None
    content: str | list[ContentElement] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    resp_message_id: str | None = None
    provider_specific_fields: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The words of the message; pictures and files say nothing."""
        if isinstance(self.content, list):
            return "".join(element.text or "" for element in self.content)
        return self.content or ""


class MessageChunk(Message):
    """A piece of a message on its way. `content` is the increment, `all_content` the text so far where it is known."""

    role: MessageRole = "assistant"
    all_content: str | None = None
    is_final: bool = False
    msg_sequence: int = 0


class LLMTool(WireModel):
    """A function as a model sees it; `parameters` is a JSON schema."""

    name: str
    human_desc: str | None = None
    description: str
    parameters: dict[str, Any]


class LLMTokenUsage(WireModel):
    """Tokens as the model counted them. Missing is not zero."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
