"""`python -m paddock_runners.http`: started by a host, speaks JSON lines."""

from paddock_runners.http import HttpRunner
from paddock_sdk import serve

serve(HttpRunner())
