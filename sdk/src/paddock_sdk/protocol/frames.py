"""How both sides talk: JSON-RPC 2.0, one object per line. Envelopes, and the params of all that is not a host call."""

# ruff: noqa: RUF012 - pydantic gives every instance its own copy of a default
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from paddock_sdk.protocol.manifest import ListAgentRunnersResponse
from paddock_sdk.protocol.model import EpochSeconds, WireModel
from paddock_sdk.protocol.results import AgentRunResult
from paddock_sdk.protocol.run_context import AgentRunRequest

FrameId = int | str

MAX_RESULT_BYTES: Final = 1_048_576
INLINE_BASE64_BYTES: Final = 1_398_104
"""The content that an `artifact.created` may carry, 1 MiB, as base64."""
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
REFUSED: Final = -32000
"""A well-formed request that is not granted or did not work; `data` says why."""

# --- envelopes ----------------------------------------------------------------------------------------------------


class Request(WireModel):
    """Somebody wants an answer. Ids are unique per direction."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: FrameId
    method: str
    params: dict[str, Any] = {}


class Notification(WireModel):
    jsonrpc: Literal["2.0"] = "2.0"
    method: str
    params: dict[str, Any] = {}


class Response(WireModel):
    jsonrpc: Literal["2.0"] = "2.0"
    id: FrameId
    result: dict[str, Any]


class AgentAPIError(WireModel):
    """Why a host call was refused. `code` is one of API_ERROR_CODES; one from the future is kept."""

    code: str
    message: str
    retryable: bool = False
    details: dict[str, Any] = {}


class RpcError(WireModel):
    code: int
    message: str
    data: AgentAPIError | None = None


class ErrorResponse(WireModel):
    """A refusal. `id` is null only when the request could not be read at all."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: FrameId | None
    error: RpcError


# --- handshake ----------------------------------------------------------------------------------------------------


class Limits(WireModel):
    max_frame_bytes: int = 4_194_304
    max_result_bytes: int = MAX_RESULT_BYTES
    run_credit: int = 256
    call_credit: int = 64


class HostInfo(WireModel):
    name: str
    version: str | None = None


class PluginInfo(WireModel):
    """Identity of the plugin, set by the host from the launch; a plugin never fills it in."""

    author: str
    name: str


class SdkInfo(WireModel):
    name: str
    version: str | None = None


class InitializeParams(WireModel):
    protocol_version: str
    host: HostInfo
    host_time: EpochSeconds
    plugin: PluginInfo
    limits: Limits = Limits.model_construct()  # not validated: importing compiles nothing
    peers: list[str] = []
    """Where else to attach: other hosts of the same installation; for attached runners only."""


class InitializeResult(WireModel):
    protocol_version: str | None = None
    """Missing is read, so that it can be refused with a sentence."""
    sdk: SdkInfo | None = None


# --- runs and the rest --------------------------------------------------------------------------------------------


class Empty(WireModel):
    """No params, or nothing to say."""


class RunAccepted(WireModel):
    run_id: str
    accepted: bool = True


class CancelRunParams(WireModel):
    run_id: str
    reason: str | None = None


class CancelRunResult(WireModel):
    """Sent when the run's task has ended, never before."""

    run_id: str
    ended: bool = True


class RunCreditParams(WireModel):
    """Host to plugin: that many more results of this run may be sent."""

    run_id: str
    credit: int


class PeersParams(WireModel):
    """Other hosts came or went."""

    peers: list[str]


class SteeringAvailableParams(WireModel):
    """Host to plugin: that many inputs wait which this run may take in with `steering.pull`. Ours, optional."""

    run_id: str
    waiting: int = 1


class CallCreditParams(WireModel):
    """Plugin to host: that many more chunks of this streaming call may be sent."""

    id: FrameId
    credit: int


class CallChunk(WireModel):
    """Host to plugin: one chunk of a streaming call; the response to `id` comes last."""

    id: FrameId
    sequence: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request the host makes of a plugin."""

    params: type[WireModel]
    result: type[WireModel]


HOST_REQUESTS: Final[Mapping[str, Exchange]] = MappingProxyType(
    {
        "initialize": Exchange(InitializeParams, InitializeResult),
        "list_agent_runners": Exchange(Empty, ListAgentRunnersResponse),
        "run_agent": Exchange(AgentRunRequest, RunAccepted),
        "cancel_run": Exchange(CancelRunParams, CancelRunResult),
        "ping": Exchange(Empty, Empty),
        "shutdown": Exchange(Empty, Empty),
    }
)
HOST_NOTIFICATIONS: Final[Mapping[str, type[WireModel]]] = MappingProxyType(
    {
        "run_credit": RunCreditParams,
        "call_chunk": CallChunk,
        "steering_available": SteeringAvailableParams,
        "peers": PeersParams,
    }
)
PLUGIN_NOTIFICATIONS: Final[Mapping[str, type[WireModel]]] = MappingProxyType(
    {"run_result": AgentRunResult, "call_credit": CallCreditParams}
)


def longest_result(kind: str, max_result_bytes: int = MAX_RESULT_BYTES) -> int:
    """Largest size of a result of this type in bytes; a file that comes along has room of its own."""
    return max_result_bytes + (INLINE_BASE64_BYTES if kind == "artifact.created" else 0)
