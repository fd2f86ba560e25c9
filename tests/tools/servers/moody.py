"""An MCP server with moods: it adds, dies, hangs, refuses, learns a new tool.

On a port if given one (with `json` it answers without streams), else stdio.
"""

import os
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("moody")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def chatter(megabytes: int) -> str:
    """Say very much."""
    return "x" * (megabytes * 1_000_000)


@server.tool()
def die() -> str:
    """End in the middle of a call."""
    os._exit(3)


@server.tool()
async def hang() -> str:
    """Never answer."""
    import anyio

    await anyio.sleep_forever()
    return ""


@server.tool()
def refuse() -> str:
    """Fail."""
    raise ToolError("not today")


@server.tool()
def secret() -> str:
    """What it was given, and what it was not."""
    return f"{os.environ.get('TOKEN')} {os.environ.get('HOST_SECRET')} {os.getpid()}"


@server.tool()
async def learn(ctx: Context) -> str:
    """Get a new tool."""

    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello, {name}"

    server.add_tool(greet)
    await ctx.session.send_tool_list_changed()
    return "learned"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]), json_response="json" in sys.argv)
    else:
        server.run("stdio")
