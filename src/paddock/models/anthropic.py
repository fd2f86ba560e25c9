"""Models behind Anthropic's messages."""

from typing import TYPE_CHECKING, Any

from paddock.models.openai_chat import NO_KEY
from paddock.models.remote import RemoteModel
from paddock.models.wire.anthropic import AnthropicWire

if TYPE_CHECKING:
    from paddock.models.connections import Client


class AnthropicModel(RemoteModel):
    wire = AnthropicWire()
    path = "v1/messages"
    usual_key = "ANTHROPIC_API_KEY"

    def _library(self) -> Any:
        import anthropic

        return anthropic

    def _client(self, library: Any, key: str | None, base_url: str | None) -> "Client":
        return library.AsyncAnthropic(api_key=key or NO_KEY, base_url=base_url)
