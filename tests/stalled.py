"""Lines of hosts that say what held up their event loop: `walk.hosts` collects them, `conftest.py` asks for them."""

STALLED: list[str] = []


def note(line: str) -> None:
    if "loop.stalled" in line or "loop.stalling" in line:
        STALLED.append(line)
