"""Where a request for a run came from: the console, which is the only page of this host, or any other program."""

from starlette.types import Scope

from paddock.rules.run.context import TriggerSource

OWN_PAGE = (b"sec-fetch-site", b"same-origin")
"""Set by browsers and by no script; other programs that send it change nothing but this word."""


def source_of(scope: Scope) -> TriggerSource:
    return "webui" if OWN_PAGE in scope["headers"] else "api"
