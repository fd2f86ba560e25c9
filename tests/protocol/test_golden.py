"""Every wire shape against its golden file. Changing a golden file is a protocol decision."""

import json
from pathlib import Path

import pytest

from paddock_sdk.protocol.model import WireModel
from paddock_sdk.protocol.results import KNOWN_RESULTS, parse_result
from protocol.shapes import SHAPES

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"


def test_every_shape_has_a_golden_file_and_every_file_a_shape() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_reads_and_writes_its_golden_file_unchanged(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    assert SHAPES[name].from_wire(golden).to_wire() == golden


@pytest.mark.parametrize("name", SHAPES)
def test_a_golden_file_shows_every_field_and_no_other(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    assert set(golden) == set(SHAPES[name].model_fields)


def test_what_is_required_and_what_has_which_default_is_as_agreed() -> None:
    def said(shape: type[WireModel]) -> dict[str, object]:
        return {
            name: "required" if field.is_required() else _plain(field.get_default(call_default_factory=True))
            for name, field in shape.model_fields.items()
        }

    assert {name: said(shape) for name, shape in SHAPES.items()} == json.loads((HERE / "defaults.json").read_text())


@pytest.mark.parametrize("kind", KNOWN_RESULTS)
def test_a_result_is_the_envelope_with_data_of_its_type(kind: str) -> None:
    shape = KNOWN_RESULTS[kind]
    data = shape.model_fields["data"].annotation
    assert isinstance(data, type)
    golden = {name: json.loads((GOLDEN / f"{name}.json").read_text()) for name in ("AgentRunResult", data.__name__)}
    result = {**golden["AgentRunResult"], "type": kind, "data": golden[data.__name__]}
    assert shape.from_wire(result).to_wire() == result
    assert set(shape.model_fields) == set(result)
    needed = {name for name, field in shape.model_fields.items() if field.is_required()}
    assert needed == ({"run_id"} if kind == "run.completed" else {"run_id", "data"})
    assert type(parse_result(result)) is shape


def _plain(value: object) -> object:
    return value.to_wire() if isinstance(value, WireModel) else value


def test_shapes_cannot_be_changed_after_they_are_read() -> None:
    manifest = SHAPES["PluginInfo"].from_wire({"author": "paddock", "name": "echo"})
    with pytest.raises(ValueError, match="frozen"):
        manifest.name = "other"  # pyright: ignore[reportAttributeAccessIssue]
