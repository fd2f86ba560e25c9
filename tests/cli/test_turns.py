"""One turn from outside, with a host that answers as the test says."""

from collections.abc import Iterator
from typing import Any

import pytest

from paddock.cli.chatting import turns
from paddock.cli.chatting.turns import ChatTurn
from paddock.cli.client import Event, HostGoneError, RefusedError

STARTED, TEXT, END = (f'{{"type": "{name}"}}' for name in ("RUN_STARTED", "TEXT_MESSAGE_CONTENT", "RUN_FINISHED"))


class ScriptedHost:
    """Each call for events plays the next scene: events, then perhaps a failure."""

    def __init__(self, *scenes: list[Event | Exception]) -> None:
        self.scenes = list(scenes)
        self.asked_after: list[str] = []

    def call(self, method: str, path: str, body: object = None) -> Any:
        return {"taskId": "t1"}

    def events(self, path: str, *, after: str = "") -> Iterator[Event]:
        self.asked_after.append(after)
        for one in self.scenes.pop(0):
            if isinstance(one, Exception):
                raise one
            yield one


def played(host: ScriptedHost) -> tuple[list[str], int]:
    lost: list[int] = []
    turn = ChatTurn(lambda: host, "thread", "hi", on_lost=lambda: lost.append(1))
    turn.start()
    return [event["type"] for event in turn.events()], len(lost)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PAUSES", (0.001,))


def test_events_go_on_after_the_last_one_that_arrived() -> None:
    host = ScriptedHost(
        [Event("1.1.0", STARTED), Event("1.2.0", TEXT), HostGoneError("broken")],
        [HostGoneError("still broken")],
        [RefusedError(503, "unavailable", "starting")],
        [],
        [Event("1.3.0", TEXT), Event("1.4.0", END)],
    )
    seen, lost = played(host)
    assert seen == ["RUN_STARTED", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "RUN_FINISHED"]
    assert host.asked_after == ["", "1.2.0", "1.2.0", "1.2.0", "1.2.0"]
    assert lost == 1


def test_a_host_that_was_started_anew_is_asked_again_when_its_new_token_is_there() -> None:
    unknown = RefusedError(401, "unauthenticated", "this key is not known here")
    host = ScriptedHost([Event("1.1.0", STARTED), HostGoneError("killed")], [unknown], [Event("1.2.0", END)])
    assert played(host) == (["RUN_STARTED", "RUN_FINISHED"], 1)


def test_a_key_that_was_revoked_ends_it() -> None:
    host = ScriptedHost([Event("1.1.0", STARTED), RefusedError(401, "unauthenticated", "this key is not known here")])
    with pytest.raises(RefusedError, match="not known"):
        played(host)


def test_a_refusal_is_no_reason_to_try_again() -> None:
    host = ScriptedHost([Event("1.1.0", STARTED), RefusedError(404, "not_found", "no such run")])
    with pytest.raises(RefusedError, match="no such run"):
        played(host)


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.02)
    host = ScriptedHost(*([[HostGoneError("nobody there")]] * 1000))
    with pytest.raises(HostGoneError, match="nobody there"):
        played(host)
