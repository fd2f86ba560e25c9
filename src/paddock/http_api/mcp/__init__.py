"""The MCP server of one run, for programs that a harness starts. A token says which run."""
