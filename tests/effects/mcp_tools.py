"""An MCP server with one tool that does something in the world. On a port if given one, else stdio.

Arguments: the stub's address, the name it is told, and maybe the port.
"""

import http.client
import sys

import anyio.to_thread
from mcp.server import MCPServer

server = MCPServer("effects")


def _tell() -> str:
    connection = http.client.HTTPConnection(sys.argv[1], timeout=120)
    connection.request("POST", f"/effect/{sys.argv[2]}", b"{}")
    return connection.getresponse().read().decode()


@server.tool()
async def book() -> str:
    """Book."""
    return await anyio.to_thread.run_sync(_tell, abandon_on_cancel=True)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[3]))
    else:
        server.run("stdio")
