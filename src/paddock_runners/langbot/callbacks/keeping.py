"""State and storage, asked for by a LangBot runner."""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from typing import cast

from paddock_runners.langbot.callbacks.asking import Asking, Data, Work, number, text
from paddock_runners.langbot.refusal import RefusedError
from paddock_sdk.protocol.manifest import StorageArea
from paddock_sdk.protocol.results import StateScope

SCOPES = ("conversation", "actor", "subject", "runner")
ALIASES = {"conversation_id": "external.conversation_id"}
KEYS_AT_ONCE = 100
MAX_KEYS = 10_000


async def state_get(run: Asking, data: Data) -> Data:
    return {"value": await run.api.state.get(*_place(data))}


async def state_set(run: Asking, data: Data) -> Data:
    scope, key = _place(data)
    await run.api.state.set(scope, key, data.get("value"))
    run.known_keys.setdefault(scope, set()).add(key)
    return {"success": True}


async def state_delete(run: Asking, data: Data) -> Data:
    scope, key = _place(data)
    deleted = await run.api.state.delete(scope, key)
    run.known_keys.setdefault(scope, set()).discard(key)
    return {"success": deleted}


async def state_list(run: Asking, data: Data) -> Data:
    """State as it was when the run began, with the run's own changes."""
    prefix, limit = str(data.get("prefix") or ""), number(data, "limit") or KEYS_AT_ONCE
    keys = sorted(key for key in run.known_keys.get(_scope(data), ()) if key.startswith(prefix))
    cut = max(1, min(KEYS_AT_ONCE, limit))
    return {"keys": keys[:cut], "has_more": len(keys) > cut}


def _place(data: Data) -> tuple[StateScope, str]:
    key = text(data, "key")
    return _scope(data), ALIASES.get(key, key)


def _scope(data: Data) -> StateScope:
    if data.get("scope") not in SCOPES:
        raise RefusedError("invalid_argument", f"scope must be one of: {', '.join(SCOPES)}")
    return cast("StateScope", data["scope"])


def storage(area: StorageArea) -> dict[str, Work]:
    """The four calls of one storage area, by what LangBot calls them."""

    async def get(run: Asking, data: Data) -> Data:
        key = text(data, "key")
        value = await run.api.storage.get(area, key)
        if value is None:
            raise RefusedError("not_found", f"nothing is kept under {key[:100]!r}")
        return {"value_base64": b64encode(value).decode()}

    async def put(run: Asking, data: Data) -> Data:
        await run.api.storage.set(area, text(data, "key"), _bytes(data.get("value_base64")))
        return {}

    async def delete(run: Asking, data: Data) -> Data:
        await run.api.storage.delete(area, text(data, "key"))
        return {}

    async def keys(run: Asking, _: Data) -> Data:
        return {"keys": await _all_keys(run, area)}

    return {
        f"get_{area}_storage": get,
        f"set_{area}_storage": put,
        f"delete_{area}_storage": delete,
        f"get_{area}_storage_keys": keys,
    }


def _bytes(value: object) -> bytes:
    try:
        return b64decode(value if isinstance(value, str) else "?", validate=True)
    except NotBase64 as problem:
        raise RefusedError("invalid_argument", "value_base64 must be base64") from problem


async def _all_keys(run: Asking, area: StorageArea) -> list[str]:
    """The other side knows no pages; more keys than this are refused and not cut."""
    found = await run.api.storage.list(area)
    keys = [*found.keys]
    while found.has_more and len(keys) <= MAX_KEYS:
        found = await run.api.storage.list(area, after=keys[-1])
        keys += found.keys
    if len(keys) > MAX_KEYS:
        raise RefusedError("payload_too_large", f"this area has more than {MAX_KEYS} keys")
    return keys
