"""Requests nobody would think of, made from the host's own description, and what must be true of every answer.

Checked: no server error; the status is one the operation names itself (`default` is taken out of the description, so
that it excuses nothing); the content type and the body are as described; other methods are refused and say which are
allowed. Not checked here: that valid input is accepted, for what is valid depends on more than a schema can say.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import httpx
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import Status, events, from_schema

SEED = 20_260_315
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "unsupported_method",
)
LEFT_OUT = {
    "/api/v1/agent/sessions/{thread}/events": "a stream without an end, by design; its own tests read it",
    "/metrics": "a text for machines that has its own format and its own tests",
}
"""Operations that are not called, each with the reason. The WebSocket for runners and the MCP door of a run are no
operations of the description: they speak their own protocols, and have their own tests."""


@dataclass
class Found:
    cases: int = 0
    statuses: Counter[int] = field(default_factory=Counter[int])
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """By operation and kind: the first case that shows it, as a curl command, and what is wrong."""


def described(url: str, half: int | None) -> dict[str, Any]:
    """The host's own document, less what would excuse anything and less what is left out.

    Halves are cut in the middle: paths that could be taken for one another stand side by side, and must stay so.
    """
    document = httpx.get(f"{url}/api/openapi.json", timeout=60).raise_for_status().json()
    called = [path for path in document["paths"] if path not in LEFT_OUT]
    if half is not None:
        middle = _middle([len(document["paths"][path]) for path in called])
        called = (called[:middle], called[middle:])[half]
    document["paths"] = {path: document["paths"][path] for path in called}
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["responses"].pop("default", None)
            _without_frames(operation["responses"].values())
    return document


def _middle(sizes: Sequence[int]) -> int:
    """Where to cut, so that both parts have about as many operations."""
    return bisect(list(accumulate(sizes)), sum(sizes) / 2)


def _without_frames(responses: Iterable[dict[str, Any]]) -> None:
    """OpenAPI 3.1 has no word for one event of a stream; what is in the frames is checked by the tests of streams."""
    for response in responses:
        response.get("content", {}).get("text/event-stream", {}).pop("schema", None)


def fuzz(
    url: str,
    *,
    key: str,
    ids: Mapping[str, Sequence[str]],
    cases: int,
    seed: int = SEED,
    half: int | None = None,
    phases: Sequence[str] = ("examples", "coverage", "fuzzing"),
) -> Found:
    """Call every operation about `cases` times beyond its examples and edges; half of all ids are real ones. The phase
    `stateful` makes that many chains of calls instead, in which one uses what another answered."""
    document = described(url, half)
    config = SchemathesisConfig.from_dict(_config(url, key, ids, cases, seed, phases))
    schema = schemathesis.openapi.from_dict(document, config=config)
    found = Found()
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            _note(found, event)
        elif isinstance(event, events.NonFatalError | events.FatalError):
            found.failures[f"{getattr(event, 'label', 'engine')}: error"] = repr(getattr(event, "value", event))
    return found


def _config(
    url: str, key: str, ids: Mapping[str, Sequence[str]], cases: int, seed: int, phases: Sequence[str]
) -> dict[str, Any]:
    calm = {"extra-data-sources": {"responses": False}}  # what is called must depend on the seed alone
    return {
        "seed": seed,
        "base-url": url,
        "headers": {"Authorization": f"Bearer {key}"},
        "request-timeout": 60,
        "max-stream-events": 20,
        "workers": 1,  # CPython 3.11 reads source in two threads at once with errors, and Hypothesis does that
        "continue-on-failure": True,
        "suppress-health-check": ["all"],
        "dictionaries": {name: {"values": list(values)} for name, values in ids.items()},
        "parameters": {f"path.{name}": {"dictionary": name, "probability": 0.5} for name in ids},
        "checks": {"enabled": False, **{name: {"enabled": True} for name in CHECKS}},
        "generation": {"max-examples": cases, "no-shrink": True, "with-security-parameters": False},
        "phases": {
            phase: {"enabled": phase in phases, **({} if phase == "stateful" else calm)}
            for phase in ("examples", "coverage", "fuzzing", "stateful")
        },
    }


def _note(found: Found, event: events.ScenarioFinished) -> None:
    recorder = event.recorder
    found.cases += len(recorder.interactions)
    found.statuses.update(one.response.status_code for one in recorder.interactions.values() if one.response)
    if event.status not in {Status.FAILURE, Status.ERROR}:
        return
    for case, checks in recorder.checks.items():
        for check in checks:
            if check.failure_info is not None:
                failure = check.failure_info.failure
                said = f"{failure.title}: {failure.message}\n{check.failure_info.code_sample}"
                found.failures.setdefault(f"{event.label}: {check.name}: {failure.title}", f"{said} ({case})")
