"""Does what a harness does with its surroundings, and says what it found. Each word is one thing to do."""

import asyncio
import hashlib
import json
import os
import urllib.error
import urllib.request
from pathlib import Path

from paddock_sdk import AgentRunner, Results, message, serve
from paddock_sdk.endpoint import run_endpoint
from paddock_sdk.projection import project, working_directory_of

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}


class Insider(AgentRunner):
    permissions = {  # noqa: RUF012
        "tools": ["call"],
        "history": ["page"],
        "storage": ["plugin"],
        "mcp": ["use"],
        "working_directory": ["use"],
    }

    async def run(self, ctx, api) -> Results:
        told = {}
        place = working_directory_of(ctx)
        async with run_endpoint(ctx, api) as endpoint:
            told["endpoint"] = endpoint and endpoint.url
            told["resource"] = next((server.url for server in ctx.resources.mcp), None)
            for word in ctx.text.split():
                name, _, value = word.partition("=")
                told[name] = await asyncio.to_thread(self.do, name, value, ctx, place, endpoint)
        yield message(json.dumps(told))

    def do(self, name, value, ctx, place, endpoint):  # noqa: PLR0911 - one for each word
        match name:
            case "knock":
                return knock(endpoint.url, endpoint.token)
            case "knock_at":
                return knock(value, endpoint.token)
            case "token":
                return endpoint.token[::-1]  # what is said is stored, and the token must be nowhere
            case "where":
                return str(place)
            case "write":
                (place / value).write_text("mine")
                return sorted(path.name for path in place.iterdir())
            case "project":
                laid = project(ctx, place, harness="claude", mcp_url=endpoint.url, token_env=endpoint.token_env)
                return [str(laid.context_page), str(laid.mcp_config), list(laid.files)]
            case "see":
                return Path(value).exists()
            case "list":
                return sorted(path.name for path in Path(value).iterdir()) if Path(value).is_dir() else None
            case "keep":
                kept = Path.home() / "conversations" / key_of(ctx)
                kept.mkdir(parents=True, exist_ok=True)
                (kept / value).write_text("kept")
                places = os.walk(Path.home(), followlinks=True)
                seen = [Path(top, name) for top, folders, files in places for name in (*folders, *files)]
                return [key_of(ctx), sorted(str(path.relative_to(Path.home())) for path in seen)]
            case "change":
                return attempt(lambda: (Path.home() / value).write_text("changed"))
            case "uid":
                return os.getuid()
            case _:
                return None


def key_of(ctx) -> str:
    """The name of this conversation's directory at home, as the wire's page says."""
    named = f"{ctx.conversation.workspace_id}\0{ctx.conversation.conversation_id}"
    return hashlib.sha256(named.encode()).hexdigest()[:32]


def attempt(do) -> str:
    try:
        do()
    except OSError as error:
        return type(error).__name__
    return "done"


def knock(url: str, token: str) -> int | str:
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {token}",
    }
    request = urllib.request.Request(url, json.dumps(HELLO).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return type(error).__name__


if __name__ == "__main__":
    serve(Insider())
