"""The names clients give their threads. Inside, a thread is a UUID; outside, AG-UI clients call it what they like."""

from uuid import UUID, uuid5

from paddock.host.principals import Principal
from paddock.rules.run_input import is_uuid

_NAMES = UUID("6f1de2a1-7c34-5f0b-9a55-3d8e6b7f0c21")
"""Never change it: every thread with a name of its own hangs on it."""


def thread_of(principal: Principal, name: str) -> str:
    """The thread a client means: a UUID is itself, any other name is its user's own and always the same thread."""
    if is_uuid(name):
        return name.lower()
    return str(uuid5(_NAMES, f"{principal.workspace_id}\0{principal.user_id}\0{name}"))
