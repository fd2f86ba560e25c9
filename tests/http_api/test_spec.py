"""The page on the HTTP API shows what the code says: sentences, fields, examples."""

import json
import re
from pathlib import Path

import msgspec

from http_api.test_run_input import TABLE, a_body, read
from paddock.http_api.native.runs import run_seen
from paddock.rules.rows.rows import RunRow
from paddock.rules.run.input import NativeInput

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs/spec/http.md").read_text()


def test_the_page_has_every_sentence_of_the_table() -> None:
    assert all(f"`{sentence}`" in PAGE for sentence, _ in TABLE)


def test_the_page_shows_a_run_with_every_field_it_can_have() -> None:
    [example] = re.findall(r"## A run, looked at\n\n```json\n(.*?)```", PAGE, re.DOTALL)
    row = RunRow(*[1] * len(RunRow.__struct_fields__))  # pyright: ignore[reportArgumentType]
    assert set(msgspec.to_builtins(run_seen(row))) == set(json.loads(example)) | {"code", "message"}


def test_the_message_with_a_picture_on_the_page_is_taken() -> None:
    [example] = re.findall(r"```json binary message\n(.*?)```", PAGE, re.DOTALL)
    taken = read(a_body(messages=[json.loads(example)]))
    assert isinstance(taken, NativeInput)
