"""What a runner says during a run, as the hot path reads it, and which of it is well formed. Pure.

The same shape as `paddock_sdk.protocol.results.AgentRunResult`; a test proves that both read the same.
"""

from typing import Any

import msgspec

MAX_RESULT_BYTES = 1_048_576
TERMINAL_TYPES = frozenset({"run.completed", "run.failed"})


class Result(msgspec.Struct, frozen=True, gc=False):
    """One result of a run. Unknown types are kept and ignored with a warning by whoever decides."""

    run_id: str
    type: str
    data: dict[str, Any] = {}
    sequence: int | None = None
    timestamp: float | None = None
