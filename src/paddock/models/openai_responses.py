"""Models behind OpenAI's Responses API."""

from paddock.models.openai_chat import OpenAIChatModel
from paddock.models.wire.openai_responses import ResponsesWire


class OpenAIResponsesModel(OpenAIChatModel):
    wire = ResponsesWire()
    path = "responses"
