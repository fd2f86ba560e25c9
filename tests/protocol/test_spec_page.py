"""The page and the code say the same: every example parses, every shape is described whole."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddock.rules.access.gate import LOOKED_AT, NO_BOUND
from paddock.rules.access.limits import MAX_CALL_BYTES, MAX_PAGE
from paddock_sdk.protocol.errors import API_ERROR_CODES, HOST_FAILURE_CODES
from paddock_sdk.protocol.frames import HOST_NOTIFICATIONS, HOST_REQUESTS, PLUGIN_NOTIFICATIONS
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.results import KNOWN_RESULTS, parse_result
from protocol.shapes import SHAPES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "spec" / "runner-protocol.md").read_text()
EXAMPLES = re.findall(r"^```json ?(.*)\n([\s\S]*?)^```$", PAGE, re.MULTILINE)
PARAMS = {
    **{name: exchange.params for name, exchange in HOST_REQUESTS.items()},
    **{name: call.params for name, call in HOST_CALLS.items()},
    **HOST_NOTIFICATIONS,
    **PLUGIN_NOTIFICATIONS,
}


@pytest.mark.parametrize(
    ("what", "text"), EXAMPLES, ids=[f"{what or 'frame'}-{n}" for n, (what, _) in enumerate(EXAMPLES)]
)
def test_every_example_is_what_it_says_it_is(what: str, text: str) -> None:
    example: dict[str, Any] = json.loads(text)
    shape, _, envelope = what.partition(" in ")
    if shape:
        inner = example["result"] if envelope else example
        assert_says(SHAPES[shape].from_wire(inner).to_wire(), inner)
    if "jsonrpc" in example:
        assert_is_a_frame(example)


def assert_is_a_frame(frame: dict[str, Any]) -> None:
    kind = "ErrorResponse" if "error" in frame else "Response" if "result" in frame else "Request"
    if "id" not in frame:
        kind = "Notification"
    assert_says(SHAPES[kind].from_wire(frame).to_wire(), frame)
    if "method" in frame:
        assert_says(PARAMS[frame["method"]].from_wire(frame["params"]).to_wire(), frame["params"])
    if frame.get("method") == "run_result":
        assert type(parse_result(frame["params"])) is KNOWN_RESULTS[frame["params"]["type"]]


def assert_says(written: Any, example: Any) -> None:
    """All of the example is in what we write: nothing on the page is unknown to the models or spelled otherwise."""
    if isinstance(example, dict):
        for key, value in example.items():
            assert_says(written[key], value)
    elif isinstance(example, list):
        for one, other in zip(written, example, strict=True):
            assert_says(one, other)
    else:
        assert written == example


def described() -> Iterator[tuple[str, set[str]]]:
    """Shape and field names, from tables (`**`Shape`**`, then rows) and from lists (`- **`Shape`**: `field` ...`)."""
    for line in re.findall(r"^- \*\*`(\w+)`\*\*: (.*)$", PAGE, re.MULTILINE):
        fields = line[1].split(". ")[0]
        yield line[0], set(re.findall(r"(?:^|; )`(\w+)`", fields))
    for name, table in re.findall(r"^\*\*`(\w+)`\*\*\n\n((?:.|\n)*?)(?=\n\n(?!\|)|\Z)", PAGE, re.MULTILINE):
        yield name, set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_every_shape_is_described_with_every_field_and_no_other() -> None:
    page = dict(described())
    assert page == {name: set(shape.model_fields) for name, shape in SHAPES.items()}


def test_every_method_result_type_and_code_is_on_the_page() -> None:
    words = {*PARAMS, *KNOWN_RESULTS, *API_ERROR_CODES, *HOST_FAILURE_CODES}
    assert {word for word in words if f"`{word}`" not in PAGE} == set()


def test_every_code_that_ends_a_run_is_on_the_page_for_clients() -> None:
    page = (ROOT / "docs" / "spec" / "http.md").read_text()
    listed = page[page.index("| code | what happened |") :].partition("\n\n")[0]
    codes = "".join(row.split("|")[1] for row in listed.splitlines())
    assert set(re.findall(r"`([a-z_.]+)`", codes)) == HOST_FAILURE_CODES


@pytest.mark.spec("wire/caps")
@pytest.mark.parametrize("method", HOST_CALLS)
def test_the_caps_of_every_call_are_on_the_page(method: str) -> None:
    looked = LOOKED_AT[method]
    whole = f"{MAX_CALL_BYTES if looked.call_bytes == NO_BOUND else looked.call_bytes:,}"
    fields = ", ".join(f"`{cap.field}` {cap.most:,} {cap.measure}" for cap in looked.caps)
    if looked.at_most:
        fields = ", ".join(filter(None, [fields, f"`{looked.at_most}` 1 to {MAX_PAGE} (cut to it)"]))
    assert f"  | `{method}` | {whole} | {fields} |" in PAGE


@pytest.mark.spec("wire/cancel-reasons")
def test_every_reason_of_a_cancel_is_on_the_page() -> None:
    said = re.compile(r'(?:ask_to_stop\(|CancelRun\(|_cancel\(|cancel_by_id)[^\n]*"(\w+)"')
    used = {word for path in (ROOT / "src" / "paddock").rglob("*.py") for word in said.findall(path.read_text())}
    assert used >= {"agent_removed", "interrupted", "run_over", "reader_gone", "protocol_error"}
    [line] = re.findall(r"- `reason` is one of .*\n.*", PAGE)
    assert used <= set(re.findall(r"`(\w+)`", line))
