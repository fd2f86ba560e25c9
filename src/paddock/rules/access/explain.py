"""Explain why a run may, or may not, make a host call, from what was stored with the run. Pure.

Nothing here asks today's configuration: the story of a run does not change when somebody edits an agent.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from paddock.rules.access.gate import LOOKED_AT, CallCheck
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow
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


LAYERS: Mapping[str, str] = {
    "manifest": "the runner's manifest does not ask for it",
    "plugin_file": "the runner's manifest asks for it, but the plugin file, which says what was agreed to when the "
    "plugin was installed or attached, does not allow it",
    "agent": "the runner's manifest asks for it, but the agent {agent!r} does not allow it",
    "host": "manifest and agent allow it, but this host does not offer it",
}
SENTENCES: Mapping[str, str] = {
    **{f"refused.{layer}": words for layer, words in LAYERS.items()},
    "refused.run": "this run was given nothing: it never got as far as its runner",
    "granted": "the manifest asked for it, the plugin file and the agent {agent!r} allowed it, and the host offered it",
    "kind.granted": "{name!r} is one of its {kind}",
    "kind.operation_missing": "of {name!r} it was granted {granted}, not {operation}",
    "kind.missing": "{name!r} is not among the {kind} that the agent gave it and the host has; granted are: {granted}",
    "within.granted": "{name!r} is one of its {kind}",
    "within.asks_first": "{name!r} is one of its {kind}; each request still waits for the user's approval",
    "within.missing": "{name!r} is not one of its {kind}; granted are: {granted}",
    "conversation.own": "it is the run's own conversation",
    "conversation.workspace": "manifest and agent both say it may read the other conversations of its workspace",
    "conversation.other": "it may read its own conversation only: manifest and agent must both say workspace for more",
    "files": "it reads what belongs to its own conversation or to its granted files; all else looks as if it did not "
    "exist",
    "ended": "the run has ended ({status}) and its grant with it, so a call now is refused",
    "late": "the run is past its deadline, so a call now is refused",
}
"""Every reason there is, by its code. Programs that speak another language say it in their own words, from the code
and what fills it."""


class Reason(Value, frozen=True):
    """A code of `SENTENCES`, and what fills it."""

    code: str
    params: Mapping[str, str] = {}

    @property
    def words(self) -> str:
        filled = dict(self.params)
        if "kind" in filled:
            filled["kind"] = filled["kind"].replace("_", " ")
        if filled.get("granted") == "":
            filled["granted"] = "nothing" if "operation" in filled else "none"
        return SENTENCES[self.code].format(**filled)


class Explanation(Value, frozen=True):
    """`granted` is what the run was given; `allowed` is whether a call now would pass as far as can be told."""

    action: str
    resource: str
    granted: bool
    allowed: bool
    layer: str
    because: Sequence[str]
    reasons: Sequence[Reason] = ()
    """The same as `because`, by codes; what is joined there is one after the other here."""


def meant(action: str) -> str:
    """Return the sentence for an unknown host call, with the nearest known name."""
    near = get_close_matches(action, list(LOOKED_AT), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(LOOKED_AT)}"
    return f"there is no host call {action[:64]!r}; {hint}"


def explain(run: RunRow, told: Mapping[str, Any], action: str, resource: str, now: float) -> Explanation:
    """`told` is the summary of the grant that was stored with the run; empty when it has none."""
    layer, decided = _granted(run, told, action)
    reasons = [decided]
    if not layer and resource:
        layer, of_resource = _resource(run, told, action, resource)
        reasons += [of_resource] if of_resource else []
    because, ended = [_sentence("; ".join(reason.words for reason in reasons))], _ended(run, now)
    if ended:
        reasons.append(ended)
        because.append(_sentence(ended.words))
    at = layer or ("run" if ended else "")
    return Explanation(action, resource, not layer, not layer and not ended, at, because, reasons)


def _granted(run: RunRow, told: Mapping[str, Any], action: str) -> tuple[str, Reason]:
    """The layer that said no to the call itself, or "", and why."""
    if not told:
        return "run", Reason("refused.run")
    agent = {"agent": run.agent_id}
    if action in told["actions"]:
        return "", Reason("granted", agent)
    layer = told.get("refused", {}).get(action, "manifest")
    return layer, Reason(f"refused.{layer}", agent)


def _resource(run: RunRow, told: Mapping[str, Any], action: str, resource: str) -> tuple[str, Reason | None]:
    looked = LOOKED_AT[action]
    if looked.kind is not None:
        return _of_kind(told, looked, resource)
    if looked.within is not None:
        return _within(told, looked, resource)
    if looked.conversation:
        return _conversation(run, told, resource)
    return "", Reason("files") if looked.resource in {"artifact_id", "event_id"} else None


def _of_kind(told: Mapping[str, Any], looked: CallCheck, name: str) -> tuple[str, Reason]:
    resources: Mapping[str, Sequence[str]] = told.get(str(looked.kind), {})
    about = {"name": name, "kind": str(looked.kind)}
    if looked.operation in resources.get(name, ()):
        return "", Reason("kind.granted", about)
    if name in resources:
        granted = {"granted": ", ".join(resources[name]), "operation": str(looked.operation)}
        return "agent", Reason("kind.operation_missing", {**about, **granted})
    return "agent", Reason("kind.missing", {**about, "granted": ", ".join(sorted(resources))})


def _within(told: Mapping[str, Any], looked: CallCheck, scope: str) -> tuple[str, Reason]:
    granted: Sequence[str] = told.get(str(looked.within), ())
    about = {"name": scope.partition("/")[0], "kind": str(looked.within)}
    if about["name"] in granted:
        return "", Reason("within.asks_first" if looked.within == "platform_actions" else "within.granted", about)
    return "agent", Reason("within.missing", {**about, "granted": ", ".join(granted)})


def _conversation(run: RunRow, told: Mapping[str, Any], session_id: str) -> tuple[str, Reason]:
    if session_id == run.session_id:
        return "", Reason("conversation.own")
    if told.get("history_scope") == "workspace":
        return "", Reason("conversation.workspace")
    return "agent", Reason("conversation.other")


def _ended(run: RunRow, now: float) -> Reason | None:
    if run.status in TERMINAL_STATUSES:
        return Reason("ended", {"status": run.code or run.status})
    if run.deadline_at is not None and now > run.deadline_at:
        return Reason("late")
    return None


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
