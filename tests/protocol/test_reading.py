"""Listen kindly, speak exactly: unknown fields and types, old spellings, versions, ids, the table of host calls."""

import ast
import inspect
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import paddock_sdk
from paddock_sdk import results
from paddock_sdk.host_api import HostApi
from paddock_sdk.protocol.errors import API_ERROR_CODES
from paddock_sdk.protocol.frames import InitializeResult
from paddock_sdk.protocol.host_calls import HOST_CALLS, METHODS
from paddock_sdk.protocol.ids import PluginId, RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions
from paddock_sdk.protocol.results import KNOWN_RESULTS, RunFailed, UnknownResult, parse_result
from paddock_sdk.protocol.run_context import AgentRunContext, AgentRuntimeContext
from paddock_sdk.protocol.version import is_compatible

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.spec("wire/unknown-fields")
def test_fields_from_the_future_are_kept_at_every_depth() -> None:
    raw = golden("AgentRunContext")
    raw["later"] = {"a": 1}
    raw["event"]["later"] = [1]
    assert AgentRunContext.from_wire(raw).to_wire() == raw


@pytest.mark.spec("wire/unknown-result")
def test_a_result_type_from_the_future_is_kept_whole() -> None:
    raw = {"run_id": "r-1", "type": "reasoning.delta", "data": ["anything"], "sequence": 3, "mood": "good"}
    result = parse_result(raw)
    assert isinstance(result, UnknownResult)
    assert result.to_wire() == raw


def test_a_known_type_with_a_wrong_payload_is_an_error_and_not_unknown() -> None:
    with pytest.raises(ValidationError):
        parse_result({"run_id": "r-1", "type": "message.delta", "data": {"text": "hel"}})


@pytest.mark.spec("wire/old-spellings")
@pytest.mark.parametrize("data", [{"error": "boom"}, {"error": "old", "message": "boom"}])
def test_an_old_error_is_read_as_message_and_never_written(data: dict[str, str]) -> None:
    failure = parse_result({"run_id": "r-1", "type": "run.failed", "data": {"code": "x", **data}})
    assert isinstance(failure, RunFailed)
    assert failure.to_wire()["data"] == {"code": "x", "message": "boom", "retryable": False}


@pytest.mark.spec("wire/old-spellings")
def test_a_context_of_the_older_text_keeps_its_bootstrap_unread() -> None:
    raw = {**golden("AgentRunContext"), "bootstrap": {"messages": [{"role": "user", "content": "hi"}]}}
    assert AgentRunContext.from_wire(raw).to_wire()["bootstrap"] == raw["bootstrap"]


def test_the_host_is_paddock_unless_somebody_else_says_so() -> None:
    assert AgentRuntimeContext.from_wire({"trace_id": "t"}).host == "paddock"
    assert AgentRuntimeContext.from_wire({"trace_id": "t", "host": "langbot"}).host == "langbot"


def test_null_inside_open_data_is_kept_while_null_fields_are_left_out() -> None:
    raw = {**golden("AgentRunContext"), "config": {"tone": None, "deep": {"x": None}}, "adapter": None}
    written = AgentRunContext.from_wire(raw).to_wire()
    assert written["config"] == raw["config"]
    assert "adapter" not in written


@pytest.mark.spec("wire/version")
@pytest.mark.parametrize(
    ("version", "compatible"), [("1", True), ("1.7", True), ("2", False), ("10", False), ("", False), (None, False)]
)
def test_only_the_same_major_is_compatible(version: str | None, compatible: bool) -> None:
    assert is_compatible(version) is compatible


@pytest.mark.spec("wire/version")
def test_a_manifest_without_a_version_means_one_and_a_handshake_without_is_refused() -> None:
    raw = golden("AgentRunnerManifest")
    del raw["protocol_version"]
    assert is_compatible(AgentRunnerManifest.from_wire(raw).protocol_version)
    assert not is_compatible(InitializeResult.from_wire({"sdk": {"name": "x"}}).protocol_version)


def test_a_label_may_be_a_plain_string() -> None:
    manifest = AgentRunnerManifest.from_wire({**golden("AgentRunnerManifest"), "label": "Echo"})
    assert manifest.label == {"en_US": "Echo"}


def test_a_permission_nobody_knows_is_refused_so_that_a_typo_is_seen() -> None:
    raw = golden("AgentRunnerManifest")
    raw["permissions"]["history"] = ["pages"]
    with pytest.raises(ValidationError, match=r"permissions\.history"):
        AgentRunnerManifest.from_wire(raw)


def test_runner_ids_are_read_and_written_the_same() -> None:
    runner = RunnerId.parse("plugin:paddock/echo/default")
    assert (runner.author, runner.name, runner.runner) == ("paddock", "echo", "default")
    assert str(runner) == "plugin:paddock/echo/default"
    assert str(runner.plugin) == "paddock/echo"
    assert PluginId.parse("paddock/echo") == runner.plugin


@pytest.mark.parametrize(
    "text",
    [
        "",
        "paddock/echo/default",
        "plugin:a/b",
        "plugin:a/b/c/d",
        "plugin:../b/c",
        "plugin:a//c",
        "plugin:a/b/c\n",
        "plugin:a/b/ü",
    ],
)
def test_what_is_not_a_runner_id_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="runner id"):
        RunnerId.parse(text)


def test_two_host_calls_are_streaming_and_seven_codes_refuse_them() -> None:
    assert [name for name, call in HOST_CALLS.items() if call.streams] == ["models.stream", "artifacts.open_stream"]
    assert len(API_ERROR_CODES) == 7


DONE_BY_THE_API = {"storage.get": {"offset"}, "storage.set": {"offset", "more"}}
"""Large values are cut into parts and put together again without the author's help."""


@pytest.mark.parametrize("method", METHODS)
def test_every_host_call_is_a_method_of_the_api_with_the_arguments_of_its_params(method: str) -> None:
    group, verb = method.split(".")
    api = HostApi(calls=None)  # pyright: ignore[reportArgumentType]
    arguments = set(inspect.signature(getattr(getattr(api, group), verb)).parameters)
    fields = {name.removesuffix("_base64") for name in HOST_CALLS[method].params.model_fields} - {"run_id"}
    assert arguments - {"default"} == fields - DONE_BY_THE_API.get(method, set())


@pytest.mark.parametrize("method", METHODS)
def test_every_permission_that_opens_a_call_is_one_that_a_manifest_may_ask_for(method: str) -> None:
    for section, operation in HOST_CALLS[method].permissions:
        assert AgentRunnerPermissions.model_validate({section: [operation]})


def test_the_sdk_tells_hosts_the_version_it_was_released_as() -> None:
    released = tomllib.loads((Path(__file__).parents[2] / "sdk" / "pyproject.toml").read_text())
    assert paddock_sdk.__version__ == released["project"]["version"]


def test_the_words_can_be_imported_without_the_authors_side() -> None:
    program = "import sys, paddock_sdk.protocol.manifest; print(sorted(m for m in sys.modules if 'paddock_sdk' in m))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "paddock_sdk.serve" not in loaded
    assert "paddock_sdk.runner" not in loaded
    assert "paddock_sdk.protocol.manifest" in loaded


def test_every_name_the_sdk_offers_is_there() -> None:
    assert [name for name in paddock_sdk.__all__ if not hasattr(paddock_sdk, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        paddock_sdk.nonsense  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_every_result_type_has_a_constructor_and_every_constructor_is_offered() -> None:
    source = inspect.getsource(results)
    written = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    assert set(KNOWN_RESULTS) - written == set()
    functions = [
        one for _, one in inspect.getmembers(results, inspect.isfunction) if one.__module__ == results.__name__
    ]
    assert {one.__name__ for one in functions if one.__name__[0] != "_"} - set(paddock_sdk.__all__) == set()


@pytest.mark.parametrize("method", METHODS)
def test_null_for_a_parameter_with_a_default_is_the_default(method: str) -> None:
    call = HOST_CALLS[method].params
    with_defaults = {name for name, field in call.model_fields.items() if not field.is_required()}
    given = golden(call.__name__)
    plain = {name: value for name, value in given.items() if name not in with_defaults}
    assert call.from_wire(plain | dict.fromkeys(with_defaults)) == call.from_wire(plain)


def test_null_inside_a_shape_is_the_default_too_and_a_required_field_is_still_missed() -> None:
    page = HOST_CALLS["history.page"].params
    assert page.from_wire({"run_id": "r", "limit": None, "later": None}).model_extra == {"later": None}
    with pytest.raises(ValidationError, match="run_id"):
        page.from_wire({"run_id": None, "limit": None})
