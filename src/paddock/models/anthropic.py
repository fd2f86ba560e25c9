"""Models behind Anthropic's messages."""

from collections.abc import Mapping
from typing import Any

from paddock.models.openai_chat import NO_KEY, split
from paddock.models.remote import Opening, RemoteModel
from paddock.models.wire.anthropic import AnthropicWire


class AnthropicModel(RemoteModel):
    wire = AnthropicWire()
    usual_key = "ANTHROPIC_API_KEY"

    def _library(self) -> Any:
        import anthropic

        return anthropic

    def _connect(self, library: Any, key: str | None, **common: Any) -> Any:
        return library.AsyncAnthropic(api_key=key or NO_KEY, **common)

    def _open(self, client: Any, body: Mapping[str, Any], **common: Any) -> Opening:
        named, rest = split(body, "model", "max_tokens", "stream")
        create = client.messages.with_streaming_response.create
        return create(**named, messages=(), extra_body=rest, **common)
