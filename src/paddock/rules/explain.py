"""Why a run may, or may not, make a host call: in words, from what was stored with the run. Pure.

Nothing here asks today's configuration: the story of a run does not change when somebody edits an agent.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from paddock.rules.gate import LOOKED_AT, Looked
from paddock.rules.rows import TERMINAL_STATUSES, RunRow
from paddock.rules.values import Value

LAYERS: Mapping[str, str] = {
    "manifest": "the runner's manifest does not ask for it",
    "plugin_file": "the runner's manifest asks for it, but the plugin file, which says what was agreed to when the "
    "plugin was installed or attached, does not allow it",
    "agent": "the runner's manifest asks for it, but the agent {agent!r} does not allow it",
    "host": "manifest and agent allow it, but this host does not offer it",
}
ALL_AGREED = "the manifest asked for it, the plugin file and the agent {agent!r} allowed it, and the host offered it"
FILES = "it reads what belongs to its own conversation or to its granted files; all else looks as if it did not exist"


class Explanation(Value, frozen=True):
    """`granted` is what the run was given; `allowed` is whether a call now would pass as far as can be told."""

    action: str
    resource: str
    granted: bool
    allowed: bool
    layer: str
    because: Sequence[str]


def meant(action: str) -> str:
    """What to say to somebody who asks about a call that is none."""
    near = get_close_matches(action, list(LOOKED_AT), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(LOOKED_AT)}"
    return f"there is no host call {action[:64]!r}; {hint}"


def explain(run: RunRow, told: Mapping[str, Any], action: str, resource: str, now: float) -> Explanation:
    """`told` is the summary of the grant that was stored with the run; empty when it has none."""
    layer, words = _granted(run, told, action)
    if not layer and resource:
        layer, words_of_resource = _resource(run, told, action, resource)
        words = f"{words}; {words_of_resource}" if words_of_resource else words
    ended = _ended(run, now)
    because = [_sentence(words), *([_sentence(ended)] if ended else [])]
    return Explanation(action, resource, not layer, not layer and not ended, layer or ("run" if ended else ""), because)


def _granted(run: RunRow, told: Mapping[str, Any], action: str) -> tuple[str, str]:
    """The layer that said no to the call itself, or "", and the story."""
    if not told:
        return "run", "this run was given nothing: it never got as far as its runner"
    if action in told["actions"]:
        return "", ALL_AGREED.format(agent=run.agent_id)
    layer = told.get("refused", {}).get(action, "manifest")
    return layer, LAYERS[layer].format(agent=run.agent_id)


def _resource(run: RunRow, told: Mapping[str, Any], action: str, resource: str) -> tuple[str, str]:
    looked = LOOKED_AT[action]
    if looked.kind is not None:
        return _of_kind(told, looked, resource)
    if looked.within is not None:
        return _within(told, looked, resource)
    if looked.conversation:
        return _conversation(run, told, resource)
    return "", FILES if looked.resource in {"artifact_id", "event_id"} else ""


def _of_kind(told: Mapping[str, Any], looked: Looked, name: str) -> tuple[str, str]:
    resources: Mapping[str, Sequence[str]] = told.get(str(looked.kind), {})
    kind = str(looked.kind).replace("_", " ")
    if looked.operation in resources.get(name, ()):
        return "", f"{name!r} is one of its {kind}"
    if name in resources:
        return "agent", f"of {name!r} it was granted {', '.join(resources[name]) or 'nothing'}, not {looked.operation}"
    others = ", ".join(sorted(resources)) or "none"
    return "agent", f"{name!r} is not among the {kind} that the agent gave it and the host has; granted are: {others}"


def _within(told: Mapping[str, Any], looked: Looked, scope: str) -> tuple[str, str]:
    granted: Sequence[str] = told.get(str(looked.within), ())
    what = str(looked.within).replace("_", " ")
    name = scope.partition("/")[0]
    if name in granted:
        more = "; each request still waits for the user's approval" if looked.within == "platform_actions" else ""
        return "", f"{name!r} is one of its {what}{more}"
    return "agent", f"{name!r} is not one of its {what}; granted are: {', '.join(granted) or 'none'}"


def _conversation(run: RunRow, told: Mapping[str, Any], conversation_id: str) -> tuple[str, str]:
    if conversation_id == run.session_id:
        return "", "it is the run's own conversation"
    if told.get("history_scope") == "workspace":
        return "", "manifest and agent both say it may read the other conversations of its workspace"
    return "agent", "it may read its own conversation only: manifest and agent must both say workspace for more"


def _ended(run: RunRow, now: float) -> str:
    if run.status in TERMINAL_STATUSES:
        return f"the run has ended ({run.code or run.status}) and its grant with it, so a call now is refused"
    if run.deadline_at is not None and now > run.deadline_at:
        return "the run is past its deadline, so a call now is refused"
    return ""


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
