"""What one host asks of another arrives as it was sent."""

import asyncio
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, cast

import msgspec
import pytest

from paddock.bus.in_process import InProcessBus, Meeting
from paddock.host.cluster import forwarding
from paddock.host.cluster.forwarding import Answering, ClusterLink, Forwarding, RequestHandlers
from paddock.host.cluster.remote_requests import (
    AcceptRun,
    CancelTheRun,
    Control,
    Done,
    ForgetFiles,
    ForgetThread,
    LetIn,
    RemoteRequest,
    packed,
    unpacked,
)
from paddock.host.people.principals import Principal
from paddock.host.session.arrivals import NewRun
from paddock.host.streams.live import Live
from paddock.ports.hosts import Hosts, PendingRequest
from paddock.rules.errors import OwnedElsewhereError
from paddock.rules.log.payloads import RunEvent
from paddock.rules.rows.rows import AuditRow, SessionRow

ANN = Principal("w", "ann", "admin")
ROW = AuditRow(1.5, "w", "user:ann", "a", "r", "s", "allowed", "because")


@pytest.mark.parametrize(
    "sent",
    [
        AcceptRun(NewRun(ANN, "t", "r", b"\x00\xff", {"id": "m", "content": [{"type": "text"}]}, "hi 你好")),
        AcceptRun(NewRun(ANN, "t", "r", b"h", {}, "", {"n": 1.5}, "echo", event=RunEvent(data={"x": 1}), rows=(ROW,))),
        CancelTheRun("run", ANN),
        ForgetFiles("w", "thread"),
        ForgetThread(SessionRow("t", "w", "ann", 1.5), ROW, 2.5),
        LetIn(b"\x00\xff", "w", "me", "mine", {"history": ["page"]}),
        Control(ANN, "t", "INVITE_AGENT", {"agent_id": "echo"}, None, "turn"),
    ],
)
def test_a_request_to_another_host_arrives_as_it_was_sent(sent: RemoteRequest) -> None:
    assert unpacked(packed(sent)) == sent


def test_nothing_of_a_new_run_is_left_behind() -> None:
    """A field that is added to a run travels too, or this fails."""
    new = NewRun(ANN, "t", "r", b"h", {"a": 1}, "text")
    sent = unpacked(packed(AcceptRun(new)))
    assert isinstance(sent, AcceptRun)
    for field in msgspec.structs.fields(NewRun):
        assert getattr(sent.new, field.name) == getattr(new, field.name), field.name
    assert [field.name for field in fields(Principal)] == ["workspace_id", "user_id", "role", "operator", "credential"]


@pytest.mark.anyio
async def test_a_host_whose_memory_of_a_conversation_was_old_looks_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("paddock.host.cluster.forwarding.MOVED_SECONDS", 3600.0)
    tries = iter([OwnedElsewhereError(), None])

    async def here() -> str:
        if (refused := next(tries)) is not None:
            raise refused
        return "done"

    async with asyncio.timeout(10):
        assert await Forwarding().here_or_at_owner(here, CancelTheRun("r", ANN), str) == "done"


def test_a_run_from_a_host_that_does_not_know_every_field_is_taken_with_what_it_says() -> None:
    new = NewRun(ANN, "t", "r", b"h", {"a": 1}, "text")
    sent = msgspec.json.decode(packed(AcceptRun(new)))
    known = {"principal", "thread_id", "client_run_id", "body_hash", "message", "text"}
    sent["new"] = {name: value for name, value in sent["new"].items() if name in known} | {"of_the_future": 1}
    assert unpacked(msgspec.json.encode(sent)) == AcceptRun(new)


class Asked:
    """The register as a host sees it that is asked something."""

    boot = 1

    def __init__(self, *bodies: bytes) -> None:
        self.errands = {f"e{number}": body for number, body in enumerate(bodies)}
        self.answers: dict[str, Any] = {}
        self.looks = 0

    async def asked(self, *, limit: int) -> Sequence[PendingRequest]:
        self.looks += 1
        left = [PendingRequest(one, body) for one, body in self.errands.items() if one not in self.answers]
        return left[:limit]

    async def answer(self, errand_id: str, answer: bytes) -> None:
        self.answers[errand_id] = msgspec.json.decode(answer)

    async def all_answered(self) -> None:
        async with asyncio.timeout(30):
            while len(self.answers) < len(self.errands):
                await asyncio.sleep(0.001)


def answering_of(asked: Asked, handlers: RequestHandlers | None = None) -> Answering:
    bus = InProcessBus(Meeting())
    return Answering(ClusterLink(cast("Hosts", asked), bus, Live(bus)), handlers or {})


@pytest.mark.anyio
async def test_what_a_host_does_not_know_yet_is_to_be_tried_again_and_is_no_mistake() -> None:
    asked = Asked(b'{"type": "of_the_future"}')
    answering = asyncio.create_task(answering_of(asked).keep_answering())
    await asked.all_answered()
    answering.cancel()
    assert (asked.answers["e0"]["code"], asked.answers["e0"]["retryable"]) == ("unavailable", True)


@pytest.mark.anyio
async def test_more_errands_than_are_done_at_once_wait_for_each_other_and_not_for_the_next_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seconds in ("LOOK_SECONDS", "LOOK_OFTEN"):
        monkeypatch.setattr(forwarding, seconds, 600.0)
    asked = Asked(*[packed(CancelTheRun(f"run-{number}", ANN)) for number in range(3 * forwarding.AT_ONCE)])
    done = list[str]()

    async def cancel(request: CancelTheRun) -> Done:
        done.append(request.run_id)
        return Done()

    answering = asyncio.create_task(answering_of(asked, {CancelTheRun: cancel}).keep_answering())
    await asked.all_answered()
    answering.cancel()
    assert sorted(done) == sorted(f"run-{number}" for number in range(3 * forwarding.AT_ONCE))
