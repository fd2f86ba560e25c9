"""`python -m paddock_runners.codex`: started by a host, speaks JSON lines."""

from paddock_runners.codex import Codex
from paddock_sdk import serve

serve(Codex())
