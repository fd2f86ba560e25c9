"""`python -m paddock_runners.local_agent`: started by a host, speaks JSON lines."""

from paddock_runners.local_agent import LocalAgent
from paddock_sdk import serve

serve(LocalAgent())
