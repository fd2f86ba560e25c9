"""What a person is shown before they say yes."""

from paddock_runners.harness.heard import Permission
from paddock_runners.harness.permissions import MAX_SHOWN, Waiting, canonical


def shown(command: str) -> str:
    return Waiting.of(Permission("k", "t1", "Bash", {"command": command})).shown()


def test_a_command_is_shown_to_its_end() -> None:
    assert shown(f"echo {'x' * 2000}; rm -rf ~").endswith('; rm -rf ~"}')


def test_of_one_without_end_it_is_said_how_much_is_not_shown() -> None:
    told = shown("x" * 3 * MAX_SHOWN)
    assert len(told) < MAX_SHOWN + 200
    around = len(canonical({"command": ""}))
    assert f"({2 * MAX_SHOWN + around} further characters are not shown)" in told
