"""What a model call used and cost, and on whose behalf it was made. Pure."""

from collections.abc import Sequence

from paddock.rules.values import Value
from paddock_sdk.protocol.messages import ContentElement, LLMTool, Message

BYTES_PER_TOKEN = 4
"""Of Latin text a token is four letters; a Chinese character is three bytes and somewhat less than a token."""
PICTURE_TOKENS = 1200


class Payer(Value, frozen=True):
    """On whose behalf a model is asked. Outside a run there is neither an agent nor a conversation."""

    workspace_id: str
    user_id: str
    agent_id: str = ""
    run_id: str = ""
    session_id: str = ""


def cost_of(
    prompt_tokens: int | None, completion_tokens: int | None, *, prompt_price: float, completion_price: float
) -> float | None:
    """Prices are per million tokens. None when the provider did not count: unknown is not free."""
    if prompt_tokens is None and completion_tokens is None:
        return None
    return ((prompt_tokens or 0) * prompt_price + (completion_tokens or 0) * completion_price) / 1_000_000


def about_tokens_in(*texts: str) -> int:
    """How many tokens these texts have, about: for what no provider counted."""
    return -(-sum(len(text.encode(errors="replace")) for text in texts) // BYTES_PER_TOKEN)


def about_tokens_of(messages: Sequence[Message], tools: Sequence[LLMTool]) -> int:
    """How many tokens a question has, about."""
    words = about_tokens_in(
        *(message.text for message in messages),
        *(call.function.arguments for message in messages for call in message.tool_calls or ()),
        *(tool.model_dump_json() for tool in tools),
    )
    elements = (one for message in messages if isinstance(message.content, list) for one in message.content)
    return words + PICTURE_TOKENS * sum(map(_is_picture, elements))


def _is_picture(element: ContentElement) -> bool:
    return element.image_base64 is not None or element.image_url is not None
