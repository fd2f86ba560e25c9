"""What is told in this room is true of the embedded default and of two hosts with the client at the wrong one."""

from pathlib import Path

ROOM = Path(__file__).parent


def test_hosts_are_made_by_the_fixture_that_makes_them_of_both_kinds() -> None:
    past_it = [
        test.name for test in ROOM.glob("test_*.py") if test != Path(__file__) and "HostProcess(" in test.read_text()
    ]
    assert past_it == []
