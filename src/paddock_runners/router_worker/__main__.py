"""`python -m paddock_runners.router_worker`: started by a host, speaks JSON lines."""

from paddock_runners.router_worker import RouterWorker
from paddock_sdk import serve

serve(RouterWorker())
