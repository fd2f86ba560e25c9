"""What the agents are told and what they must answer; the same words for the floor's agent and the host's runner.

Every delta is the same fixed token, so text delivered / token length = deltas delivered, however they were framed.
"""

TOKEN = "lorem17 "
SHORT = "short"


def stream(deltas: int) -> str:
    """The text that asks an agent for that many deltas."""
    return f"stream {deltas}"


def drip(deltas: int, gap_ms: int) -> str:
    """The text that asks for them slowly."""
    return f"drip {deltas} {gap_ms}"


def deltas_asked(text: str) -> int:
    """How many tokens the answer to `text` has."""
    word, _, count = text.partition(" ")
    return int(count) if word == "stream" else 1
