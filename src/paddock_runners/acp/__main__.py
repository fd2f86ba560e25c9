"""`python -m paddock_runners.acp`: started by a host, speaks JSON lines."""

from paddock_runners.acp import Acp
from paddock_sdk import serve

serve(Acp())
