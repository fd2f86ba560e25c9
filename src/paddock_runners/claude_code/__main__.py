"""`python -m paddock_runners.claude_code`: started by a host, speaks JSON lines."""

from paddock_runners.claude_code import ClaudeCode
from paddock_sdk import serve

serve(ClaudeCode())
