"""Models behind OpenAI's Responses API."""

from collections.abc import Mapping
from typing import Any

from paddock.models.openai_chat import OpenAIChatModel, split
from paddock.models.remote import Opening
from paddock.models.wire.openai_responses import ResponsesWire


class OpenAIResponsesModel(OpenAIChatModel):
    wire = ResponsesWire()

    def _open(self, client: Any, body: Mapping[str, Any], **common: Any) -> Opening:
        named, rest = split(body, "model", "stream")
        return client.responses.with_streaming_response.create(**named, extra_body=rest, **common)
