"""An MCP server with moods: it adds, dies, hangs, refuses, learns a new tool.

On a port if given one (with `json` it answers without streams, with `gateway` it stands behind one that loses the
answers of calls), else stdio.
"""

import os
import sys
from typing import Any

import uvicorn
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
async def write(path: str, word: str, seconds: float = 0.0) -> str:
    """Add a word to a file, after a time."""
    import anyio

    async with await anyio.open_file(path, "a") as file:
        await file.write(f"{word}\n")
    await anyio.sleep(seconds)
    return word


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


async def gateway(scope: Any, receive: Any, send: Any) -> None:
    """Hands everything on; the answer to a call is lost after the work was done."""
    asked: list[bytes] = []

    async def hearing() -> Any:
        message = await receive()
        asked.append(message.get("body", b""))
        return message

    async def losing(message: Any) -> None:
        if b"tools/call" not in b"".join(asked):
            await send(message)
        elif message["type"] == "http.response.start":
            await send({"type": "http.response.start", "status": 502, "headers": [(b"content-type", b"text/html")]})
        else:
            await send({**message, "body": b""})

    await behind[0](scope, hearing, losing)


behind: list[Any] = []

if __name__ == "__main__":
    if "gateway" in sys.argv:
        behind.append(server.streamable_http_app())
        uvicorn.run(gateway, host="127.0.0.1", port=int(sys.argv[1]))
    elif len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]), json_response="json" in sys.argv)
    else:
        server.run("stdio")
