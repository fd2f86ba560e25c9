"""The native door's table: every rule has its sentence, the first broken rule answers, and nothing invalid gets by."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddock.host.zones import is_time_zone
from paddock.rules.errors import ErrorCode
from paddock.rules.run.input import NativeInput, Problem, World, read_run_input, with_attachments
from paddock.rules.run.request_bodies import body_hash
from paddock.rules.schedule.time_zones import is_rfc3339

Body = dict[str, Any]
THREAD = "550e8400-e29b-41d4-a716-446655440000"
WORLD = World(is_time_zone)
CLIENT_TIME = {
    "device_timezone": "America/Los_Angeles",
    "client_now_iso": "2026-03-16T09:12:33-07:00",
    "client_epoch_ms": 1773658353000,
}


def a_body(**changes: Any) -> Body:
    body: Body = {
        "threadId": THREAD,
        "runId": "run-001",
        "state": {},
        "messages": [{"id": "msg-001", "role": "user", "content": "帮我查一下北京今天的天气"}],
        "tools": [],
        "context": [],
        "forwardedProps": {"runtime_mode": "chat"},
    }
    return body | changes


def image(**changes: Any) -> Body:
    return {"type": "binary", "mimeType": "image/png", "url": "https://ours/1"} | changes


def says(*blocks: Any, **changes: Any) -> Body:
    return a_body(messages=[{"id": "m", "role": "user", "content": list(blocks)}], **changes)


def with_client_time(**changes: Any) -> Body:
    return a_body(forwardedProps={"runtime_mode": "chat", "client_time": CLIENT_TIME | changes})


def others(*messages: Any) -> Body:
    return a_body(messages=[*a_body()["messages"], *messages])


def without(body: Body, name: str) -> Body:
    return {key: value for key, value in body.items() if key != name}


def read(body: Any, world: World = WORLD) -> NativeInput | Problem:
    return read_run_input(json.dumps(body, ensure_ascii=False).encode(), world)


def complaint(body: Any, world: World = WORLD) -> str:
    problem = read(body, world)
    assert isinstance(problem, Problem), "this should have been refused"
    assert problem.code is ErrorCode.INVALID_ARGUMENT
    return problem.message


UUID, RUN_ID = "threadId must be a valid UUID", "runId exceeds length limit"
MANY, LONG = "RunAgentInput.messages exceeds limit", "RunAgentInput user message text exceeds limit"
PROPS = "invalid RunAgentInput.forwardedProps"
ONE, FIRST = (
    "RunAgentInput.messages must contain exactly one user message",
    "RunAgentInput.messages[0].role must be user",
)
IMAGE, URL = "binary content requires image mimeType", "binary content requires url"
DATA, TOO_MANY = "binary content data is not allowed", "Too many attachments"
USER = {"id": "u", "role": "user", "content": "x"}
SYSTEM = {"id": "s", "role": "system", "content": "x"}

# In the order of the rules: what breaks each, and only it.
TABLE: list[tuple[str, list[Body]]] = [
    (UUID, [a_body(threadId=bad) for bad in ("", "main", 5, None, [], THREAD[:-1], THREAD + "0", "{" + THREAD + "}")]
        + [a_body(threadId=bad) for bad in (THREAD.replace("-", ""), f"urn:uuid:{THREAD}", THREAD + "\n")]
        + [a_body(threadId="５" + THREAD[1:])]
        + [without(a_body(), "threadId")]),
    (RUN_ID, [a_body(runId="x" * 129), a_body(runId="界" * 129)]),
    (MANY, [a_body(messages=[USER, *[SYSTEM] * 200])]),
    (LONG, [a_body(messages=[USER | {"content": "界" * 10_001}]),
            says({"type": "text", "text": "x" * 5_000}, {"type": "text", "text": "x" * 5_001})]),
    (PROPS, [without(a_body(), "forwardedProps"), *[a_body(forwardedProps=bad) for bad in (
        None, "chat", [], {}, {"runtime_mode": None}, {"runtime_mode": "Chat"}, {"runtime_mode": ["chat"]},
        {"runtimeMode": "chat"}, {"runtime_mode": "chat", "extra": 1}, {"runtime_mode": "automation"},
        {"runtime_mode": "chat", "clientTime": {}}, {"runtime_mode": "chat", "client_time": None},
        {"runtime_mode": "chat", "client_time": "now"})]]),
    (ONE, [a_body(messages=[]), a_body(messages=[SYSTEM]), a_body(messages=[USER, USER])]),
    (FIRST, [a_body(messages=[SYSTEM, USER])]),
    (IMAGE, [says(image(mimeType=bad)) for bad in (None, 5, "", "image", "image/", "text/html", "image/*", "ximage/png",
        "image/png; a=b", "image/png\n")] + [says(without(image(), "mimeType"))]),
    (URL, [says(image(url=bad)) for bad in (None, "", 5, {})] + [says(without(image(), "url"))]),
    (DATA, [says(image(data=bad)) for bad in ("", "AAAA", 5)]),
    (TOO_MANY, [says(*[image()] * 4)]),
    ("invalid client_time.device_timezone", [with_client_time(device_timezone=bad) for bad in (
        None, "", 8, "Mars/Olympus", "america/los_angeles", "UTC+8", "localtime", "../UTC", "America/Los_Angeles ")]
        + [a_body(forwardedProps={"runtime_mode": "chat", "client_time": {}})]),
    ("invalid client_time.client_now_iso", [with_client_time(client_now_iso=bad) for bad in (
        None, "", 5, "2026-03-16", "2026-03-16T09:12:33", "2026-03-16 09:12:33Z", "2026-02-30T09:12:33Z",
        "2026-03-16T24:00:00Z", "2026-03-16T09:12:33+0700", "2026-03-16T09:12:33+24:00", "2026-03-16T09:12Z",
        "2026-03-16T09:12:60Z", "2026-03-16T09:12:33.Z", "20260316T091233Z", "2026-03-16T09:12:33Z\n",
        "٢026-03-16T09:12:33Z")]),
    ("invalid client_time.client_epoch_ms", [with_client_time(client_epoch_ms=bad) for bad in (
        None, "1773658353000", 1773658353000.0, 1.5, True, -1, 10**30)]),
]  # fmt: skip


@pytest.mark.spec("http/rules-in-order")
@pytest.mark.parametrize(("message", "body"), [(message, body) for message, bodies in TABLE for body in bodies])
def test_each_rule_refuses_with_its_own_sentence(message: str, body: Body) -> None:
    assert complaint(body) == message


def merge(later: Body, earlier: Body) -> Body:
    """A body that breaks both rules: what the earlier one changed, over what the later one changed."""
    changed = {key: value for key, value in earlier.items() if value != a_body().get(key)}
    return {key: value for key, value in (later | changed).items() if key in earlier or key not in a_body()}


BREAKERS = [(message, bodies[0]) for message, bodies in TABLE if message != FIRST]


@pytest.mark.spec("http/rules-in-order")
@pytest.mark.parametrize("index", range(len(BREAKERS) - 1))
def test_when_several_rules_are_broken_the_first_of_the_table_answers(index: int) -> None:
    first, earlier = BREAKERS[index]
    for _, later in BREAKERS[index + 1 :]:
        assert complaint(merge(later, earlier)) == first


@pytest.mark.spec("http/rules-in-order")
def test_attachments_are_judged_rule_by_rule_before_anybody_asks_whose_the_url_is() -> None:
    blocks = [image(url="x"), image(mimeType="text/html"), image(url=""), image(data="A")]
    expected = [IMAGE, URL, DATA, TOO_MANY, "invalid client_time.client_epoch_ms"]
    bad_time = {"runtime_mode": "chat", "client_time": CLIENT_TIME | {"client_epoch_ms": None}}
    repairs: list[Callable[[Body], Body]] = [
        lambda body: says(image(url="x"), image(url=""), image(data="A"), image(), forwardedProps=bad_time),
        lambda body: says(image(url="x"), image(data="A"), image(), image(), forwardedProps=bad_time),
        lambda body: says(image(url="x"), image(), image(), image(), forwardedProps=bad_time),
        lambda body: says(image(url="x"), forwardedProps=bad_time),
    ]
    body = says(*blocks, forwardedProps=bad_time)
    found = [complaint(body)]
    for repair in repairs:
        body = repair(body)
        found.append(complaint(body))
    assert found == expected


def test_what_a_url_stands_for_takes_its_place_in_order() -> None:
    given = read(
        says(image(url="a", filename="x"), {"type": "text", "text": "t"}, image(url="b", mimeType="image/gif"))
    )
    assert isinstance(given, NativeInput)
    assert given.urls == ["a", "b"]
    kept = with_attachments(
        given, [{"id": "art-1", "mimeType": "image/png"}, {"id": "art-2", "mimeType": "image/webp"}]
    )
    assert kept.message["content"] == [
        {"type": "binary", "mimeType": "image/png", "filename": "x", "id": "art-1"},
        {"type": "text", "text": "t"},
        {"type": "binary", "mimeType": "image/webp", "id": "art-2"},
    ]


def test_the_limits_themselves_are_allowed() -> None:
    for body in (
        a_body(runId="界" * 128),
        a_body(messages=[USER, *[SYSTEM] * 199]),
        a_body(messages=[USER | {"content": "界" * 10_000}]),
        says(*[image()] * 3),
        a_body(threadId=THREAD.upper()),
        with_client_time(client_now_iso="2026-12-31T23:59:60Z"),
        with_client_time(client_epoch_ms=0),
    ):
        assert isinstance(read(body), NativeInput)


def test_a_thread_is_the_same_in_upper_case() -> None:
    given = read(a_body(threadId=THREAD.upper()))
    assert isinstance(given, NativeInput)
    assert given.thread_id == THREAD


@pytest.mark.spec("http/body-limit")
def test_size_is_counted_in_bytes() -> None:
    filler = json.dumps(a_body(state="")).encode()
    exact = filler.replace(b'"state": ""', b'"state": "' + b"x" * (262_144 - len(filler)) + b'"')
    assert len(exact) == 262_144
    assert isinstance(read_run_input(exact, WORLD), NativeInput)
    problem = read_run_input(exact + b" ", WORLD)
    assert problem == Problem(ErrorCode.PAYLOAD_TOO_LARGE, "RunAgentInput payload exceeds size limit")


WRONG_SHAPES = [
    (a_body(runId=""), "runId must be a non-empty string"),
    (a_body(runId=7), "runId must be a non-empty string"),
    (without(a_body(), "runId"), "runId must be a non-empty string"),
    (without(a_body(), "messages"), "RunAgentInput.messages must be a list"),
    (a_body(messages={}), "RunAgentInput.messages must be a list"),
    (others("x"), "RunAgentInput.messages[1] must be an object"),
    (others({"id": "x", "role": "robot"}), "RunAgentInput.messages[1].role must be one of user, assistant,"),
    (others({"id": "x", "role": ["user"]}), "RunAgentInput.messages[1].role must be one of"),
    (a_body(messages=[without(USER, "id")]), "RunAgentInput.messages[0].id is required"),
    (a_body(messages=[USER | {"id": 5}]), "RunAgentInput.messages[0].id must be a non-empty string"),
    (a_body(messages=[without(USER, "content")]), "RunAgentInput.messages[0].content is required"),
    (a_body(messages=[USER | {"content": None}]), "RunAgentInput.messages[0].content must be a string or a list"),
    (a_body(messages=[USER | {"name": None}]), "RunAgentInput.messages[0].name must be a string"),
    (says({"type": "image"}), "RunAgentInput.messages[0].content[0].type must be text or binary"),
    (says({"type": "text", "text": 5}), "RunAgentInput.messages[0].content[0].text must be a string"),
    (says("text"), "RunAgentInput.messages[0].content[0] must be an object"),
    (says(image(filename=5)), "RunAgentInput.messages[0].content[0].filename must be a string"),
    (others({"id": "t", "role": "tool", "content": "x"}), "RunAgentInput.messages[1].toolCallId is required"),
    (others({"id": "a", "role": "assistant", "toolCalls": None}), "RunAgentInput.messages[1].toolCalls must be a list"),
    (others({"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "type": "x", "function": {}}]}),
     "RunAgentInput.messages[1].toolCalls[0].type must be function"),
    (others({"id": "a", "role": "assistant",
             "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f"}}]}),
     "RunAgentInput.messages[1].toolCalls[0].function.arguments is required"),
    (others({"id": "s", "role": "system", "content": []}), "RunAgentInput.messages[1].content must be a string"),
    (others({"id": "s", "role": "activity", "activityType": "x", "content": "y"}),
     "RunAgentInput.messages[1].content must be an object"),
    (a_body(parentRunId=5), "parentRunId must be a string"),
    (a_body(parentRunId=None), "parentRunId must be a string"),
    (a_body(tools=None), "RunAgentInput.tools must be a list"),
    (a_body(tools=[{"name": "f", "description": ""}]), "RunAgentInput.tools[0].parameters is required"),
    (a_body(tools=[{"name": "f", "description": "", "parameters": []}]),
     "RunAgentInput.tools[0].parameters must be an object"),
    (a_body(context=[{"description": "d", "value": 5}]), "RunAgentInput.context[0].value must be a string"),
    (a_body(context={}), "RunAgentInput.context must be a list"),
    (a_body(thread_id=THREAD[:-1] + "1"), "threadId and thread_id differ"),
    (a_body(run_id="other"), "runId and run_id differ"),
    (a_body(forwarded_props={}), "forwardedProps and forwarded_props differ"),
    (says(image(mime_type="image/gif")), "RunAgentInput.messages[0].content[0].mimeType and "),
]  # fmt: skip


@pytest.mark.spec("http/shapes")
@pytest.mark.parametrize(("body", "start"), WRONG_SHAPES)
def test_wrong_shapes_are_refused_and_named(body: Body, start: str) -> None:
    assert complaint(body).startswith(start)


@pytest.mark.spec("http/json")
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"a": NaN}', b'{"a": "\\ud800"}', b"[" * 5000,
     b'{"a":' * 65 + b"1" + b"}" * 65],
)  # fmt: skip
def test_what_is_not_a_json_object_is_refused_with_a_sentence(body: bytes) -> None:
    problem = read_run_input(body, WORLD)
    assert isinstance(problem, Problem)
    assert problem.message.startswith("RunAgentInput ")


@pytest.mark.spec("http/json")
def test_sixty_four_levels_are_allowed_and_one_more_is_not() -> None:
    def nested(levels: int) -> Any:
        return {} if levels == 1 else {"a": nested(levels - 1)}

    assert isinstance(read(a_body(state=nested(63))), NativeInput)
    assert complaint(a_body(state=nested(64))) == "RunAgentInput is nested deeper than 64 levels"


@pytest.mark.spec("http/both-spellings")
def test_both_spellings_mean_the_same() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    messages = [
        USER | {"encryptedValue": "e"},
        {"id": "a", "role": "assistant", "toolCalls": [call]},
        {"id": "t", "role": "tool", "content": "x", "toolCallId": "c"},
    ]
    camel = a_body(messages=messages, parentRunId="p", state={"threadId": 1})
    text = json.dumps(camel)
    for name in ("threadId", "runId", "parentRunId", "forwardedProps", "encryptedValue", "toolCalls", "toolCallId"):
        other = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        text = text.replace(f'"{name}": "', f'"{other}": "').replace(f'"{name}": [', f'"{other}": [')
        text = text.replace(f'"{name}": {{', f'"{other}": {{')
    assert 'Id": "' not in text
    one, other_one = read(camel), read(json.loads(text))
    assert isinstance(one, NativeInput)
    assert isinstance(other_one, NativeInput)
    assert (one.message, one.params, one.thread_id) == (other_one.message, other_one.params, other_one.thread_id)
    assert isinstance(read(camel | {"run_id": "run-001"}), NativeInput)


def test_a_valid_request_is_split_into_what_the_host_says_and_what_the_client_says() -> None:
    body = others(SYSTEM | {"name": None, "unknown": 1})
    body["messages"][0]["content"] = [
        {"type": "text", "text": "one"},
        image(data=None),
        {"type": "text", "text": "two"},
    ]
    given = read(body | {"unknown": 1, "parentRunId": "p"})
    assert isinstance(given, NativeInput)
    assert (given.thread_id, given.run_id, given.text) == (THREAD, "run-001", "one\ntwo")
    assert given.message["content"] == [{"type": "text", "text": "one"}, image(), {"type": "text", "text": "two"}]
    assert given.params == {
        "parentRunId": "p",
        "state": {},
        "tools": [],
        "context": [],
        "messages": [SYSTEM],
        "forwardedProps": {"runtime_mode": "chat"},
    }


def test_automation_is_for_threads_of_a_job() -> None:
    body = a_body(forwardedProps={"runtime_mode": "automation"})
    assert complaint(body) == PROPS
    assert isinstance(read(body, World(is_time_zone, is_job_thread=lambda thread: thread == THREAD)), NativeInput)


def test_the_same_request_has_the_same_hash_however_it_is_written() -> None:
    turned = dict(reversed(a_body().items()))
    assert body_hash(a_body(), "x") == body_hash(turned, "x")
    assert body_hash(a_body(), "x") != body_hash(a_body(), None)
    assert body_hash(a_body(), "x") != body_hash(a_body(state=1), "x")


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("2026-03-16T09:12:33-07:00", True),
        ("2026-03-16t09:12:33.123456789z", True),
        ("2026-03-16T09:12:33-00:00", True),
        ("1990-12-31T15:59:60-08:00", True),
        ("1990-12-31T15:58:60-08:00", False),
        ("0000-01-01T00:00:00Z", False),
        ("9999-12-31T23:59:59-23:00", False),
    ],
)
def test_a_moment_is_read_as_rfc_3339_says(text: str, valid: bool) -> None:
    assert is_rfc3339(text) is valid


VALID = a_body(
    parentRunId="p",
    tools=[{"name": "f", "description": "d", "parameters": {"type": "object"}}],
    context=[{"description": "d", "value": "v"}],
    messages=[USER | {"content": [{"type": "text", "text": "x"}, image()], "name": "n"}, SYSTEM],
    forwardedProps={"runtime_mode": "chat", "client_time": CLIENT_TIME},
)
RUBBISH = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([]) | st.just({}) | st.just([[]])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


@pytest.mark.spec("http/shapes")
@settings(max_examples=400, deadline=None)
@given(path=st.sampled_from(places(VALID)[1:]), rubbish=RUBBISH)
def test_rubbish_anywhere_is_refused_or_read_never_a_crash(path: tuple[Any, ...], rubbish: Any) -> None:
    body = copy.deepcopy(VALID)
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = rubbish
    answer = read(body)
    if isinstance(answer, NativeInput):
        free = path[0] == "state" or "parameters" in path or (path[-1] == "client_epoch_ms" and type(rubbish) is int)
        assert free or type(rubbish) is str or rubbish == [], f"{path} = {rubbish!r} was taken as valid"
