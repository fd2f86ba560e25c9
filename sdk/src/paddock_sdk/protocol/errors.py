"""Codes of refused host calls, and the codes runs fail with: closed lists. The shape of an error is in `frames`."""

from typing import Final, Literal, get_args

UNAUTHORIZED: Final = "unauthorized"
NOT_FOUND: Final = "not_found"
DEADLINE_EXCEEDED: Final = "deadline_exceeded"
PAYLOAD_TOO_LARGE: Final = "payload_too_large"
RATE_LIMITED: Final = "rate_limited"
INVALID_ARGUMENT: Final = "invalid_argument"
RUNTIME_ERROR: Final = "runtime_error"

API_ERROR_CODES: Final = frozenset(
    {
        UNAUTHORIZED,
        NOT_FOUND,
        DEADLINE_EXCEEDED,
        PAYLOAD_TOO_LARGE,
        RATE_LIMITED,
        INVALID_ARGUMENT,
        RUNTIME_ERROR,
    }
)
"""Every code a refused host call can carry."""

RUNNER_ERROR: Final = "runner.error"
"""`run()` raised: the code the SDK gives to `run.failed`."""
CANCELLED: Final = "cancelled"

RunCode = Literal[
    "runner.crashed",
    "runner.protocol_error",
    "runner.start_failed",
    "runner.unhealthy",
    "runner.not_found",
    "runner.refused",
    "runner.replaced",
    "runner.error",
    "deadline_exceeded",
    "route_timeout",
    "cancelled",
    "steered_into",
    "host_restarted",
    "host_lost",
    "host_shutdown",
    "storage_unavailable",
    "payload_too_large",
    "session_busy",
    "session_closed",
    "no_agent",
    "agent_not_in_session",
    "agent.config_invalid",
    "agent.isolation_too_low",
    "agent.working_directory",
    "agent.working_directory_full",
    "runtime_error",
]
HOST_FAILURE_CODES: Final[frozenset[RunCode]] = frozenset(get_args(RunCode))
"""Every code a host gives to a run that ended without the runner's own word."""
