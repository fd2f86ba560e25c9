"""How much and how often: sizes of host calls, and a bucket of tokens for their rate. Pure; time is a value."""

from dataclasses import dataclass

MAX_STATE_VALUE_BYTES = 262_144
MAX_STATE_SCOPE_BYTES = 4 * 1024 * 1024
MAX_STATE_KEY_CHARS = 256
MAX_PAGE = 100
MAX_CALL_BYTES = 4 * 1024 * 1024
MAX_ARTIFACT_INLINE_BYTES = 1024 * 1024
MAX_RANGE_BYTES = 1024 * 1024
MAX_STORAGE_KEY_CHARS = 256
MAX_STORAGE_VALUE_BYTES = 2 * 1024 * 1024
"""What fits a frame as base64 with room to spare; larger things are artifacts."""
MAX_BLOB_BYTES = 10 * 1024 * 1024
"""One value of a storage area; more than one call can carry is sent in parts."""
MAX_KEYS_PAGE = 1000

RUN_CALLS_PER_SECOND, RUN_BURST = 50.0, 100.0
PLUGIN_CALLS_PER_SECOND, PLUGIN_BURST = 500.0, 1000.0


@dataclass(slots=True)
class TokenBucket:
    """So many calls a second on average, so many at once. Refused calls cost a token too, down to an empty bucket."""

    per_second: float
    burst: float
    tokens: float
    at: float

    @classmethod
    def full(cls, per_second: float, burst: float, now: float) -> "TokenBucket":
        return cls(per_second, burst, burst, now)

    def take(self, now: float) -> float:
        """Take one token; 0.0 when there was one, else the seconds until there is."""
        self.tokens = min(self.burst, self.tokens + max(0.0, now - self.at) * self.per_second)
        self.at = now
        if self.tokens >= 1.0:
            self.tokens -= 1.0
            return 0.0
        return (1.0 - self.tokens) / self.per_second
