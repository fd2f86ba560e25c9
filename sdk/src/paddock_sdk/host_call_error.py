"""The one exception a host call raises. What to do about it is the runner's business."""

from paddock_sdk.protocol.errors import RUNTIME_ERROR
from paddock_sdk.protocol.frames import AgentAPIError


class HostCallError(Exception):
    """The host refused or could not do it; `error.code` is one of the seven codes."""

    def __init__(self, method: str, error: AgentAPIError) -> None:
        super().__init__(f"{method}: {error.message} ({error.code})")
        self.method = method
        self.error = error

    @property
    def code(self) -> str:
        return self.error.code

    @property
    def retryable(self) -> bool:
        """True when nothing was done and the same call may work later."""
        return self.error.retryable

    @property
    def outcome_unknown(self) -> bool:
        """True when the call may have taken effect: look before you repeat it. Paddock's own, optional."""
        return self.error.details.get("outcome") == "unknown"


def host_call_error(
    method: str, code: str = RUNTIME_ERROR, message: str = "", *, retryable: bool = False
) -> HostCallError:
    """An error we noticed on this side of the wire."""
    return HostCallError(method, AgentAPIError(code=code, message=message, retryable=retryable))
