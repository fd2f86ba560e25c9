"""The reference MCP servers from npm."""

from pathlib import Path

import npm_packages

FILES = [Path(__file__).parent / "tools" / "js" / name for name in ("package.json", "package-lock.json")]


def installed() -> Path:
    """Where their programs are."""
    place = npm_packages.installed("mcp-servers", FILES, what="the reference MCP servers of npm")
    return place / "node_modules" / ".bin"
