"""Nothing of a message is forgotten: its handler, and for a control its name in the audit, its sentences, its line."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paddock.host.conversations.controls import WHY
from paddock.host.session.draft import WISHES
from paddock.rules.session import members
from paddock.rules.session.bus import FROM_PEOPLE, MessageItem, read
from paddock.rules.session.decide import HANDLERS
from paddock.rules.session.facts import Event
from paddock.rules.session.messages import Agents, Message

PAGE = (Path(__file__).parents[2] / "docs" / "spec" / "http.md").read_text()


def asks(subtype: str) -> type[Any]:
    """The message that a control means."""
    item = MessageItem(Event.CONTROL, subtype, "user:uma", turn_id="t1", tx_id="x1", payload={"agent_id": "ada"})
    return type(read(item, Agents("ada", {"ada": "queue"})))


def words_in(node: ast.AST) -> Iterator[str]:
    return (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))


def reasons(handler: Callable[..., Any]) -> set[str]:
    """Why this handler may say that nothing changes."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(handler)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "ignored"]
    return {word for call in calls for word in words_in(call.args[2])}


def test_every_message_has_one_handler_and_no_other_has() -> None:
    assert set(HANDLERS) == set(Message.__subclasses__())


@pytest.mark.parametrize("subtype", FROM_PEOPLE)
def test_every_control_of_people_has_a_name_in_the_audit(subtype: str) -> None:
    assert asks(subtype) in WISHES


@pytest.mark.parametrize("subtype", FROM_PEOPLE)
def test_why_a_control_changes_nothing_is_said_in_words(subtype: str) -> None:
    assert reasons(HANDLERS[asks(subtype)]) - WHY.keys() == set()


def test_why_no_control_is_taken_is_said_in_words() -> None:
    source = inspect.getsource(members.refusing_controls)
    assert set(re.findall(r'"(session_\w+)"', source)) <= WHY.keys()


@pytest.mark.parametrize("subtype", FROM_PEOPLE)
def test_every_control_of_people_is_on_the_page_for_clients(subtype: str) -> None:
    [line] = re.findall(r"^- `http/sessions-control`:(?:.*\n)+?(?=- )", PAGE, re.MULTILINE)
    assert f"`{subtype}`" in line
