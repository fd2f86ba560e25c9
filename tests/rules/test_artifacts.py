"""Who may read an artifact, what it may be called, and where blobs and state live."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.rules.access.artifacts import may_publish, may_read, safe_name
from paddock.rules.access.permissions import Grant, RunScope, area_key, state_key
from paddock.rules.rows.rows import ArtifactRow
from paddock.rules.search.tokens import after_prefix

NOW = 50.0


def a_grant(**changes: Any) -> Grant:
    at: dict[str, Any] = {
        "run_id": "r",
        "workspace_id": "w",
        "user_id": "u",
        "agent_id": "a",
        "session_id": "c",
        "subthread_id": "t",
    }
    more = {key: changes.pop(key) for key in ("files", "history_scope", "runner_id") if key in changes}
    known: dict[str, Any] = {"runner_id": "plugin:x/y/z", **more}
    every = frozenset({"plugin", "workspace", "binding"})
    return Grant(
        scope=RunScope(**at | changes),
        actions=frozenset(),
        state_scopes=every,
        storage_areas=every,
        deadline_at=0,
        **known,
    )


def a_file(**changes: Any) -> ArtifactRow:
    columns: dict[str, Any] = {
        "artifact_id": "art",
        "workspace_id": "w",
        "user_id": "u",
        "conversation_id": "c",
        "thread_id": "t",
        "run_id": "earlier",
        "agent_id": "a",
        "runner_id": "plugin:x/y/z",
        "source": "runner",
        "artifact_type": "file",
        "mime_type": "text/plain",
        "name": None,
        "size": 1,
        "sha256": "0",
        "published": False,
        "created_at": 1.0,
        "expires_at": 100.0,
        "metadata": b"",
    }
    return ArtifactRow(**columns | changes)


@pytest.mark.parametrize(
    ("grant", "file", "readable"),
    [
        ({}, {}, True),
        ({}, {"agent_id": "b"}, False),
        ({}, {"agent_id": "b", "published": True}, True),
        ({}, {"conversation_id": "d"}, False),
        ({}, {"conversation_id": "d", "published": True}, False),
        ({}, {"thread_id": None, "published": True}, False),
        ({}, {"thread_id": "other"}, False),
        ({}, {"conversation_id": None, "thread_id": None, "published": True}, False),
        ({}, {"run_id": "r", "conversation_id": "d", "agent_id": "b"}, True),
        ({}, {"workspace_id": "v", "run_id": "r"}, False),
        ({}, {"expires_at": NOW}, False),
        ({}, {"expires_at": None}, True),
        ({"files": frozenset({"art"})}, {"conversation_id": None, "agent_id": None}, True),
        ({"files": frozenset({"art"})}, {"workspace_id": "v"}, False),
        ({"files": frozenset({"art"})}, {"expires_at": 1.0}, False),
        ({"history_scope": "workspace"}, {"conversation_id": "d", "published": True}, True),
        ({"history_scope": "workspace"}, {"conversation_id": "d"}, False),
        ({"history_scope": "workspace"}, {"conversation_id": None, "published": True}, False),
        ({"history_scope": "workspace"}, {"workspace_id": "v", "published": True}, False),
    ],
)
def test_who_may_read_a_file(grant: dict[str, Any], file: dict[str, Any], readable: bool) -> None:
    assert may_read(a_grant(**grant), a_file(**file), NOW) is readable


def test_only_what_is_of_this_conversation_can_be_published_in_it() -> None:
    assert may_publish(a_grant(), a_file(), NOW)
    assert not may_publish(a_grant(files=frozenset({"art"})), a_file(conversation_id="d"), NOW)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        (None, None),
        ("notes.txt", "notes.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\a.txt", "a.txt"),
        ('a"b\r\nSet-Cookie: x', "abSet-Cookie x"),
        ("..", None),
        ("报告.pdf", "报告.pdf"),
        ("x" * 300, "x" * 200),
    ],
)
def test_a_name_is_only_a_name(name: str | None, safe: str | None) -> None:
    assert safe_name(name) == safe


def test_areas_differ_by_workspace_and_by_whom_they_are_for() -> None:
    base, areas = a_grant(), ("plugin", "workspace", "binding")
    others = {
        "workspace": a_grant(workspace_id="v"),
        "agent": a_grant(agent_id="b"),
        "plugin": a_grant(runner_id="plugin:x/other/z"),
        "runner": a_grant(runner_id="plugin:x/y/other"),
    }
    apart = {
        who: [area for area in areas if area_key(area, base) != area_key(area, other)] for who, other in others.items()
    }
    assert apart == {"workspace": [*areas], "agent": ["binding"], "plugin": ["plugin"], "runner": []}
    assert len({area_key(area, base) for area in areas}) == 3
    assert area_key("elsewhere", base) is None


def test_state_of_actors_and_subjects_is_kept_by_who_they_are() -> None:
    people = [a_grant(), a_grant(actor_id="u"), a_grant(actor_id="v"), a_grant(actor_type="bot", actor_id="v")]
    assert len({state_key("actor", grant) for grant in people}) == 3
    assert state_key("actor", people[0]) == state_key("actor", people[1])
    about = [a_grant(subject_type="group", subject_id="g"), a_grant(subject_type="member", subject_id="g")]
    assert len({state_key("subject", grant) for grant in about}) == 2
    assert state_key("subject", a_grant(subject_type="message")) is None
    scopes = ("conversation", "actor", "subject", "runner", "binding")
    assert len({state_key(scope, about[0]) for scope in scopes}) == len(scopes)


@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=4),
    st.text(alphabet=st.characters(codec="utf-8"), max_size=6),
)
def test_a_range_holds_exactly_what_begins_with_the_prefix(prefix: str, text: str) -> None:
    end = after_prefix(prefix)
    assert (text >= prefix and (end is None or text < end)) == text.startswith(prefix)
