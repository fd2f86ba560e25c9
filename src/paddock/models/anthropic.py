"""Models behind Anthropic's messages."""

from collections.abc import Mapping

from paddock.models.remote import RemoteModel
from paddock.models.wire.anthropic import AnthropicWire

VERSION = "2026-10-21"
"""Of the messages' wire; the provider wants it said with each question."""


class AnthropicModel(RemoteModel):
    wire = AnthropicWire()
    path = "v1/messages"
    usual_key = "ANTHROPIC_API_KEY"
    home = "https://api.anthropic.com"
    home_variable = "ANTHROPIC_BASE_URL"

    def _introduction(self, key: str | None) -> Mapping[str, str]:
        return {"anthropic-version": VERSION} | ({"Authorization": f"Bearer {key}"} if key else {})
