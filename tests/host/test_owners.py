"""What one host asks of another arrives as it was sent."""

import asyncio
from dataclasses import fields

import msgspec
import pytest

from paddock.host.arrivals import NewRun
from paddock.host.owners import AcceptRun, CancelTheRun, Control, Deed, ForgetFiles, LetIn, Owners, packed, unpacked
from paddock.host.principals import Principal
from paddock.rules.errors import OwnedElsewhereError
from paddock.rules.rows import AuditRow
from paddock.rules.run_events import RunEvent

ANN = Principal("w", "ann", "admin")
ROW = AuditRow(1.5, "w", "user:ann", "a", "r", "s", "allowed", "because")


@pytest.mark.parametrize(
    "deed",
    [
        AcceptRun(NewRun(ANN, "t", "r", b"\x00\xff", {"id": "m", "content": [{"type": "text"}]}, "hi 你好")),
        AcceptRun(NewRun(ANN, "t", "r", b"h", {}, "", {"n": 1.5}, "echo", event=RunEvent(data={"x": 1}), rows=(ROW,))),
        CancelTheRun("run", ANN),
        ForgetFiles("w", "thread"),
        LetIn(b"\x00\xff", "w", "me", "mine", {"history": ["page"]}),
        Control(ANN, "t", "INVITE_AGENT", {"agent_id": "echo"}, None, "turn"),
    ],
)
def test_a_deed_arrives_as_it_was_sent(deed: Deed) -> None:
    assert unpacked(packed(deed)) == deed


def test_nothing_of_a_new_run_is_left_behind() -> None:
    """A field that is added to a run travels too, or this fails."""
    new = NewRun(ANN, "t", "r", b"h", {"a": 1}, "text")
    sent = unpacked(packed(AcceptRun(new)))
    assert isinstance(sent, AcceptRun)
    for field in msgspec.structs.fields(NewRun):
        assert getattr(sent.new, field.name) == getattr(new, field.name), field.name
    assert [field.name for field in fields(Principal)] == ["workspace_id", "user_id", "role", "operator"]


@pytest.mark.anyio
async def test_a_host_whose_memory_of_a_conversation_was_old_looks_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("paddock.host.owners.MOVED_SECONDS", 3600.0)
    tries = iter([OwnedElsewhereError(), None])

    async def here() -> str:
        if (refused := next(tries)) is not None:
            raise refused
        return "done"

    async with asyncio.timeout(10):
        assert await Owners().do(here, CancelTheRun("r", ANN), str) == "done"
