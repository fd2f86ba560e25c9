"""Memory of the pretend host, and its answers to host calls: granted by the manifest, shaped by the protocol."""

import asyncio
import inspect
from base64 import b64decode, b64encode
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast, get_args

from pydantic import ValidationError
from pydantic_core import to_json

from paddock_sdk.host_call_error import HostCallError
from paddock_sdk.protocol.errors import INVALID_ARGUMENT, NOT_FOUND, PAYLOAD_TOO_LARGE, UNAUTHORIZED
from paddock_sdk.protocol.frames import AgentAPIError
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.manifest import AgentRunnerManifest, StorageArea
from paddock_sdk.protocol.results import STATE_SCOPES
from paddock_sdk.testing.grants import is_granted, needed_for

Handler = Callable[[Any], Any]
"""Takes the params model of the call; returns the answer, an awaitable of it, or an (async) iterable of chunks."""
MAX_STATE_BYTES, MAX_KEYS_PAGE = 262_144, 1000
MAX_INLINE_BYTES, MAX_RANGE_BYTES = 1024 * 1024, 1024 * 1024
MAX_PART_BYTES, MAX_BLOB_BYTES = 2 * 1024 * 1024, 10 * 1024 * 1024
"""As a real host has them, so that a runner meets them in its tests first."""

SendChunk = Callable[[int, object], None]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One host call as it came: method, params without the run id."""

    method: str
    params: Mapping[str, Any]


class RefusedError(Exception):
    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


class Memory:
    def __init__(
        self,
        state: Mapping[str, Mapping[str, Any]],
        history: Sequence[tuple[str, str]],
        storage: Mapping[str, Mapping[str, bytes]],
        artifacts: Mapping[str, bytes],
        handlers: Mapping[str, Handler],
    ) -> None:
        self.state: dict[str, dict[str, Any]] = {scope: dict(state.get(scope, {})) for scope in STATE_SCOPES}
        self._storage = {area: dict(storage.get(area, {})) for area in get_args(StorageArea)}
        self._parts: dict[tuple[str, str], bytes] = {}
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
                text = f"{method} is not granted: the manifest does not ask for {needed_for(method)}"
                raise RefusedError(UNAUTHORIZED, text)
            return await self._outcome(call_id, method, self._handler(method)(asked), chunk)
        except HostCallError as error:
            return error.error
        except RefusedError as error:
            return AgentAPIError(code=error.code, message=str(error), retryable=error.retryable)
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
            "state.get": self._get_state,
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

    def _get_state(self, params: Any) -> dict[str, Any]:
        values = self.scope(params.scope)
        if params.key not in values:
            return {"found": False}
        value = values[params.key]
        return {"found": True, "value": value, "version": version_of(value)}

    def _set_state(self, params: Any) -> dict[str, Any]:
        values = self.scope(params.scope)
        if len(to_json(params.value)) > MAX_STATE_BYTES:
            raise RefusedError(PAYLOAD_TOO_LARGE, f"a value may have at most {MAX_STATE_BYTES} bytes of JSON")
        now = version_of(values[params.key]) if params.key in values else ""
        if params.expected_version not in {None, now}:
            raise RefusedError(INVALID_ARGUMENT, "the value has changed since it was read", retryable=True)
        values[params.key] = params.value
        return {"ok": True, "version": version_of(params.value)}

    def _delete_state(self, params: Any) -> dict[str, Any]:
        return {"deleted": self.scope(params.scope).pop(params.key, params) is not params}

    def _get_storage(self, params: Any) -> dict[str, Any]:
        value = self._storage[params.area].get(params.key)
        if value is None:
            return {"found": False}
        offset = params.offset or 0
        part = value[offset : offset + MAX_PART_BYTES]
        return {
            "found": True,
            "value_base64": b64encode(part).decode(),
            "size_bytes": len(value),
            "version": sha256(value).hexdigest()[:24],
            "has_more": offset + len(part) < len(value),
        }

    def _set_storage(self, params: Any) -> dict[str, Any]:
        place, part = (params.area, params.key), _bytes(params.value_base64, MAX_PART_BYTES)
        begun = self._parts.pop(place, b"") if params.offset else b""
        if len(begun) != (params.offset or 0):
            raise RefusedError(INVALID_ARGUMENT, f"offset must be {len(begun)}: the parts of a value follow each other")
        value = begun + part
        if len(value) > MAX_BLOB_BYTES:
            raise RefusedError(PAYLOAD_TOO_LARGE, f"a value may have at most {MAX_BLOB_BYTES} bytes")
        if params.more:
            self._parts[place] = value
        else:
            self._storage[params.area][params.key] = value
        return {"ok": True}

    def _list_storage(self, params: Any) -> dict[str, Any]:
        known = [key for key in sorted(self._storage[params.area]) if key > (params.after or "")]
        keys = [key for key in known if key.startswith(params.prefix or "")]
        return {"keys": keys[:MAX_KEYS_PAGE], "has_more": len(keys) > MAX_KEYS_PAGE}

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
        if params.length > MAX_RANGE_BYTES:
            raise RefusedError(PAYLOAD_TOO_LARGE, f"a range may have at most {MAX_RANGE_BYTES} bytes")
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
        self._artifacts[artifact_id] = _bytes(params.content_base64, MAX_INLINE_BYTES)
        return {**self._described(artifact_id), "artifact_type": params.artifact_type, "name": params.name}


def version_of(value: object) -> str:
    """A tag of the value, as a real host makes one."""
    return sha256(to_json(value)).hexdigest()[:24]


def _bytes(encoded: str, most: int) -> bytes:
    try:
        content = b64decode(encoded, validate=True)
    except ValueError as error:
        raise RefusedError(INVALID_ARGUMENT, f"not base64: {error}") from error
    if len(content) > most:
        raise RefusedError(PAYLOAD_TOO_LARGE, f"at most {most} bytes fit one call")
    return content


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
