"""Codes of the reasons that audit rows give in words, so that a program can say them in another language. Pure.

A row keeps its sentence, and a sentence of an error has no code: what went wrong is said by the row's `result`. A test
looks whether each sentence here is still one that the host writes.
"""

import re
from collections.abc import Mapping

from paddock.rules.values import Value

CODES: Mapping[str, str] = {
    "in the grant of the run": "in_the_grant",
    "manifest, agent and scope": "manifest_agent_scope",
    "its runner is not known": "runner_not_known",
    "kept unless there is one": "kept_unless_titled",
    "it has no words": "no_words",
    "its owner": "owner",
    "themselves": "themselves",
    "their own": "their_own",
    "of the run's user": "of_the_runs_user",
    "past its time": "past_its_time",
    "waits for the user's approval": "waits_for_approval",
    "asked by the session": "asked_by_the_session",
    "another host made this token": "token_of_another_host",
    "the token of the run": "token_of_the_run",
    "taken back": "taken_back",
}
FILLED: Mapping[str, str] = {
    r"role (?P<role>\w+)": "role",
    r"asked before: (?P<status>\w+)": "asked_before",
    r"in force: (?P<agents>.+)": "in_force",
    r"(?P<count>\d+) past their time": "past_their_time",
}
_FILLED = [(re.compile(pattern, re.DOTALL), code) for pattern, code in FILLED.items()]
_WAY = re.compile(r" \(over \w+\)$")
_A_CODE = re.compile(r"[a-z]+(_[a-z]+)*")


class Coded(Value, frozen=True):
    code: str
    params: Mapping[str, str] = {}


def coded(reason: str) -> Coded | None:
    """The code of a reason and what fills it; a reason of one plain word is its own code."""
    known = _WAY.sub("", reason)
    if known in CODES:
        return Coded(CODES[known])
    if _A_CODE.fullmatch(known):
        return Coded(known)
    for pattern, code in _FILLED:
        if found := pattern.fullmatch(known):
            return Coded(code, found.groupdict())
    return None
