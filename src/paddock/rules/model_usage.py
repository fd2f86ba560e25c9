"""What a model call cost. Pure."""


def cost_of(
    prompt_tokens: int | None, completion_tokens: int | None, *, prompt_price: float, completion_price: float
) -> float | None:
    """Prices are per million tokens. None when the provider did not count: unknown is not free."""
    if prompt_tokens is None and completion_tokens is None:
        return None
    return ((prompt_tokens or 0) * prompt_price + (completion_tokens or 0) * completion_price) / 1_000_000
