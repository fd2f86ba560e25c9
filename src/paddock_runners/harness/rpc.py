"""Wires that speak JSON-RPC, one object per line, both sides asking. Requests have an end; so does the peer."""

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from paddock_runners.harness.heard import WHICH_VERSION, HarnessError, Heard
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.wire import Wire
from paddock_runners.toolkit.values import mapping

REQUEST_SECONDS = 60.0
METHOD_NOT_FOUND = -32601
GREETING = "initialize"
"""What ACP and Codex are both asked first."""


class RefusedError(HarnessError):
    """The harness refused a request; `number` and `about` are its own words."""

    def __init__(self, method: str, error: Mapping[str, Any]) -> None:
        self.number, self.about = error.get("code"), error.get("data")
        text = str(error.get("message") or "no reason given")
        detail = mapping(self.about).get("details") or mapping(self.about).get("message")
        super().__init__("harness.refused", f"{method} was refused: {text}" + (f" ({detail})" if detail else ""))


class RpcWire(Wire):
    """`heard` for notifications and `asked` for requests are the subclass's."""

    header: Mapping[str, Any] = {"jsonrpc": "2.0"}

    def __init__(self, process: HarnessProcess) -> None:
        super().__init__(process)
        self._ids = 0
        self._waiting: dict[int, tuple[str, asyncio.Future[Any]]] = {}

    async def request(self, method: str, params: Mapping[str, Any], seconds: float = REQUEST_SECONDS) -> dict[str, Any]:
        """Raises RefusedError, or HarnessError when no answer came."""
        answer = self.begin_request(method, params)
        try:
            return mapping(await asyncio.wait_for(asyncio.shield(answer), seconds))
        except TimeoutError:
            said = f"it did not answer {method} within {seconds:.0f} seconds"
            raise HarnessError("harness.silent", said, retryable=True) from None

    def begin_request(self, method: str, params: Mapping[str, Any]) -> "asyncio.Future[Any]":
        """Ask, and let the answer come when it comes."""
        self._ids += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_seen)
        self._waiting[self._ids] = method, answer
        self.write({**self.header, "id": self._ids, "method": method, "params": params})
        return answer

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.write({**self.header, "method": method, "params": params})

    def reply(self, key: Any, result: Mapping[str, Any]) -> None:
        self.write({**self.header, "id": key, "result": result})

    @abstractmethod
    def heard(self, method: str, params: dict[str, Any]) -> Iterable[Heard]:
        """A notification."""

    @abstractmethod
    def asked(self, key: Any, method: str, params: dict[str, Any]) -> Iterable[Heard] | None:
        """A request; None when it is none we know, which the peer is told."""

    def answered(self, method: str, result: dict[str, Any]) -> Iterable[Heard]:  # noqa: ARG002 - for those who care
        """An answer whose place among the other lines matters."""
        return ()

    def refused(self, method: str, refusal: RefusedError) -> Iterable[Heard]:  # noqa: ARG002 - as above
        """Handle a refused request."""
        return ()

    def read(self, said: dict[str, Any]) -> Iterable[Heard]:
        method, params = said.get("method"), mapping(said.get("params"))
        if not isinstance(method, str):
            return self._answered(said)
        if "id" not in said:
            return self.heard(method, params)
        known = self.asked(said["id"], method, params)
        if known is None:
            error = {"code": METHOD_NOT_FOUND, "message": f"this client has no {method}"}
            self.write({**self.header, "id": said["id"], "error": error})
        return known or ()

    def _answered(self, said: dict[str, Any]) -> Iterable[Heard]:
        key = said.get("id")
        method, answer = self._waiting.pop(key, ("", None)) if isinstance(key, int) else ("", None)
        if answer is None or answer.done():
            return ()
        if "error" in said:
            refusal = RefusedError(method, mapping(said["error"]))
            answer.set_exception(refusal)
            return self.refused(method, refusal)
        answer.set_result(said.get("result"))
        return self.answered(method, mapping(said.get("result")))

    def on_silence(self) -> None:
        for method, answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(_unanswered(method, self.process.complaints[-500:] or "no reason given"))
        self._waiting.clear()


def _unanswered(method: str, why: str) -> HarnessError:
    if method == GREETING:
        return HarnessError("harness.not_started", f"{why}; {WHICH_VERSION}")
    return HarnessError("harness.ended", f"it ended before it answered {method}: {why}")


def _seen(answer: "asyncio.Future[Any]") -> None:
    """An answer nobody waits for any more is no mistake of the program."""
    if not answer.cancelled():
        answer.exception()
