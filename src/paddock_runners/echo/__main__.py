"""`python -m paddock_runners.echo`: started by a host, speaks JSON lines."""

from paddock_runners.echo import EchoRunner
from paddock_sdk import serve

serve(EchoRunner())
