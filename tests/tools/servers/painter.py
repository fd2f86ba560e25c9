"""An MCP server that gives back pictures: good ones, large ones, broken ones, and things that are none."""

import io
import os
from base64 import b64encode

from mcp.server import MCPServer
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
)
from PIL import Image

server = MCPServer("painter")


def drawn(width: int, *, noisy: bool = False) -> str:
    """A PNG; one that is noisy cannot be made smaller."""
    size = (width, width)
    image = Image.frombytes("RGB", size, os.urandom(3 * width * width)) if noisy else Image.new("RGB", size, "red")
    out = io.BytesIO()
    image.save(out, "PNG")
    return b64encode(out.getvalue()).decode()


def given(*content: ContentBlock) -> CallToolResult:
    return CallToolResult(content=list(content))


def words(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def an_image(data: str, mime_type: str = "image/png") -> ImageContent:
    return ImageContent(type="image", data=data, mime_type=mime_type)


def a_blob(uri: str, mime_type: str, data: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=BlobResourceContents(uri=uri, mime_type=mime_type, blob=data))


@server.tool()
def paint(width: int, noisy: bool = False) -> CallToolResult:
    """Paint a square."""
    return given(words("here it is"), an_image(drawn(width, noisy=noisy)))


@server.tool()
def embed() -> CallToolResult:
    """A picture and a note as resources, and a sound."""
    sound = AudioContent(type="audio", data=b64encode(b"RIFF\xff").decode(), mime_type="audio/wav")
    note = a_blob("a://b/note", "text/plain", b64encode(b"tea").decode())
    return given(a_blob("a://b/map.png", "image/png", drawn(2)), sound, note)


@server.tool()
def break_it() -> CallToolResult:
    """A picture whose base64 is none."""
    return given(words("look"), an_image("%%%not base64%%%"))


@server.tool()
def lie() -> CallToolResult:
    """A page that is said to be a picture, a JPEG that is said to be a PNG, a PNG of which half is missing."""
    out = io.BytesIO()
    Image.new("RGB", (4, 4), "blue").save(out, "JPEG")
    half = drawn(64)[:80]
    page = b64encode(b"<html><script>alert(1)</script>").decode()
    return given(an_image(page), an_image(b64encode(out.getvalue()).decode()), an_image(half))


if __name__ == "__main__":
    server.run("stdio")
