"""What the pretend host keeps, and how it answers host calls: granted by the manifest, shaped by the protocol."""

import asyncio
import inspect
from base64 import b64decode, b64encode
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from paddock_sdk.host_call_error import HostCallError
from paddock_sdk.protocol.errors import INVALID_ARGUMENT, NOT_FOUND, UNAUTHORIZED, AgentAPIError
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.manifest import AgentRunnerManifest
from paddock_sdk.testing.grants import is_granted

Handler = Callable[[Any], Any]
"""Takes the params model of the call; returns the answer, an awaitable of it, or an (async) iterable of chunks."""
SendChunk = Callable[[int, object], None]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One host call as it came: method, params without the run id."""

    method: str
    params: Mapping[str, Any]


class RefusedError(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Memory:
    def __init__(
        self,
        state: Mapping[str, Mapping[str, Any]],
        history: Sequence[tuple[str, str]],
        storage: Mapping[str, Mapping[str, bytes]],
        artifacts: Mapping[str, bytes],
        handlers: Mapping[str, Handler],
    ) -> None:
        scopes = ("conversation", "actor", "subject", "runner")
        self.state: dict[str, dict[str, Any]] = {scope: dict(state.get(scope, {})) for scope in scopes}
        self._storage = {area: dict(storage.get(area, {})) for area in ("plugin", "workspace", "binding")}
        self._artifacts = dict(artifacts)
        self._history: list[dict[str, Any]] = []
        for role, content in history:
            self.remember(role, content, f"event-{len(self._history) + 1}")
        self._handlers: dict[str, Handler] = {**self._own_handlers(), **handlers}
        self._credit: dict[int, asyncio.Semaphore] = {}
        self.calls: list[RecordedCall] = []
        self.called = asyncio.Event()
        """Set with every call; whoever waits clears it."""

    @property
    def history_count(self) -> int:
        return len(self._history)

    def remember(self, role: str, content: str, event_id: str) -> None:
        """Something was said; it is history from now on."""
        self._history.append(_item(len(self._history) + 1, role, content, event_id))

    def give_credit(self, call_id: int, credit: int) -> None:
        for _ in range(credit):
            self._credit[call_id].release()

    async def answer(
        self, manifest: AgentRunnerManifest, call_id: int, method: str, params: dict[str, Any], chunk: SendChunk
    ) -> object:
        """The answer, or the AgentAPIError to refuse with."""
        self.calls.append(RecordedCall(method, {key: value for key, value in params.items() if key != "run_id"}))
        self.called.set()
        try:
            asked = HOST_CALLS[method].params.from_wire(params)
            if not is_granted(manifest, method, params):
                raise RefusedError(UNAUTHORIZED, f"{method} is not granted: the manifest does not ask for it")
            return await self._outcome(call_id, method, self._handler(method)(asked), chunk)
        except HostCallError as error:
            return error.error
        except RefusedError as error:
            return AgentAPIError(code=error.code, message=str(error))
        except ValidationError as error:
            return AgentAPIError(code=INVALID_ARGUMENT, message=f"{method}: {error}")

    def _handler(self, method: str) -> Handler:
        if method not in self._handlers:
            raise RefusedError(NOT_FOUND, f"this pretend host has no {method}; give it one with calls=")
        return self._handlers[method]

    def scope(self, name: str) -> dict[str, Any]:
        if name not in self.state:
            raise RefusedError(UNAUTHORIZED, f"there is no state scope {name!r}")
        return self.state[name]

    async def _outcome(self, call_id: int, method: str, said: Any, chunk: SendChunk) -> object:
        call = HOST_CALLS[method]
        if call.chunk is None:
            return call.result.from_wire(await said if inspect.isawaitable(said) else said).to_wire()
        credit = self._credit[call_id] = asyncio.Semaphore(64)
        sequence = 0
        async for piece in _pieces(said):
            sequence += 1
            await credit.acquire()
            chunk(sequence, call.chunk.from_wire(piece).to_wire())
        return {}

    # --- what it can answer by itself -------------------------------------------------------------------------------

    def _own_handlers(self) -> dict[str, Handler]:
        return {
            "state.get": lambda p: {"value": self.scope(p.scope).get(p.key), "found": p.key in self.scope(p.scope)},
            "state.set": self._set_state,
            "state.delete": self._delete_state,
            "storage.get": self._get_storage,
            "storage.set": self._set_storage,
            "storage.delete": lambda p: {"deleted": self._storage[p.area].pop(p.key, None) is not None},
            "storage.list": self._list_storage,
            "history.page": self._page,
            "history.search": self._search,
            "artifacts.metadata": lambda p: self._described(p.artifact_id),
            "artifacts.read_range": self._read_range,
            "artifacts.open_stream": self._open_stream,
            "artifacts.create": self._create,
            "steering.pull": lambda _: {"items": []},
            "platform.request_action": lambda _: {"status": "recorded"},
        }

    def _set_state(self, params: Any) -> dict[str, Any]:
        self.scope(params.scope)[params.key] = params.value
        return {"ok": True}

    def _delete_state(self, params: Any) -> dict[str, Any]:
        return {"deleted": self.scope(params.scope).pop(params.key, params) is not params}

    def _get_storage(self, params: Any) -> dict[str, Any]:
        value = self._storage[params.area].get(params.key)
        return {"found": False} if value is None else {"found": True, "value_base64": b64encode(value).decode()}

    def _set_storage(self, params: Any) -> dict[str, Any]:
        self._storage[params.area][params.key] = b64decode(params.value_base64)
        return {"ok": True}

    def _list_storage(self, params: Any) -> dict[str, Any]:
        return {"keys": [key for key in sorted(self._storage[params.area]) if key.startswith(params.prefix or "")]}

    def _page(self, params: Any) -> dict[str, Any]:
        before = int(params.before_cursor or len(self._history) + 1)
        after = int(params.after_cursor or 0)
        items = [item for item in self._history if after < item["seq"] < before]
        if params.direction == "backward":
            items.reverse()
        page = items[: params.limit]
        return {"items": page, "next_cursor": page[-1]["cursor"] if page else None, "has_more": len(items) > len(page)}

    def _search(self, params: Any) -> dict[str, Any]:
        hits = [item for item in reversed(self._history) if params.query.lower() in item["content"].lower()]
        return {"items": hits[: params.top_k], "query": params.query, "total_count": len(hits)}

    def _bytes_of(self, artifact_id: str) -> bytes:
        if artifact_id not in self._artifacts:
            raise RefusedError(NOT_FOUND, "there is no such artifact")
        return self._artifacts[artifact_id]

    def _described(self, artifact_id: str) -> dict[str, Any]:
        size = len(self._bytes_of(artifact_id))
        return {"artifact_id": artifact_id, "artifact_type": "file", "size_bytes": size, "source": "runner"}

    def _read_range(self, params: Any) -> dict[str, Any]:
        whole = self._bytes_of(params.artifact_id)
        piece = whole[params.offset : params.offset + params.length]
        more = params.offset + len(piece) < len(whole)
        encoded = b64encode(piece).decode()
        return {
            "artifact_id": params.artifact_id,
            "offset": params.offset,
            "length": len(piece),
            "content_base64": encoded,
            "has_more": more,
        }

    def _open_stream(self, params: Any) -> Iterable[dict[str, str]]:
        whole = self._bytes_of(params.artifact_id)
        return [{"content_base64": b64encode(whole[at : at + 65536]).decode()} for at in range(0, len(whole), 65536)]

    def _create(self, params: Any) -> dict[str, Any]:
        artifact_id = f"artifact-{len(self._artifacts) + 1}"
        self._artifacts[artifact_id] = b64decode(params.content_base64)
        return {**self._described(artifact_id), "artifact_type": params.artifact_type, "name": params.name}


def _item(number: int, role: str, content: str, event_id: str) -> dict[str, Any]:
    return {
        "transcript_id": f"item-{number}",
        "event_id": event_id,
        "role": role,
        "content": content,
        "seq": number,
        "cursor": str(number),
    }


async def _pieces(said: Any) -> AsyncIterable[Any]:
    if inspect.isawaitable(said):
        said = await said
    if isinstance(said, AsyncIterable):
        async for piece in cast("AsyncIterable[Any]", said):
            yield piece
    else:
        for piece in cast("Iterable[Any]", said):
            yield piece
