"""A model server whose every word the test decides: OpenAI chat completions, OpenAI responses, Anthropic messages."""

from model_server.script import Says
from model_server.server import ModelServer, model_server

__all__ = ["ModelServer", "Says", "model_server"]
