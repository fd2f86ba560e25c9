"""A closed list of words is written down once; everything else derives from it."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import get_args

import pytest

from paddock.host.agents.agents import Origin
from paddock.host.runs.agent_health import HealthState
from paddock.ports.definitions import PersonRole
from paddock.ports.runners import IsolationLevel, RunnerState
from paddock.rules.access.approvals import ApprovalStatus
from paddock.rules.access.permissions import OPENS, USUAL_SCOPES
from paddock.rules.agents.specs import KnownAction, TextUnit
from paddock.rules.errors import ErrorCode
from paddock.rules.log.events import EVENT_TYPES
from paddock.rules.rows.rows import RunEnd, RunStatus
from paddock.rules.run.results import SHAPES
from paddock.rules.session.facts import VOCABULARY, ManagerAnswer, OutputKind
from paddock.rules.session.state import Chain, InflightStatus
from paddock_sdk.protocol import manifest
from paddock_sdk.protocol.artifacts import ArtifactSource
from paddock_sdk.protocol.errors import API_ERROR_CODES
from paddock_sdk.protocol.history import TranscriptItemType
from paddock_sdk.protocol.host_calls import METHODS
from paddock_sdk.protocol.results import KNOWN_RESULTS, STATE_SCOPES, TERMINAL_TYPES, StateScope
from paddock_sdk.protocol.run_context import CONTEXT_API_CALLS

ROOT = Path(__file__).parents[2]
SOURCES = ("src/paddock", "sdk/src/paddock_sdk", "src/paddock_demo")
OTHER_DIALECTS = ("paddock_sdk/client/", "paddock/runners/packages/langbot.py")
"""The client of the HTTP API has the API's words, and LangBot has its own."""
KNOWN: Mapping[str, Iterable[str]] = {
    "result types": KNOWN_RESULTS,
    "results that end a run": TERMINAL_TYPES,
    "host calls": METHODS,
    "codes of refused host calls": API_ERROR_CODES,
    "codes of errors": ErrorCode,
    "types of events": EVENT_TYPES,
    "calls in a context": CONTEXT_API_CALLS,
    "scopes of state": STATE_SCOPES,
    "scopes of state in a context": get_args(StateScope),
    "scopes of state unless set": USUAL_SCOPES,
    "storage areas": get_args(manifest.StorageArea),
    "scopes of history": get_args(manifest.HistoryScope),
    "operations on models": get_args(manifest.ModelOperation),
    "operations on artifacts": get_args(manifest.ArtifactOperation),
    "sources of artifacts": get_args(ArtifactSource),
    "items of a transcript": get_args(TranscriptItemType),
    "ends of a run": get_args(RunEnd),
    "statuses of a run": get_args(RunStatus),
    "statuses of a turn": get_args(InflightStatus),
    "kinds of output": get_args(OutputKind),
    "answers of the manager": get_args(ManagerAnswer),
    "transactions": get_args(Chain),
    **{f"words of {event}": words for event, words in VOCABULARY.items() if len(words) > 2},
    "statuses of an approval": get_args(ApprovalStatus),
    "isolation levels": get_args(IsolationLevel),
    "states of a runner": get_args(RunnerState),
    "states of health": get_args(HealthState),
    "origins of agents": get_args(Origin),
    "roles of people": get_args(PersonRole),
    "actions of platforms": get_args(KnownAction),
    "units of a text": get_args(TextUnit),
}


def lists_in(source: str) -> Iterator[tuple[int, frozenset[str]]]:
    """Every list, tuple, set or Literal of texts, with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            words = [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if len(words) == len(node.elts):
                yield node.lineno, frozenset(words)


@pytest.fixture(scope="module")
def written() -> Mapping[frozenset[str], list[str]]:
    found: dict[frozenset[str], list[str]] = {}
    for path in (path for source in SOURCES for path in sorted((ROOT / source).rglob("*.py"))):
        if not any(dialect in path.as_posix() for dialect in OTHER_DIALECTS):
            for line, words in lists_in(path.read_text()):
                found.setdefault(words, []).append(f"{path.relative_to(ROOT)}:{line}")
    return found


@pytest.mark.parametrize("what", KNOWN)
def test_a_closed_list_is_written_once(what: str, written: Mapping[frozenset[str], list[str]]) -> None:
    assert len(written.get(frozenset(KNOWN[what]), [])) <= 1


def test_a_list_is_found_however_it_is_written() -> None:
    source = 'A = Literal["L0", "L1"]\nB = ("L0", "L1")\nC = {"L1", "L0"}\nD = f(["L0", "L1"], "L0")\nE = ("L0", x)'
    assert sorted(line for line, words in lists_in(source) if words == {"L0", "L1"}) == [1, 2, 3, 4]


def test_every_result_type_has_a_check_and_every_call_that_a_permission_opens_exists() -> None:
    assert set(SHAPES) == set(KNOWN_RESULTS)
    assert {method for methods in OPENS.values() for method in methods} <= set(METHODS)
