"""What is another workspace's looks, by every operation, exactly like what does not exist."""

import json
import re
import uuid
from typing import Any, cast

import httpx
import pytest

from http_api.described import JSON, OPERATIONS, SSE, Described
from http_api.doors import Doors, a_body, open_doors
from safety.tenants import AGENT, Tenant
from stores import QuickStore

Two = tuple[Tenant, Tenant]
NAMED = frozenset({"thread", "run", "agent", "job", "key", "kb", "attachment"})
"""Parameters of paths that name something a workspace has."""
MAKE = {
    ("POST", "/api/v1/agent/sessions/{thread}/messages"): "a thread that nobody has is opened by its first message",
    ("PUT", "/api/v1/agents/{agent}"): "each workspace has its own names for agents",
}
"""Operations by which the caller takes a name: for these there are tests of their own."""
WITH_IDS = [one for one in OPERATIONS if not one.public and NAMED & one.named and (one.method, one.path) not in MAKE]
ASKED = [one for one in OPERATIONS if "threadId" in one.parameters("query")]
CLOSE = {"subtype": "SESSION_CLOSE"}


def _case(one: Described) -> str:
    return f"{one.method} {one.path}"


def unlike(real: str) -> str:
    """An id of the same form that nobody has."""
    digits = uuid.uuid4().hex
    return real[:-12] + digits[:12] if re.search(r"[0-9a-f-]{32}$", real) else f"nobody-{digits[:8]}"


def path_of(operation: Described, ids: dict[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda found: ids.get(found[1], "0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10"), operation.path)


def answer(caller: Tenant, operation: Described, ids: dict[str, str], **query: str) -> tuple[int, str, Any]:
    """Status, content type, and the shape of what was said; refusals word for word, but for the id itself."""
    content = {} if operation.body is None else {"json": _changed(operation.body)}
    with caller.client.stream(operation.method, path_of(operation, ids), params=query, **content) as said:
        kind = said.headers.get("content-type", "")
        if kind.startswith(SSE):
            return said.status_code, kind, None
        said.read()
        return said.status_code, kind, shape_of(said, [*ids.values(), *query.values()])


def _changed(body: Any) -> Any:
    """A thread and a run of its own for each call: the second is then no repetition of the first."""
    fresh = {name: str(uuid.uuid4()) for name in ("threadId", "runId") if name in body}
    return {**body, **fresh} if isinstance(body, dict) else body


def shape_of(said: httpx.Response, ids: list[str]) -> Any:
    if said.is_success:
        return _keys(said.json()) if said.content and said.headers["content-type"].startswith(JSON) else None
    text = said.text
    for one in ids:
        text = text.replace(one, "ID")
    return json.loads(text)


def _keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _keys(one) for name, one in value.items()}
    return [_keys(one) for one in value[:1]] if isinstance(value, list) else None


@pytest.mark.spec("http/foreign-ids")
@pytest.mark.parametrize("operation", WITH_IDS, ids=_case)
def test_a_foreign_id_looks_like_one_that_nobody_has(tenants: Two, operation: Described) -> None:
    caller, other = tenants
    before = other.seen()
    nobody = {name: unlike(real) for name, real in other.ids.items()}
    foreign = answer(caller, operation, other.ids)
    assert foreign == answer(caller, operation, nobody)
    assert foreign[0] == 404
    assert other.seen() == before


@pytest.mark.spec("http/foreign-ids")
@pytest.mark.parametrize("operation", ASKED, ids=_case)
def test_a_foreign_thread_in_a_query_looks_like_one_that_nobody_has(tenants: Two, operation: Described) -> None:
    caller, other = tenants
    foreign, nobody = (answer(caller, operation, caller.ids, threadId=one) for one in _threads(other))
    assert foreign == nobody


def _threads(other: Tenant) -> tuple[str, str]:
    return other.ids["thread"], unlike(other.ids["thread"])


@pytest.mark.spec("http/foreign-ids")
@pytest.mark.parametrize("path", ["runs", "sessions/{thread}/messages", "ag-ui", "sessions"])
def test_a_thread_of_another_workspace_is_not_opened_and_not_shown(tenants: Two, path: str) -> None:
    caller, other = tenants
    before, thread = other.seen(), other.ids["thread"]
    operation = next(one for one in OPERATIONS if (one.method, one.path) == ("POST", f"/api/v1/agent/{path}"))
    body = _changed(operation.body) | ({} if "{" in path else {"threadId": thread})
    said = caller.client.post(path_of(operation, other.ids), json=body)
    unknown = caller.client.get(f"/api/v1/agent/sessions/{unlike(thread)}")
    assert (said.status_code, said.json()) == (404, unknown.json())  # word for word what a missing one gets
    assert other.seen() == before


WITH_THREADS = [one for one in WITH_IDS if "{thread}" in one.path]
OPENING = ["runs", "sessions/{thread}/messages", "ag-ui", "sessions"]


def ended(other: Tenant, how: str) -> str:
    """A thread of theirs that is over: closed, or deleted."""
    thread, posted = str(uuid.uuid4()), "/api/v1/agent/sessions"
    assert other.client.post(posted, json={"threadId": thread}).is_success
    path = f"{posted}/{thread}"
    done = other.client.delete(path) if how == "deleted" else other.client.post(f"{path}/control", json=CLOSE)
    assert done.is_success, done.text
    return thread


@pytest.mark.spec("http/foreign-ids")
@pytest.mark.parametrize("how", ["closed", "deleted"])
def test_a_foreign_thread_that_is_over_looks_like_one_that_nobody_has(tenants: Two, how: str) -> None:
    caller, other = tenants
    thread = ended(other, how)
    differing = [
        f"{one.method} {one.path}"
        for one in WITH_THREADS
        if answer(caller, one, {**other.ids, "thread": thread})
        != answer(caller, one, {**other.ids, "thread": unlike(thread)})
    ]
    differing += [
        f"{one.method} {one.path}?threadId="
        for one in ASKED
        if answer(caller, one, caller.ids, threadId=thread) != answer(caller, one, caller.ids, threadId=unlike(thread))
    ]
    assert differing == []


@pytest.mark.spec("http/foreign-ids")
@pytest.mark.parametrize("path", OPENING)
@pytest.mark.parametrize("how", ["closed", "deleted"])
def test_a_foreign_thread_that_is_over_is_refused_like_a_live_one(tenants: Two, path: str, how: str) -> None:
    caller, other = tenants
    operation = next(one for one in OPERATIONS if (one.method, one.path) == ("POST", f"/api/v1/agent/{path}"))
    said: list[tuple[int, Any]] = []
    for thread in (ended(other, how), other.ids["thread"]):
        body = _changed(operation.body) | ({} if "{" in path else {"threadId": thread})
        got = caller.client.post(path_of(operation, {**other.ids, "thread": thread}), json=body)
        said.append((got.status_code, got.json()))
    assert said[0] == said[1]
    assert said[0][0] == 404


@pytest.mark.spec("http/foreign-ids")
def test_two_workspaces_have_agents_of_one_name_and_do_not_notice(tenants: Two) -> None:
    caller, other = tenants
    before, agent = other.seen(), f"/api/v1/agents/{other.ids['agent']}"
    assert caller.client.put(agent, json=AGENT).status_code == 201
    assert caller.client.delete(agent).status_code == 204
    assert other.seen() == before


@pytest.mark.spec("http/foreign-ids")
def test_an_administrator_of_one_workspace_makes_no_key_for_another(tenants: Two) -> None:
    said = tenants[0].client.post("/api/v1/api-keys", json={"user": "eve", "workspace": "other", "role": "admin"})
    assert said.status_code == 403


# --- how it is looked up ----------------------------------------------------------------------------------------------

READS = [
    ("GET", "/api/v1/agent/sessions/{}", None),
    ("GET", "/api/v1/agent/sessions/{}/events", None),
    ("PATCH", "/api/v1/agent/sessions/{}", {"title": "mine"}),
    ("DELETE", "/api/v1/agent/sessions/{}", None),
    ("POST", "/api/v1/agent/sessions/{}/control", {"subtype": "SESSION_CLOSE"}),
    ("GET", "/api/v1/agent/history?threadId={}", None),
    ("POST", "/api/v1/agent/ag-ui/connect", {"threadId": "{}", "runId": "r", "messages": []}),
]
OPENS = [
    ("POST", "/api/v1/agent/runs", a_body(thread="{}")),
    ("POST", "/api/v1/agent/sessions", {"threadId": "{}"}),
    ("POST", "/api/v1/agent/sessions/{}/messages", {"payload": "hello"}),
    (
        "POST",
        "/api/v1/agent/ag-ui",
        {"threadId": "{}", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "hi"}]},
    ),
]
PASSING = frozenset({"date", "content-length"})


class Counted:
    """A store whose calls are noted."""

    def __init__(self, store: Any) -> None:
        self.wrapped = store
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.wrapped, name)
        if callable(found) and not name.startswith("_"):
            self.calls.append(name)
        return found


async def looked_up(doors: Doors, headers: dict[str, str], asked: Any, thread: str) -> tuple[Any, ...]:
    """The answer whole, and how often the store was asked for it."""
    method, path, body = asked
    content = json.loads(json.dumps(body).replace("{}", thread)) if body is not None else None
    store: Any = doors.house.store
    store.calls.clear()
    async with doors.client.stream(method, path.format(thread), json=content, headers=headers) as said:
        kept = {name: value for name, value in said.headers.items() if name not in PASSING}
        text = "" if said.is_success else (await said.aread()).decode()
        calls = [name for name in store.calls if "key" not in name and "audit" not in name]
    return said.status_code, kept, text.replace(thread, "ID"), calls


async def theirs(doors: Doors, how: str) -> str:
    """A conversation of another workspace, of which nobody here was ever told: live or deleted."""
    thread, headers = str(uuid.uuid4()), await doors.key_for(f"bob-{how}", "other", role="admin")
    made = await doors.client.post("/api/v1/agent/sessions", json={"threadId": thread}, headers=headers)
    assert made.is_success, made.text
    if how == "deleted":
        gone = await doors.client.delete(f"/api/v1/agent/sessions/{thread}", headers=headers)
        assert gone.is_success, gone.text
    return thread


@pytest.mark.anyio
@pytest.mark.spec("http/foreign-ids")
@pytest.mark.parametrize("asked", READS, ids=lambda one: f"{one[0]} {one[1]}")
async def test_reading_a_deleted_foreign_thread_costs_and_says_what_a_random_one_does(
    store: QuickStore, asked: Any
) -> None:
    async with open_doors(cast("Any", Counted(store))) as doors:
        ann = await doors.key_for("ann", "mine", role="admin")
        deleted = await theirs(doors, "deleted")
        await looked_up(doors, ann, asked, str(uuid.uuid4()))  # whatever is looked up once
        assert await looked_up(doors, ann, asked, deleted) == await looked_up(doors, ann, asked, str(uuid.uuid4()))


@pytest.mark.anyio
@pytest.mark.spec("http/foreign-ids")
@pytest.mark.parametrize("asked", OPENS, ids=lambda one: f"{one[0]} {one[1]}")
async def test_opening_a_deleted_foreign_thread_costs_and_says_what_a_live_one_does(
    store: QuickStore, asked: Any
) -> None:
    """Whether an id was ever taken by somebody else shows when one wants to take it; nothing else of it does."""
    async with open_doors(store) as doors:
        deleted, live, other = [await theirs(doors, how) for how in ("deleted", "live", "too")]
    async with open_doors(cast("Any", Counted(store))) as doors:  # which remembers none of them
        ann = await doors.key_for("ann", "mine", role="admin")
        await looked_up(doors, ann, asked, other)  # from now on the caller is known
        seen = await looked_up(doors, ann, asked, deleted)
        assert seen == await looked_up(doors, ann, asked, live)
        assert seen[0] == 404
