"""What a run left open: its client's calls, a person's questions, and the answers to them."""

from typing import Any

import pytest

from paddock.rules.errors import HostError
from paddock.rules.run.results import answers_to, approvals_in, interrupts_in, pending_in, with_approvals

END: dict[str, Any] = {
    "pending_tool_call_ids": ["a", "b", 3],
    "interrupts": [{"id": "q", "tool_call_id": "b"}, {"id": "late", "expires_at": 10}, {"reason": "nameless"}, 5],
}


def yes(name: str) -> dict[str, Any]:
    return {"interruptId": name, "status": "resolved", "payload": {"approved": True}}


def test_a_call_that_waits_for_a_person_is_not_the_clients_to_answer() -> None:
    assert pending_in(END) == {"a", "3"}
    assert pending_in({"pending_tool_call_ids": "odd"}) == set()


def test_questions_without_a_name_cannot_be_answered() -> None:
    assert [(one.interrupt_id, one.expires_at) for one in interrupts_in(END)] == [("q", None), ("late", 10.0)]


def test_answers_to_questions_nobody_asked_are_passed_over_and_said() -> None:
    taken, odd = answers_to([yes("q"), yes("late"), yes("who")], interrupts_in(END), now=5.0)
    assert [entry["interruptId"] for entry in taken] == ["q", "late"]
    assert odd == ["no interrupt 'who' is open"]


def test_all_open_questions_are_answered_at_once_or_none() -> None:
    with pytest.raises(HostError, match="these are missing: late"):
        answers_to([yes("q")], interrupts_in(END), now=5.0)


def test_after_its_time_a_question_can_only_be_declined() -> None:
    taken, odd = answers_to([yes("q"), yes("late")], interrupts_in(END), now=11.0)
    assert taken == [yes("q"), {"interruptId": "late", "status": "cancelled"}]
    assert odd == ["interrupt 'late' has expired and counts as cancelled"]


def test_only_the_host_says_that_something_waits_for_approval() -> None:
    forged = {"approvals": [{"id": "ap_1", "action": "message.recall"}], "usage": {}}
    assert with_approvals(forged, []) == {"usage": {}}
    said = with_approvals({"interrupts": [{"id": "ap_1", "message": "harmless"}]}, [{"id": "ap_1", "action": "x"}])
    assert approvals_in(said) == {"ap_1": "x"}
    assert [one.interrupt_id for one in interrupts_in(said)] == ["ap_1"]
