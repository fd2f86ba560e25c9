"""Exactly one agent answers an event."""

import pytest

from paddock.rules.agents.resources import answering, answers
from paddock.rules.errors import ErrorCode, HostError

RULES = {"desk": ["message.received"], "door": ["group.*"], "all": ["friend.request_received", "group.member_joined"]}


def test_the_one_that_matches_answers() -> None:
    assert answering("message.received", RULES) == "desk"
    assert answering("group.renamed", RULES) == "door"
    assert answering("group.member_joined", RULES, addressed="all") == "all"


@pytest.mark.parametrize(
    ("event_type", "addressed", "code"),
    [
        ("schedule.triggered", None, ErrorCode.NOT_FOUND),
        ("group.member_joined", None, ErrorCode.CONFLICT),
        ("message.received", "door", ErrorCode.INVALID_ARGUMENT),
        ("message.received", "nobody", ErrorCode.INVALID_ARGUMENT),
    ],
)
def test_none_and_several_are_errors_that_name_the_event(
    event_type: str, addressed: str | None, code: ErrorCode
) -> None:
    with pytest.raises(HostError) as refused:
        answering(event_type, RULES, addressed)
    assert refused.value.code is code
    assert event_type in refused.value.message


def test_a_star_means_all_that_begin_so() -> None:
    assert answers(["*"], "anything.at_all")
    assert answers(["schedule.*"], "schedule.triggered")
    assert not answers(["schedule.*"], "schedule")
    assert not answers([], "message.received")
