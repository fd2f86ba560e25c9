"""One run: its input, its context, what its runner says, the tools it shows over MCP, and its story afterwards.

Whether a run may do something is decided in `access/`; processes and connections are in `runners/`.
"""
