"""Which model answers, and how much of the conversation it can be shown. A model that is not there is said to be so."""

from collections.abc import Mapping, Sequence
from typing import Any

from paddock_runners.local_agent.config import Config
from paddock_runners.toolkit.tokens import tokens_in
from paddock_runners.toolkit.transcript import compact
from paddock_sdk.protocol.resources import ModelResource

UNKNOWN_WINDOW = 16_384
"""For models nobody said the window of."""
MAX_RESERVE = 8192
LEAST_ROOM = 200
NOT_OFFERED = "model.not_offered"


class NoModelError(Exception):
    """No model can answer; the text says why and what to do."""


def chosen(config: Config, models: Sequence[ModelResource]) -> ModelResource:
    """The model of the settings, or the first there is, which is the host's default. Raises NoModelError."""
    usable = [one for one in models if {"invoke", "stream"} & set(one.operations)]
    if not config.model and usable:
        return usable[0]
    found = next((one for one in usable if one.model_id == config.model), None)
    if found is not None:
        return found
    offered = ", ".join(one.model_id for one in usable) or "none"
    asked = f"The model {config.model!r} is not offered" if config.model else "No model is offered"
    raise NoModelError(
        f"{asked} to this agent (offered: {offered}). To get it, set its provider's key where the host is started "
        f"(OPENAI_API_KEY or ANTHROPIC_API_KEY) or add a table [models.NAME] to the host's paddock.toml, and allow it "
        f"in the agent's `models`; or set the agent's `config.model` to one that is offered."
    )


def room_for_prompt(model: ModelResource, tools: Sequence[Mapping[str, Any]]) -> int:
    """Tokens that all messages together may take: the window without the answer and the tools."""
    window = model.context_window or UNKNOWN_WINDOW
    return window - min(MAX_RESERVE, window // 4) - tokens_in(compact(list(tools)))


def room_for_history(config: Config, room: int, system: str) -> int:
    """Tokens of it that turns and summary may take."""
    return max(LEAST_ROOM, min(config.history_tokens, room - tokens_in(system)))
